//! Hooks: programs that Git runs at certain events. The hooks of an event are those of the
//! configuration (`hook.<name>.event`) and the file in the hooks directory (`core.hooksPath`).

mod configured;
mod parallel;

use std::ffi::OsStr;
use std::io::{ErrorKind as Io, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use bstr::BString;

use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};

pub use parallel::{FinishedHook, run_parallel};

/// The events whose hooks never run in parallel, because they work on a shared file, the index or the worktree.
const SERIAL_EVENTS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "post-checkout",
    "post-commit",
    "pre-commit",
    "prepare-commit-msg",
    "push-to-checkout",
];

/// The arguments and environment of a hook run.
#[derive(Clone, Debug, Default)]
pub struct HookCall<'a> {
    /// The arguments of the hook.
    pub arguments: Vec<&'a OsStr>,
    /// The standard input of the hook; may be empty.
    pub input: Vec<u8>,
    /// The directory in which the hook runs and discovers the repository itself; by default the top of
    /// the worktree.
    pub elsewhere: Option<&'a Path>,
    /// Whether the command needs no worktree, so that the hook runs in the [working
    /// directory](Repository::working_dir) even if there is a worktree.
    pub needs_no_worktree: bool,
    /// Whether the standard output of the hook goes to that of this process, instead of to standard
    /// error.
    pub keeps_output: bool,
}

/// A program that runs at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookProgram {
    /// The command line of `hook.NAME.command`.
    Configured(BString),
    /// The file in the hooks directory.
    File(PathBuf),
}

impl HookProgram {
    /// Returns the command that runs the program in `directory`, without arguments.
    pub fn command(&self, directory: &Path) -> Command {
        match self {
            HookProgram::File(path) => pronto_io::child::command(path_from(directory, path)),
            HookProgram::Configured(line) => {
                let script = [line.as_slice(), b" \"$@\""].concat();
                let script = OsStr::from_bytes(&script);
                pronto_io::child::shell(script, OsStr::from_bytes(line))
            }
        }
    }

    /// Returns the name of the program for messages.
    fn display_path(&self, repository: &Repository) -> String {
        match self {
            HookProgram::File(path) => repository.display_path(path).display().to_string(),
            HookProgram::Configured(line) => line.to_string(),
        }
    }
}

/// Returns the hook events of Git, sorted by name.
pub fn events() -> &'static [&'static str] {
    &configured::EVENTS
}

/// Returns the programs of hook `event` in the order in which they run: those of the configuration,
/// then the file. A hook file that is not executable is reported as a notice.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if the configuration of hooks is malformed. Git runs no hook
/// in this case.
pub fn programs(repository: &Repository, event: &str) -> Result<Vec<HookProgram>> {
    let configured = configured::commands(repository.config(), event)?;
    let mut programs: Vec<HookProgram> = configured
        .into_iter()
        .map(HookProgram::Configured)
        .collect();
    programs.extend(find_file(repository, event).map(HookProgram::File));
    Ok(programs)
}

/// Returns the file of hook `name`, if it exists and is executable. A hook file that is not executable
/// is reported as a notice. As in Git, `proc-receive` can only be a file; all other hooks can also be
/// in the configuration.
pub fn find_file(repository: &Repository, name: &str) -> Option<PathBuf> {
    let path = file_of(repository, name);
    match rustix::fs::access(&path, rustix::fs::Access::EXEC_OK) {
        Ok(()) => Some(path),
        Err(rustix::io::Errno::ACCESS) => {
            let wanted = repository.advice("ignoredhook");
            if wanted.is_ok_and(|wanted| wanted.unwrap_or(true)) {
                let said = repository.display_path(&path);
                repository.notify(Notice::IgnoredHook(said));
            }
            None
        }
        Err(_) => None,
    }
}

/// Returns the number of programs of hook `event` that may run at the same time (`hook.jobs`,
/// `hook.<event>.jobs`, `hook.<name>.parallel`). Hooks that work on shared files run one at a time.
///
/// # Errors
/// As for [`programs`].
pub fn jobs(repository: &Repository, event: &str) -> Result<usize> {
    if SERIAL_EVENTS.contains(&event) {
        return Ok(1);
    }
    configured::jobs(repository.config(), event)
}

