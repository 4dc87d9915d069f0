//! `serve`: serve repositories to Git clients or to peers. The program `pronto-server` implements
//! the command.

#[cfg(feature = "serve")]
mod git;
#[cfg(feature = "serve")]
mod keys;
#[cfg(feature = "serve")]
mod listen;
#[cfg(feature = "serve")]
mod log;
#[cfg(feature = "serve")]
mod manage;
#[cfg(feature = "serve")]
mod server;
#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
mod subcommands;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{CliError, Context, ExitCode};

#[cfg(feature = "serve")]
pub(super) use git::{failure as server_failure, native};
#[cfg(feature = "serve")]
pub(super) use server::run as run_here;

/// Arguments of `serve`.
#[derive(clap::Args, Clone, Debug)]
#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
pub(crate) struct Args {
    /// The repository, or a directory of repositories
    directory: Option<OsString>,
    #[command(subcommand)]
    manage: Option<subcommands::Manage>,
    /// Let the user 'owner' push and create repositories, with a token that is printed
    #[arg(long)]
    write: bool,
    /// Serve git://, for reading, at this address
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
    /// Serve SSH at this address. Without --config, for reading as the user 'anonymous'
    #[arg(long, value_name = "ADDRESS")]
    ssh: Option<String>,
    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Read the configuration from this file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,
    /// az://CONTAINER/PREFIX or file:///DIRECTORY
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores
    /// without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL", global = true)]
    generations: Option<String>,
    /// With --store, the directory for views and downloaded files; each server needs its own
    #[arg(long, value_name = "DIRECTORY", global = true)]
    cache: Option<PathBuf>,
    /// With --store: 'serve', 'upkeep' (pack repositories again and delete what has expired) or 'both',
    /// which is the default
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<StoreDuty>,
    /// Check the configuration, and that a store can be reached, and exit
    #[arg(long)]
    check: bool,
    /// The format of the log: 'human' (lines of text), 'json', or 'auto' ('human' on a terminal and otherwise
    /// 'json'), which is the default
    #[arg(long, value_name = "FORMAT", value_parser = log_format)]
    log_format: Option<LogFormatName>,
    /// Print the default configuration with comments, and exit
    #[arg(long)]
    print_config: bool,
    /// Serve netsync, in which both sides send and receive, at this address too. Without an address,
    /// serve only that: to one peer with --stdio, or to known peers with --listen
    #[arg(
        long,
        value_name = "HOST:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    netsync: Option<String>,
    /// Serve one peer on standard input and output, as started by 'sync'
    #[arg(long)]
    stdio: bool,
    /// Listen at this address; a free port of this machine without. With --netsync, serve known peers
    /// by TLS; 'netsync' manages the known peers
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// With --stdio, the local name of the peer: its branches become refs/remotes/NAME/*
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Fast-forward branches to those of the peer, unless they are checked out
    #[arg(long)]
    ff: bool,
    /// Accept histories that have nothing in common
    #[arg(long)]
    allow_unrelated: bool,
    /// Exit after the first connection
    #[arg(long)]
    once: bool,
    /// The maximum number of sessions, and of waiting ones
    #[arg(long, value_name = "COUNT", default_value = "1024")]
    max_connections: usize,
    /// The memory of all sessions in MiB; a session takes 12, and 48 more while the server works
    /// for it
    #[arg(long, value_name = "MIB", default_value = "1024")]
    memory: u64,
    /// The maximum MiB to receive in a session
    #[arg(long, value_name = "MIB")]
    max_received: Option<u64>,
    /// The maximum seconds for handshake and greeting together
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    handshake_timeout: u64,
    /// The maximum seconds for a peer to move 16 KiB, or to take a step of the protocol
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    idle_timeout: u64,
    /// The seconds without 40 KiB or a step after which a waiting session may take the place
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    slow_timeout: u64,
    /// The maximum seconds for a session to wait for a place; then the peer must try again later
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    wait_timeout: u64,
    /// The maximum seconds of a session
    #[arg(long, value_name = "SECONDS", default_value = "43200")]
    session_timeout: u64,
}

/// The tasks of a server in a shared object store (`--role`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreDuty {
    Serve,
    Upkeep,
    Both,
}

/// The formats of the log (`--log-format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFormatName {
    Auto,
    Human,
    Json,
}

/// Continues in the program `pronto-server`.
pub(crate) fn run(_: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    Err(context.become_server("serve"))
}

/// Parses the value of `--role`.
fn role(text: &str) -> Result<StoreDuty, String> {
    match text {
        "serve" => Ok(StoreDuty::Serve),
        "upkeep" => Ok(StoreDuty::Upkeep),
        "both" => Ok(StoreDuty::Both),
        _ => Err("use 'serve', 'upkeep' or 'both'".to_owned()),
    }
}

/// Parses the value of `--log-format`.
fn log_format(text: &str) -> Result<LogFormatName, String> {
    match text {
        "auto" => Ok(LogFormatName::Auto),
        "human" => Ok(LogFormatName::Human),
        "json" => Ok(LogFormatName::Json),
        _ => Err("use 'human', 'json' or 'auto'".to_owned()),
    }
}
