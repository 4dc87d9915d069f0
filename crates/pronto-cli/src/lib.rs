//! The command line of pronto: parses arguments and prints text. Code that is useful for users of
//! the library is in the `pronto` crate.
//!
//! - [`commands`]: the table of native commands, with one file for each under `commands/`.
//! - [`arguments`]: converts options in Git's style for clap.
//! - [`globals`]: the options before the command.
//! - [`context`]: the context of a command.
//! - [`error`]: the error type of the command line.
//! - [`settings`]: the settings that native commands lack.
//! - [`terminal`]: colours, columns and progress.
//! - `fallback`: hands a call to the installed git.
//! - `manual`: the manual pages, which `help` shows.
//! - `completion`: the candidates that shells offer.
//!
//! ```
//! let status = pronto_cli::commands::find("version").expect("version is native");
//! assert_eq!(status.name, "version");
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alias;
pub mod arguments;
pub mod commands;
mod completion;
pub mod context;
pub mod error;
mod fallback;
mod git_names;
pub mod globals;
mod json;
mod maintenance;
mod manual;
pub mod output;
mod paths;
mod programs;
pub mod settings;
mod startup;
pub mod terminal;
mod trace;

pub use context::Context;
pub use error::{CliError, ExitCode};

/// Runs the command line of this process and returns its exit code.
///
/// Reads the arguments and the environment, and writes to the standard streams. Does not return if
/// the call is handed to the installed git, or if a signal ends the process.
pub fn main() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    startup::run(&arguments, &[]).code()
}

/// Does the same as [`main`] for the program `pronto-server`, which also runs the commands that
/// serve.
///
/// [`main`] does not refer to these commands, so that the linker omits their code from the program
/// `pronto`.
#[cfg(feature = "serve")]
pub fn server_main() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Err(error) = programs::check_caller() {
        terminal::text::write_to_stderr(&error.render());
        return error.code().code();
    }
    startup::run(&arguments, commands::SERVED).code()
}
