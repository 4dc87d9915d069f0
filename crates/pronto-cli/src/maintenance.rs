//! Automatic maintenance after commands that add objects, and the processes of maintenance.
//! Maintenance runs in parallel to the user's next commands. No command waits for it.

mod background;
mod runner;

use std::io::Write as _;
use std::os::unix::process::CommandExt;
#[cfg(feature = "serve")]
use std::path::Path;
use std::process::Command;

use pronto::maintenance::Automatic;
use pronto::{ErrorKind, Repository};

use crate::context::BACKGROUND_VARIABLE;
use crate::{CliError, Context};

pub(crate) use background::{Background, BackgroundResult, in_background};
pub(crate) use runner::Subprocesses;

/// Starts maintenance if a task is due, detached from this process and at low priority.
///
/// If no task is due, the cost is that of [`pronto::maintenance::automatic`]. If
/// `maintenance.autoDetach` or `gc.autoDetach` is off, this function waits for the end, as git
/// does.
pub(crate) fn maintain(
    repository: &Repository,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let command = own_program(context)?;
    let decided = pronto::maintenance::automatic(repository);
    start(repository, command, decided, quiet, context)
}

/// Does the same as [`maintain`] for a repository that is not around the current directory, without
/// output.
pub(crate) fn maintain_elsewhere(
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut command = own_program(context)?;
    command
        .env("GIT_DIR", repository.git_dir())
        .current_dir(repository.git_dir());
    let decided = pronto::maintenance::automatic(repository);
    start(repository, command, decided, true, context)
}

/// Starts maintenance of a repository after a push to this server, if a task is due. Does not wait
/// for the end and reports no error: a later push tries again.
#[cfg(feature = "serve")]
pub(crate) fn maintain_served(repository: &Repository, program: &Path) {
    if !matches!(pronto::maintenance::automatic(repository), Ok(Some(_))) {
        return;
    }
    let mut command = pronto_io::child::command(program);
    command
        .args(["maintenance", "run", "--auto", "--quiet", "--no-detach"])
        .env("GIT_DIR", repository.git_dir())
        .env(BACKGROUND_VARIABLE, Background::Automatic.name())
        .current_dir(repository.git_dir());
    pronto_io::child::in_background(&mut command);
    if let Ok(mut child) = command.spawn() {
        // Without `wait`, the child process would stay a zombie while the server runs.
        let _ = std::thread::Builder::new().spawn(move || child.wait());
    }
}

/// Does the same as [`maintain`] after `fetch --refetch`, which stores objects twice. Maintenance
/// starts in any case, to repack these objects.
pub(crate) fn maintain_refetched(
    repository: &Repository,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let config = repository.config();
    let mut environment = context.environment()?;
    for (key, value) in [
        ("gc.autopacklimit", "1"),
        ("maintenance.incremental-repack.auto", "-1"),
    ] {
        if config.i64(key)? != Some(0) {
            environment.add_config_parameter(key, Some(value.as_ref()));
        }
    }
    if let Some(parameters) = environment.get(PARAMETERS) {
        context.globals.set(PARAMETERS, parameters.to_owned());
    }
    let command = own_program(context)?;
    let decided = pronto::maintenance::configured(repository);
    start(repository, command, decided, quiet, context)
}

/// The environment variable with the `-c` options of this process.
const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// Starts maintenance with `command` according to `decided`.
fn start(
    repository: &Repository,
    mut command: Command,
    decided: pronto::Result<Option<Automatic>>,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let start = match decided {
        // The command itself has succeeded, so this error does not change the exit code.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            context.report_error(&error.to_string());
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
    // If maintenance does not start or fails, a later command tries again.
    if start.detach {
        command.args(["--quiet", "--no-detach"]);
        let _ = Background::Automatic.spawn(&mut command);
    } else {
        command.args([quiet, "--no-detach"]);
        return wait(repository, command, context);
    }
    Ok(())
}

/// Runs `command`, which is this program, and waits for its end. The trace shows the name of the
/// program that users call.
fn wait(repository: &Repository, mut command: Command, context: &Context) -> Result<(), CliError> {
    // The child process may prune. A prune waits for processes that write objects, so this process
    // must not hold up the child.
    repository.objects()?.finish_writing();
    let traced = pronto_io::child::started_as("?", context.program(), &command);
    if let Ok(mut child) = command.spawn()
        && let Ok(status) = child.wait()
    {
        traced.ended(child.id(), status);
    }
    Ok(())
}

/// Creates a command that runs this program with the same options before the command.
pub(crate) fn own_program(context: &Context) -> Result<Command, CliError> {
    let program = crate::programs::own()?;
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
