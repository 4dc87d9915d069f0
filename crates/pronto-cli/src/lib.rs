//! The command line of pronto: arguments in, text out. What a library user would want lives in
//! the `pronto` crate, never here.
//!
//! - [`commands`]: the table of native commands; one file each under `commands/`.
//! - [`arguments`]: Git's habits of writing options, brought into the one form that clap reads.
//! - [`globals`]: the options before the command.
//! - [`context`]: what a command gets to work with.
//! - [`error`]: the one error of the command line and how it is shown.
//! - [`settings`]: the settings that native commands lack.
//! - `fallback`: handing a call to the installed git.
//!
//! ```
//! let status = pronto_cli::commands::find("version").expect("version is native");
//! assert_eq!(status.name, "version");
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alias;
pub mod arguments;
mod bad_pack;
mod columns;
pub mod commands;
pub mod context;
mod diffing;
pub mod error;
mod fallback;
pub mod globals;
mod maintenance;
pub mod output;
mod paths;
pub mod progress;
pub mod settings;
mod startup;
mod submodules;
mod terminal_text;
mod trace;

pub use context::Context;
pub use error::{CliError, ExitCode};

/// Runs the command line of this process and says how it ended.
///
/// Reads the arguments and the environment, writes to the standard streams, and may not return
/// when the call is handed to the installed git or ends by a signal.
pub fn main() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    startup::run(&arguments).code()
}
