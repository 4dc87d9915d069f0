//! Hooks: programs that the repository runs at certain points.

use std::ffi::OsStr;
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};

/// A call of a hook.
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// The arguments of the hook.
    pub arguments: Vec<&'a OsStr>,
    /// The standard input; nothing if empty.
    pub input: Vec<u8>,
    /// Variables beyond those that tie it to the repository.
    pub variables: Vec<(&'a str, &'a OsStr)>,
    /// The directory in which the hook runs and discovers the repository by itself; by default the
    /// top of the worktree.
    pub elsewhere: Option<&'a Path>,
    /// Whether the command needs no worktree, so that the hook runs in the
    /// [working directory](Repository::working_dir) even if the worktree is elsewhere.
    pub needs_no_worktree: bool,
    /// Whether its standard output is that of this process, instead of its standard error.
    pub keeps_output: bool,
}

/// Returns the program of hook `name`, if it exists and is executable. One that is not executable
/// is recorded as a remark of the repository.
pub fn find(repository: &Repository, name: &str) -> Option<PathBuf> {
    let path = repository.git_path(&format!("hooks/{name}"));
    match rustix::fs::access(&path, rustix::fs::Access::EXEC_OK) {
        Ok(()) => Some(path),
        Err(rustix::io::Errno::ACCESS) => {
            let wanted = repository.config().bool("advice.ignoredhook");
            if wanted.is_ok_and(|wanted| wanted.unwrap_or(true)) {
                let said = repository.spoken(&path);
                repository.notify(Notice::IgnoredHook(said));
            }
            None
        }
        Err(_) => None,
    }
}

/// Whether there is a program for hook `name` that can be run. Costs one system call.
pub fn exists(repository: &Repository, name: &str) -> bool {
    let path = repository.git_path(&format!("hooks/{name}"));
    rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns the path by which a hook is called, as in Git: from the directory in which it runs, if it is
/// below. A name alone would be looked up in `PATH`, so it is never returned.
pub fn path_from<'p>(directory: &Path, program: &'p Path) -> &'p Path {
    let short = program.strip_prefix(directory).unwrap_or(program);
    match short.components().nth(1) {
        Some(_) => short,
        None => program,
    }
}

/// Runs hook `name` if there is one and waits for it. Its output goes to standard error of
/// this process.
///
/// Returns the exit code, or `None` when there is no such hook. A hook ended by a signal counts as
/// 128 and the number of the signal.
///
/// # Errors
/// It cannot be started.
pub fn run(repository: &Repository, name: &str, call: &Call<'_>) -> Result<Option<i32>> {
    let Some(path) = find(repository, name) else {
        return Ok(None);
    };
    let usual = || match repository.work_tree() {
        Some(top) if !call.needs_no_worktree => top,
        _ => repository.working_dir(),
    };
    let directory = call.elsewhere.unwrap_or_else(usual);
    let stderr = std::io::stderr();
    let mut command = pronto_io::child::command(path_from(directory, &path));
    command
        .args(&call.arguments)
        .current_dir(directory)
        .stdin(if call.input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(match call.keeps_output {
            true => Stdio::inherit(),
            false => rustix::io::dup(&stderr).map_or(Stdio::null(), Stdio::from),
        });
    tie_in(repository, directory, &mut command);
    let at_the_top = repository.work_tree() == Some(directory) && !call.needs_no_worktree;
    if at_the_top && repository.environment().get("GIT_WORK_TREE").is_some() {
        // As in Git, which has gone there.
        command.env("GIT_WORK_TREE", ".");
    }
    if call.elsewhere.is_some() {
        command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    }
    command.envs(call.variables.iter().copied());
    let cannot_run = |error: std::io::Error| {
        let message = format!("cannot run {}", repository.spoken(&path).display());
        Error::new(ErrorKind::Hook, message).because(error)
    };
    let traced = pronto_io::child::started("hook", &command);
    let mut child = pronto_io::child::spawn(&mut command).map_err(cannot_run)?;
    if let Some(mut input) = child.stdin.take()
        && let Err(error) = input.write_all(&call.input)
        && error.kind() != Io::BrokenPipe
    {
        return Err(cannot_run(error));
    }
    let status = child.wait().map_err(cannot_run)?;
    traced.ended(child.id(), status);
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(Some(code.unwrap_or(1)))
}

/// Gives a child process the environment that Git gives those that work on `repository`.
pub fn tie_to(repository: &Repository, command: &mut Command) {
    tie_in(repository, Path::new(""), command);
}

/// Does the same as [`tie_to`] for a process that runs in `directory`, so that paths can be relative to it.
fn tie_in(repository: &Repository, directory: &Path, command: &mut Command) {
    for (name, value) in repository.environment().changes() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if !repository.is_plain() {
        let is_here = directory == repository.working_dir();
        command.env(
            "GIT_DIR",
            match is_here {
                true => repository.spoken_git_dir(),
                false => repository.git_dir(),
            },
        );
        if let (Some(top), Some(_), false) = (
            repository.work_tree(),
            repository.environment().get("GIT_WORK_TREE"),
            is_here,
        ) {
            command.env("GIT_WORK_TREE", top);
        }
    }
    command.env(
        "GIT_PREFIX",
        crate::path::from_bytes(&repository.prefix_or_empty()),
    );
}
