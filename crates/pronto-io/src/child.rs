//! Starts child processes and records them in the trace. No other module creates a [`Command`].
//!
//! Empty and relative entries of `PATH` are skipped when a program is searched, because the current
//! directory may be a worktree with files of an attacker.

mod script;

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The search path if `PATH` is not set.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// A directory that does not exist. Only the administrator can create it.
const NOWHERE: &str = "/nonexistent";

/// Creates a command for `program`, which is a path, or a name that is searched in the absolute
/// directories of `PATH`. If the program does not exist, the start fails with `ENOENT`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let path = search_path();
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is the one that starts programs"
    )]
    Command::new(searched(program, &path).unwrap_or_else(|| program.into()))
}

/// Returns a duplicate of this process's standard error, to be used as the standard output of a
/// child. Git runs most hooks this way. No other child inherits the new descriptor.
pub fn standard_error() -> Stdio {
    let copy = io::stderr().as_fd().try_clone_to_owned();
    copy.map_or(Stdio::null(), Stdio::from)
}

/// Creates a command that runs `script` in the shell. The script sees `name` as `$0` and later
/// arguments as `$1` and so on.
pub fn shell(script: impl AsRef<OsStr>, name: impl AsRef<OsStr>) -> Command {
    let mut command = command("/bin/sh");
    command.arg("-c").arg(script).arg(name);
    command
}

/// Returns whether the command line `line` needs a shell, by Git's rule: whether `line` contains a
/// shell metacharacter.
pub fn needs_shell(line: &[u8]) -> bool {
    line.iter()
        .any(|byte| b"|&;<>()$`\\\"' \t\n*?[#~=%".contains(byte))
}

/// Starts `command`. As in Git, a program that the kernel refuses with `ENOEXEC`, because the file
/// has no interpreter line, runs as a script of `/bin/sh`.
///
/// # Errors
/// Fails with the error of `execve(2)` if the program cannot be started, neither directly nor by
/// the shell.
pub fn spawn(command: &mut Command) -> io::Result<Process> {
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            script::run_by_shell(command)?;
            command.spawn()
        }
        started => started,
    }
}

/// Runs `command` like [`spawn`], and waits until the process exits.
///
/// # Errors
/// Fails with the errors of [`spawn`] and of `waitpid(2)`.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    let mut process = spawn(command)?;
    // Close the pipe first: a program that reads standard input to the end would never exit.
    drop(process.stdin.take());
    process.wait()
}

/// The increment of the niceness of a background process.
const NICENESS: i32 = 10;

/// Makes `command` run in the background: without standard streams, in a new session, and with low
/// CPU priority. Because of the session, neither a signal from the terminal nor the end of the
/// terminal stops the process. The disk priority is low, too, if the kernel supports that.
pub fn in_background(command: &mut Command) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between `fork` and `exec` only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            // Errors are ignored: each of these calls is an optimisation.
            let _ = rustix::process::setsid();
            let _ = rustix::process::setpriority_process(None, NICENESS);
            leave_disk_to_others();
            Ok(())
        });
    }
}

/// Sets the I/O scheduling class of this process to `idle`.
fn leave_disk_to_others() {
    #[cfg(target_os = "linux")]
    {
        const THIS_PROCESS: libc::c_int = 1;
        const IDLE: libc::c_int = 3 << 13;
        // SAFETY: the call takes no pointers. A kernel without this call returns an error.
        let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, THIS_PROCESS, 0, IDLE) };
    }
}

/// Returns the path of the program `name` in the absolute directories of `PATH`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    find_where(name, |_| true)
}

/// Returns the first program called `name` in the absolute directories of `PATH` that `accept`
/// accepts. The search stops at that program.
pub fn find_where(name: &OsStr, mut accept: impl FnMut(&Metadata) -> bool) -> Option<PathBuf> {
    let path = search_path();
    let mut found = candidates(name, &path);
    found.find(|file| executable(file).is_some_and(|metadata| accept(&metadata)))
}

