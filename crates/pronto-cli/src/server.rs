//! The program `pronto-server`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

pronto_io::entry!(pronto_cli::server_main);
