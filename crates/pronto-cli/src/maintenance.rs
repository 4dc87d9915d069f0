//! Automatic maintenance after commands that add objects, and the processes of maintenance. It runs
//! in parallel to the user's next commands: no command waits for it.

mod background;
mod runner;

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::Command;

use pronto::{ErrorKind, Repository};

use crate::context::BACKGROUND_VARIABLE;
use crate::{CliError, Context};

pub(crate) use background::{Background, Ending, in_background};
pub(crate) use runner::Subprocesses;

/// Starts maintenance if there is something to do, detached from this process and at low priority.
///
/// Without work it costs what [`Repository::automatic_maintenance`] costs. If
/// `maintenance.autoDetach` or `gc.autoDetach` is off, it waits for the end, as git does.
pub(crate) fn maintain(
    repository: &Repository,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let command = own_program(context)?;
    start(repository, command, quiet, context)
}

/// Does the same as [`maintain`] for a repository that the current directory is not in, quietly.
pub(crate) fn maintain_elsewhere(
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut command = own_program(context)?;
    command
        .env("GIT_DIR", repository.git_dir())
        .current_dir(repository.git_dir());
    start(repository, command, true, context)
}

fn start(
    repository: &Repository,
    mut command: Command,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let start = match pronto::maintenance::automatic(repository) {
        // The command itself has done its work.
        Err(error) if *error.kind() == ErrorKind::Unsupported => {
            context.complain(&error.to_string());
            return Ok(());
        }
        start => start?,
    };
    let Some(start) = start else {
        return Ok(());
    };
    context.out.flush()?;
    let quiet = if quiet { "--quiet" } else { "--no-quiet" };
    command.args(["maintenance", "run", "--auto"]);
    // If maintenance does not start, or fails, a later command tries again.
    if start.detach {
        command.args(["--quiet", "--no-detach"]);
        let _ = Background::Automatic.spawn(&mut command);
    } else {
        command.args([quiet, "--no-detach"]);
        // The child may prune, and would wait for this process.
        repository.objects()?.finish_writing();
        let traced = pronto_io::child::started("?", &command);
        if let Ok(mut child) = command.spawn()
            && let Ok(status) = child.wait()
        {
            traced.ended(child.id(), status);
        }
    }
    Ok(())
}

/// Creates a command that runs this program with the same options before the command.
pub(crate) fn own_program(context: &Context) -> Result<Command, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::fatal(format!("cannot tell what program this is: {error}")))?;
    let mut command = pronto_io::child::command(program);
    command
        .arg0(context.program())
        .envs(context.globals.variables())
        .env_remove(BACKGROUND_VARIABLE);
    if context.globals.bare {
        command.arg("--bare");
    }
    Ok(command)
}