fn search_path() -> OsString {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is searched for programs belongs to starting them"
    )]
    std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into())
}

fn find_in<'a>(name: &'a OsStr, path: &'a OsStr) -> impl Iterator<Item = PathBuf> + 'a {
    candidates(name, path).filter(|file| executable(file).is_some())
}

fn candidates<'a>(name: &'a OsStr, path: &'a OsStr) -> impl Iterator<Item = PathBuf> + 'a {
    let absolute = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    absolute.map(move |directory| directory.join(name))
}

/// Returns the path of `program`, or `None` if the search of the operating system gives the same
/// result.
fn searched(program: &OsStr, path: &OsStr) -> Option<OsString> {
    let is_path = program.is_empty() || program.as_bytes().contains(&b'/');
    if is_path || std::env::split_paths(path).all(|directory| directory.is_absolute()) {
        return None;
    }
    let found = find_in(program, path).next();
    Some(found.map_or_else(|| Path::new(NOWHERE).join(program).into(), Into::into))
}

/// Returns the metadata of `file` if it is an executable file. Symbolic links are followed.
pub fn executable(file: &Path) -> Option<Metadata> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(file).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(metadata)
}

/// A child process that is recorded in the trace. Call [`ended`](Self::ended) once. Costs a load
/// and a branch if there is no subscriber.
#[derive(Clone, Copy, Debug)]
#[must_use = "the trace expects to hear of its end"]
pub struct TracedChild(Option<(u64, Instant)>);

/// Records the start of `command` in the trace, as a child of `class` ("hook", "transport/ssh",
/// "filter"; Git's class names where Git has them).
pub fn started(class: &str, command: &Command) -> TracedChild {
    started_as(class, &command.get_program().to_string_lossy(), command)
}

/// Records the start of `command` like [`started`], under the program name `program`.
pub fn started_as(class: &str, program: &str, command: &Command) -> TracedChild {
    if !tracing::enabled!(target: "pronto::child", tracing::Level::INFO) {
        return TracedChild(None);
    }
    static ISSUED: AtomicU64 = AtomicU64::new(0);
    let id = ISSUED.fetch_add(1, Relaxed);
    let mut arguments = program.to_owned();
    for argument in command.get_args().map(OsStr::to_string_lossy) {
        arguments.push('\0');
        arguments.push_str(&argument);
    }
    let argv = arguments.as_str();
    match command.get_current_dir() {
        Some(directory) => {
            let cd = &*directory.to_string_lossy();
            tracing::info!(target: "pronto::child", id, class, cd, argv);
        }
        None => tracing::info!(target: "pronto::child", id, class, argv),
    }
    TracedChild(Some((id, Instant::now())))
}

impl TracedChild {
    /// Records in the trace the exit status of the process `pid`.
    pub fn ended(self, pid: u32, status: ExitStatus) {
        let Some((id, begun)) = self.0 else {
            return;
        };
        let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
        let code = i64::from(status.code().unwrap_or_else(by_signal));
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let pid = u64::from(pid);
        tracing::info!(target: "pronto::child", id, pid, code, micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_entries_of_the_path_are_passed_over() {
        let name = OsStr::new("sh");
        assert_eq!(searched(name, "/usr/bin:/bin".as_ref()), None);
        for path in [":/bin", "/bin:", ".:/bin", "bin:/bin:", "/bin::/usr/bin"] {
            let found = searched(name, path.as_ref());
            assert_eq!(found.as_deref(), Some(OsStr::new("/bin/sh")), "{path}");
        }
        // A path with a slash is used as it is.
        assert_eq!(searched("./sh".as_ref(), ".".as_ref()), None);
    }

    #[test]
    fn a_program_of_the_current_directory_is_not_found() {
        // Tests run in the directory of the crate, which contains a file with this name.
        let found = searched("Cargo.toml".as_ref(), ".:".as_ref());
        let found = found.expect("the path is relative");
        assert_eq!(found, OsStr::new("/nonexistent/Cargo.toml"));
        let error = command(found).spawn().expect_err("it is nowhere");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
