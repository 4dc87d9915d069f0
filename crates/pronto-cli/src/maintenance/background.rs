//! The background processes of maintenance.

use std::process::Command;

use pronto::{ErrorKind, Repository};

use crate::context::BACKGROUND_VARIABLE;
use crate::terminal::text::write_to_stderr;
use crate::{CliError, Context, ExitCode};

/// The purpose of a background process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// A whole automatic maintenance, because a task is due.
    Automatic,
    /// The background part of `maintenance run --detach`.
    Rest,
    /// The background part of `gc --detach`.
    Gc,
}

impl Background {
    /// Returns the purpose of this process, or `None` if it does not run in the background.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let value = context.globals.variable(BACKGROUND_VARIABLE)?;
        let known = [Background::Automatic, Background::Rest, Background::Gc];
        known.into_iter().find(|it| value == it.name())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Background::Automatic => "automatic",
            Background::Rest => "rest",
            Background::Gc => "gc",
        }
    }

    /// Starts `command`, which runs this program, as a background process.
    pub(crate) fn spawn(self, command: &mut Command) -> std::io::Result<()> {
        pronto_io::child::in_background(command);
        command.env(BACKGROUND_VARIABLE, self.name());
        let traced = pronto_io::child::started("background", command);
        // This process does not wait for the end of the background process.
        let _ = traced;
        command.spawn().map(|_| ())
    }
}

/// The effect of background work on `gc.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackgroundResult {
    /// The messages of the work count as a failure, so that the work is not repeated immediately.
    Counts,
    /// The messages of the work are discarded.
    Passes,
    /// No task was due. An older log is kept.
    Idle,
}

/// Runs `work` with `gc.log` as standard error. Does nothing if another process holds the lock of
/// the log.
pub(crate) fn in_background(
    repository: &Repository,
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<BackgroundResult, CliError>,
) -> Result<ExitCode, CliError> {
    let log = match pronto::maintenance::begin_gc_log(repository) {
        Err(error) if error.kind() == ErrorKind::Locked => return Ok(ExitCode::SUCCESS),
        log => log?,
    };
    log.take_stderr()?;
    let done = work(context);
    context.report();
    let ending = match done {
        Ok(ending) => ending,
        Err(error) => {
            context.exit_if_signalled();
            write_to_stderr(&error.render());
            BackgroundResult::Counts
        }
    };
    match ending {
        BackgroundResult::Idle => drop(log),
        BackgroundResult::Passes => log.end(false)?,
        BackgroundResult::Counts => log.end(true)?,
    }
    Ok(match ending {
        BackgroundResult::Counts => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}
