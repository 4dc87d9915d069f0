//! Checks out the submodules of a new worktree with git.

use std::ffi::OsString;
use std::path::Path;

use crate::{CliError, Context, ExitCode, fallback};

/// Environment variables that refer to the repository of this command and not to the new worktree.
const OF_THIS_REPOSITORY: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
];

/// Runs `git submodule update --recursive` with additional `arguments` in the worktree at `top`.
/// Returns the exit code of git if it failed. `made` is the hint that is printed if git is not
/// installed.
///
/// # Errors
/// Fails if git is not installed or cannot be started.
pub(crate) fn update(
    top: &Path,
    arguments: &[OsString],
    made: &'static str,
    context: &Context,
) -> Result<Option<ExitCode>, CliError> {
    let git = fallback::git(&context.globals).map_err(|error| error.with_hint(made))?;
    let mut command = git.command();
    command
        .args(["submodule", "update", "--recursive"])
        .args(arguments)
        .current_dir(top)
        .stdout(context.stdout_of_children());
    for variable in OF_THIS_REPOSITORY {
        command.env_remove(variable);
    }
    let status = command.status().map_err(|error| git.cannot_run(&error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(match code {
        Some(0) => None,
        code => Some(ExitCode::new(code.unwrap_or(1))),
    })
}
