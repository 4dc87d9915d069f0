//! Background processes of maintenance.

use std::process::Command;

use pronto::{ErrorKind, Repository};

use crate::context::BACKGROUND_VARIABLE;
use crate::terminal::text::write_to_stderr;
use crate::{CliError, Context, ExitCode};

/// The purpose of a background process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// All of maintenance: a command found work to do.
    Automatic,
    /// The rest of `maintenance run --detach`.
    Rest,
    /// The rest of `gc --detach`.
    Gc,
}

impl Background {
    /// Returns the purpose of this process, if it runs in the background.
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

    /// Starts `command`, which runs this program, in the background.
    pub(crate) fn spawn(self, command: &mut Command) -> std::io::Result<()> {
        pronto_io::child::in_background(command);
        command.env(BACKGROUND_VARIABLE, self.name());
        let traced = pronto_io::child::started("background", command);
        // No process waits for its end.
        let _ = traced;
        command.spawn().map(|_| ())
    }
}

/// The result of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its messages count as a failure, so the work is not repeated immediately.
    Counts,
    /// Its messages are discarded.
    Passes,
    /// There was nothing to do: an older log stays.
    Idle,
}

/// Runs `work` with the log (`gc.log`) as standard error. Does nothing if another process writes
/// the log.
pub(crate) fn in_background(
    repository: &Repository,
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<Ending, CliError>,
) -> Result<ExitCode, CliError> {
    let log = match pronto::maintenance::begin_gc_log(repository) {
        Err(error) if *error.kind() == ErrorKind::Locked => return Ok(ExitCode::SUCCESS),
        log => log?,
    };
    log.take_stderr()?;
    let done = work(context);
    context.report();
    let ending = match done {
        Ok(ending) => ending,
        Err(error) => {
            context.end_if_asked();
            write_to_stderr(&error.render());
            Ending::Counts
        }
    };
    match ending {
        Ending::Idle => drop(log),
        Ending::Passes => log.end(false)?,
        Ending::Counts => log.end(true)?,
    }
    Ok(match ending {
        Ending::Counts => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}
