//! Processes of maintenance that nobody waits for.

use std::process::Command;

use pronto::{ErrorKind, Repository};

use crate::terminal_text::write_to_stderr;
use crate::{CliError, Context, ExitCode};

/// What a process in the background was started for.
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
    /// The variable that tells the process so. It is not handed on.
    pub(crate) const VARIABLE: &'static str = "PRONTO_BACKGROUND";

    /// What this process was started for, if nobody waits for it.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let value = context.globals.variable(Self::VARIABLE)?;
        let known = [Background::Automatic, Background::Rest, Background::Gc];
        known.into_iter().find(|it| value == it.name())
    }

    fn name(self) -> &'static str {
        match self {
            Background::Automatic => "automatic",
            Background::Rest => "rest",
            Background::Gc => "gc",
        }
    }

    /// Starts `command`, which runs this program, in the background.
    pub(crate) fn spawn(self, command: &mut Command) -> std::io::Result<()> {
        pronto_io::child::in_background(command);
        command.env(Self::VARIABLE, self.name());
        let traced = pronto_io::child::started("background", command);
        // Its end is for nobody to hear.
        let _ = traced;
        command.spawn().map(|_| ())
    }
}

/// How work in the background ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What was said counts as a failure, so that it is not tried again at once.
    Counts,
    /// Nobody needs to know what was said.
    Passes,
    /// There was nothing to do: an older log stays as it is.
    Idle,
}

/// Does `work` with a standard error that is the log (`gc.log`). If another process writes the log,
/// nothing is done.
pub(crate) fn in_background(
    repository: &Repository,
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<Ending, CliError>,
) -> Result<ExitCode, CliError> {
    let log = match repository.begin_gc_log() {
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
