//! Starts child processes and records them in the trace. No other module makes a [`Command`].
//!
//! A program is never taken from the current directory because of an empty or relative entry of
//! `PATH`: the current directory may be a worktree with files of an attacker.

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

/// The search path without a `PATH`.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// A directory that does not exist, and that only the administrator could make.
const NOWHERE: &str = "/nonexistent";

/// Creates a command for `program`: a path, or a name that is searched in the absolute directories
/// of `PATH`. A missing program fails to start with `ENOENT`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let path = search_path();
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is the one that starts programs"
    )]
    Command::new(searched(program, &path).unwrap_or_else(|| program.into()))
}

/// Standard error of this process, for the standard output of a child: where Git lets most hooks print. No other child
/// gets the new descriptor.
pub fn standard_error() -> Stdio {
    let copy = io::stderr().as_fd().try_clone_to_owned();
    copy.map_or(Stdio::null(), Stdio::from)
}

/// A command that lets the shell run `script`, which sees `name` as `$0` and later arguments as
/// `$1` and so on.
pub fn shell(script: impl AsRef<OsStr>, name: impl AsRef<OsStr>) -> Command {
    let mut command = command("/bin/sh");
    command.arg("-c").arg(script).arg(name);
    command
}

/// Returns whether a shell is needed to run the command line `line`, as Git decides: whether it has a
/// character that means something to a shell.
pub fn needs_shell(line: &[u8]) -> bool {
    line.iter()
        .any(|byte| b"|&;<>()$`\\\"' \t\n*?[#~=%".contains(byte))
}

/// Starts `command`. As in Git, a program that the kernel cannot run because it has no interpreter line
/// (`ENOEXEC`) is a script for `/bin/sh`.
///
/// # Errors
/// Neither can be started.
pub fn spawn(command: &mut Command) -> io::Result<Process> {
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            script::run_by_shell(command)?;
            command.spawn()
        }
        started => started,
    }
}

/// Runs `command` like [`spawn`], and waits for its end.
///
/// # Errors
/// It cannot be started.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    let mut process = spawn(command)?;
    // A program that reads its input to the end must not wait for this process.
    drop(process.stdin.take());
    process.wait()
}

/// The niceness that a background process adds.
const NICENESS: i32 = 10;

/// Makes `command` run in the background: without streams, in a session of its own, so that neither
/// a signal from the terminal nor its end stops it, and with low priority for the processor and,
/// where the kernel supports that, for the disk.
pub fn in_background(command: &mut Command) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between `fork` and `exec` only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            // What the kernel refuses is done without.
            let _ = rustix::process::setsid();
            let _ = rustix::process::setpriority_process(None, NICENESS);
            leave_disk_to_others();
            Ok(())
        });
    }
}

/// Gives this process the input and output class `idle`.
fn leave_disk_to_others() {
    #[cfg(target_os = "linux")]
    {
        const THIS_PROCESS: libc::c_int = 1;
        const IDLE: libc::c_int = 3 << 13;
        // SAFETY: it takes no pointers. A kernel without it returns an error.
        let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, THIS_PROCESS, 0, IDLE) };
    }
}

/// The path of the program `name` in the absolute directories of `PATH`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    find_where(name, |_| true)
}

/// Returns the first program called `name` in the absolute directories of `PATH` that `accept` takes. Looks at no
/// directory after that.
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

/// Returns the path of `program`; `None` if the system's own search gives the same.
fn searched(program: &OsStr, path: &OsStr) -> Option<OsString> {
    let is_path = program.is_empty() || program.as_bytes().contains(&b'/');
    if is_path || std::env::split_paths(path).all(|directory| directory.is_absolute()) {
        return None;
    }
    let found = find_in(program, path).next();
    Some(found.map_or_else(|| Path::new(NOWHERE).join(program).into(), Into::into))
}

/// Returns the metadata of the executable file that `file` leads to.
pub fn executable(file: &Path) -> Option<Metadata> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(file).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(metadata)
}

/// A child process known to the trace; call [`ended`](Self::ended) once. Costs a load and a branch
/// without a subscriber.
#[derive(Clone, Copy, Debug)]
#[must_use = "the trace expects to hear of its end"]
pub struct Child(Option<(u64, Instant)>);

/// Records in the trace that `command` is about to be started, as a child of `class` ("hook",
/// "transport/ssh", "filter": Git's names where they exist).
pub fn started(class: &str, command: &Command) -> Child {
    started_as(class, &command.get_program().to_string_lossy(), command)
}

/// Does the same as [`started`] for a `command` that the trace knows as `program`.
pub fn started_as(class: &str, program: &str, command: &Command) -> Child {
    if !tracing::enabled!(target: "pronto::child", tracing::Level::INFO) {
        return Child(None);
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
    Child(Some((id, Instant::now())))
}

impl Child {
    /// Records in the trace how process number `pid` ended.
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
        // A path is the caller's choice.
        assert_eq!(searched("./sh".as_ref(), ".".as_ref()), None);
    }

    #[test]
    fn a_program_of_the_current_directory_is_not_found() {
        // Tests run in the directory of the crate, which has a file of this name.
        let found = searched("Cargo.toml".as_ref(), ".:".as_ref());
        let found = found.expect("the path is relative");
        assert_eq!(found, OsStr::new("/nonexistent/Cargo.toml"));
        let error = command(found).spawn().expect_err("it is nowhere");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
