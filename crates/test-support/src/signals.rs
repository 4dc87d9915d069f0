//! Starts processes with signal dispositions that do not depend on how the tests are started. Under
//! `nohup` the processes would ignore SIGHUP; in the background of a shell without job control,
//! SIGINT and SIGQUIT.

use std::ffi::OsStr;
use std::process::Command;

/// Creates a command that runs `program` with the default action for each signal.
#[must_use]
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.args(DEFAULT_SIGNALS).arg(program);
    command
}

/// Creates a command that runs `program` with the default action for each signal except `ignored`
/// (such as `HUP`).
#[must_use]
pub fn ignoring_signal(ignored: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    let ignored = format!("--ignore-signal={ignored}");
    command.args(DEFAULT_SIGNALS).arg(ignored).arg(program);
    command
}

/// The arguments of `env` before the program.
pub const DEFAULT_SIGNALS: [&str; 1] = ["--default-signal"];