/// Returns whether hook `event` has a program, or a malformed configuration with which [`run`] fails. A
/// hook file that is not executable is reported as a notice.
pub fn has_programs(repository: &Repository, event: &str) -> bool {
    programs(repository, event).map_or(true, |programs| !programs.is_empty())
}

/// Does the same as [`has_programs`], without a notice. Costs one system call and a pass over the
/// configuration.
pub fn exists(repository: &Repository, event: &str) -> bool {
    let is_configured = configured::commands(repository.config(), event);
    is_configured.map_or(true, |commands| !commands.is_empty())
        || rustix::fs::access(file_of(repository, event), rustix::fs::Access::EXEC_OK).is_ok()
}

fn file_of(repository: &Repository, name: &str) -> PathBuf {
    repository.git_path(&format!("hooks/{name}"))
}

/// Returns the path by which a hook is executed, as in Git: relative to `directory`, in which it runs,
/// if `program` is below it. A bare file name is never returned, because it would be looked up in
/// `PATH`.
pub fn path_from<'p>(directory: &Path, program: &'p Path) -> &'p Path {
    let short = program.strip_prefix(directory).unwrap_or(program);
    match short.components().nth(1) {
        Some(_) => short,
        None => program,
    }
}

/// Runs the programs of hook `event`, and waits for all of them: one after the other, or as many at a time as
/// [`jobs`] says. Their output goes to standard error of this process; that of parallel programs is collected in memory
/// and written when a program has ended.
///
/// Returns the exit codes, combined with a bitwise or; `None` if there is no such hook. A program that
/// a signal ended counts as 128 plus the number of the signal.
///
/// # Errors
/// Fails as [`programs`] does, and with [`ErrorKind::Hook`] if a program cannot be started.
pub fn run(repository: &Repository, event: &str, call: &HookCall<'_>) -> Result<Option<i32>> {
    let programs = programs(repository, event)?;
    if programs.is_empty() {
        return Ok(None);
    }
    let mut codes = Ok(0);
    let jobs = jobs(repository, event)?;
    if jobs > 1 {
        let commands = programs
            .iter()
            .map(|program| command_of(repository, program, call));
        run_parallel(commands.collect(), &call.input, jobs, &mut |finished| {
            // A closed standard error loses messages, as for a hook that writes to it.
            let _ = std::io::stderr().write_all(&finished.output);
            codes = match (std::mem::replace(&mut codes, Ok(0)), finished.status) {
                (Ok(codes), Ok(status)) => Ok(codes | code_of(status)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        });
        return codes.map(Some);
    }
    for program in &programs {
        codes = Ok(codes? | run_program(repository, program, call)?);
    }
    codes.map(Some)
}

/// Returns the exit code of a program; 128 plus the number of the signal that ended it.
fn code_of(status: ExitStatus) -> i32 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.unwrap_or(1)
}

/// Returns the command that runs `program` for `call`, with the input and output of a program that runs alone.
fn command_of(repository: &Repository, program: &HookProgram, call: &HookCall<'_>) -> Command {
    let usual = || match repository.work_tree() {
        Some(top) if !call.needs_no_worktree => top,
        _ => repository.working_dir(),
    };
    let directory = call.elsewhere.unwrap_or_else(usual);
    let mut command = program.command(directory);
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
            false => pronto_io::child::standard_error(),
        });
    tie_in(repository, directory, &mut command);
    let at_the_top = repository.work_tree() == Some(directory) && !call.needs_no_worktree;
    if at_the_top && repository.environment().get("GIT_WORK_TREE").is_some() {
        // Git has changed to the top of the worktree.
        command.env("GIT_WORK_TREE", ".");
    }
    if call.elsewhere.is_some() {
        command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    }
    command
}

fn run_program(repository: &Repository, program: &HookProgram, call: &HookCall<'_>) -> Result<i32> {
    let mut command = command_of(repository, program, call);
    let cannot_run = |error: std::io::Error| {
        let message = format!("cannot run {}", program.display_path(repository));
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
    Ok(code_of(status))
}

/// Sets the environment variables that Git sets for child processes that work on `repository`.
pub fn tie_to(repository: &Repository, command: &mut Command) {
    tie_in(repository, Path::new(""), command);
}

/// Does the same as [`tie_to`] for a process that runs in `directory`, so that paths can be relative to
/// `directory`.
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
                true => repository.display_git_dir(),
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
