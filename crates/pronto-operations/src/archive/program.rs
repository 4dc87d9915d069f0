//! Runs the filter program of a configured archive format (`tar.<format>.command`).

mod pipes;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use bstr::BStr;
use pronto_io::error::OsReason;
use pronto_io::watch::Watch;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{Event, OnArchiveEvent, check, from_output};
use crate::{Error, ErrorKind, Result};
use pipes::{PipeInput, PipeOutput, PipeState};

/// The size of the pieces in which streams are copied.
const PIECE_BYTES: usize = 1 << 16;

/// The longest interval between two checks whether the program has ended.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A shell command that filters an archive.
pub(super) struct FilterProgram<'a> {
    pub(super) line: &'a BStr,
    /// The directory in which the command runs.
    pub(super) directory: &'a Path,
    /// The current directory of the caller, relative to the top of the worktree.
    pub(super) prefix: &'a BStr,
    /// Whether the archive is served to a client, so that `directory` is the git directory.
    pub(super) is_served: bool,
}

/// The receivers of the program's output.
pub(super) struct ProgramStreams<'a> {
    pub(super) output: &'a mut (dyn Write + Send),
    pub(super) events: &'a OnArchiveEvent<'a>,
}

/// A function that writes the archive to the standard input of the program.
type ProduceArchive<'a> = dyn FnMut(&mut dyn Write) -> Result<()> + 'a;

/// A running program, which is killed on drop.
struct FilterProcess {
    child: Child,
    /// Whether the program has its own process group, which only its descendants share.
    has_group: bool,
    /// Whether the program was waited for, so that its process id may be reused.
    is_gone: bool,
}

/// The standard streams of a program.
struct ProgramPipes {
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
}

/// The results of running a filter.
struct Course {
    /// The result of writing the archive.
    produced: Result<()>,
    /// The result of copying the output of the program.
    copied: io::Result<()>,
    /// Whether the program did not read its whole input.
    is_closed: bool,
    /// The exit status; `None` if the system does not report it.
    status: Option<ExitStatus>,
}

impl FilterProgram<'_> {
    /// Pipes the archive that `produce` writes through the program, and copies its output to the
    /// streams. On a failure or an interruption, kills the program and its descendants in its
    /// process group. The program has its own group unless this process has a terminal.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the program cannot be started or fails, or the output fails,
    /// with [`ErrorKind::Interrupted`] if the operation is interrupted, and with the error of
    /// `produce`.
    pub(super) fn filter(
        &self,
        streams: ProgramStreams<'_>,
        produce: &mut ProduceArchive<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let mut command = self.command();
        let has_group = self.is_served || File::open("/dev/tty").is_err();
        if has_group {
            command.process_group(0);
        }
        let traced = pronto_io::child::started("archive", &command);
        let child = pronto_io::child::spawn(&mut command).map_err(|error| {
            let message = format!("unable to start '{}' filter", self.line);
            Error::new(ErrorKind::Io, message).because(OsReason(error))
        })?;
        let mut running = FilterProcess {
            child,
            has_group,
            is_gone: false,
        };
        let pid = running.child.id();
        let course = running.run(streams, produce, watch)?;
        if let Some(status) = course.status {
            traced.ended(pid, status);
        }
        check(watch)?;
        self.judge(course)
    }

    fn judge(&self, course: Course) -> Result<()> {
        course.copied.map_err(from_output)?;
        let succeeded = course.status.is_some_and(|status| status.success());
        // A program that fails may leave its input unread.
        if !succeeded && (course.is_closed || course.produced.is_ok()) {
            let message = format!("'{}' filter reported error", self.line);
            return Err(Error::new(ErrorKind::Io, message));
        }
        course.produced
    }

    fn command(&self) -> Command {
        let line = OsStr::from_bytes(self.line);
        let mut command = match pronto_io::child::needs_shell(self.line) {
            true => pronto_io::child::shell(line, line),
            false => pronto_io::child::command(line),
        };
        command.current_dir(self.directory);
        match self.is_served {
            true => command.env("GIT_DIR", "."),
            false => command.env("GIT_PREFIX", OsStr::from_bytes(self.prefix)),
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl FilterProcess {
    fn run(
        &mut self,
        streams: ProgramStreams<'_>,
        produce: &mut ProduceArchive<'_>,
        watch: &Watch<'_>,
    ) -> Result<Course> {
        let ProgramStreams { output, events } = streams;
        let pipes = self.take_pipes().ok_or_else(no_pipe)?;
        let state = PipeState::new(watch.interrupt());
        let (never, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut made = PipeOutput {
            pipe: pipes.output,
            state: &state,
            is_over: &never,
        };
        let mut said = PipeOutput {
            pipe: pipes.errors,
            state: &state,
            is_over: &is_over,
        };
        let input = PipeInput::new(pipes.input, &state).map_err(|_| no_pipe())?;
        let mut input = BufWriter::with_capacity(PIECE_BYTES, input);
        std::thread::scope(|scope| {
            let forwarder = spawn(scope, &state, move || forward_errors(&mut said, events))?;
            let copying = spawn(scope, &state, || copy(&mut made, output, &state))?;
            let produced = produce(&mut input);
            let produced = produced.and_then(|()| input.flush().map_err(from_output));
            let (input, _) = input.into_parts();
            let is_closed = input.is_closed();
            drop(input);
            if produced.is_err() && !is_closed {
                state.give_up();
            }
            let crashed = |_| {
                Err(io::Error::other(
                    "internal error: the copying thread panicked",
                ))
            };
            let copied = copying.join().unwrap_or_else(crashed);
            let status = self.wait(&state);
            is_over.store(true, Relaxed);
            let _ = forwarder.join();
            Ok(Course {
                produced,
                copied,
                is_closed,
                status,
            })
        })
    }

    fn take_pipes(&mut self) -> Option<ProgramPipes> {
        Some(ProgramPipes {
            input: self.child.stdin.take()?,
            output: self.child.stdout.take()?,
            errors: self.child.stderr.take()?,
        })
    }

    /// Waits for the end of the program, and kills its process group if the program or the archive
    /// has failed. Returns `None` if the system does not report the status, because this process
    /// ignores `SIGCHLD`.
    fn wait(&mut self, state: &PipeState<'_>) -> Option<ExitStatus> {
        let id = WaitId::Pid(self.pid()?);
        let mut pause = Duration::from_millis(1);
        while !state.has_failed() {
            // The process keeps its id until it is waited for, so that its process group can be
            // killed.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(id.clone(), options) {
                Ok(Some(ended)) => {
                    if ended.exit_status() != Some(0) {
                        self.end();
                    }
                    break;
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.is_gone = true;
                    return None;
                }
            }
            std::thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        if state.has_failed() {
            self.end();
        }
        self.is_gone = true;
        self.child.wait().ok()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Kills the program and the other processes of its group.
    fn end(&mut self) {
        match self.pid().filter(|_| self.has_group && !self.is_gone) {
            Some(group) => _ = kill_process_group(group, Signal::KILL),
            None => _ = self.child.kill(),
        }
    }
}

impl Drop for FilterProcess {
    fn drop(&mut self) {
        if !self.is_gone {
            self.end();
            let _ = self.child.wait();
        }
    }
}

fn no_pipe() -> Error {
    Error::new(ErrorKind::Io, "unable to create pipe")
}

/// Starts a thread. If that fails, the threads that were started before end.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    state: &PipeState<'_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| {
        state.give_up();
        let message = "cannot start a thread for the archive";
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })
}

/// Passes on the standard error of the program.
fn forward_errors(said: &mut impl Read, events: &OnArchiveEvent<'_>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = said.read(&mut piece) {
        events(Event::ErrorOutput(piece.get(..count).unwrap_or_default()));
    }
}

/// Copies the output of the program while it is produced. The first error stops the archive. An
/// archive that has failed before keeps its own error.
fn copy(
    made: &mut impl Read,
    output: &mut (dyn Write + Send),
    state: &PipeState<'_>,
) -> io::Result<()> {
    match io::copy(made, output) {
        Err(_) if state.has_failed() => Ok(()),
        Err(error) => {
            state.give_up();
            Err(error)
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pronto_io::interrupt::Interrupt;
    use std::sync::Mutex;
    use std::time::Instant;

    /// A program of a served repository, what it wrote, and its result.
    struct Case {
        directory: tempfile::TempDir,
        output: Vec<u8>,
        errors: Vec<u8>,
        result: Result<()>,
    }

    impl Case {
        /// Runs `line` with `bytes` zeros as the archive. The archive fails after these bytes if
        /// `fails` is set, and is interrupted when the program prints "stop".
        fn new(line: &str, bytes: usize, fails: bool) -> Case {
            let interrupt = Interrupt::new();
            let directory = tempfile::tempdir().expect("a directory");
            let (mut output, errors) = (Vec::new(), Mutex::new(Vec::new()));
            let events = |event: Event<'_>| {
                if let Event::ErrorOutput(text) = event {
                    let mut errors = errors.lock().expect("no panic");
                    errors.extend_from_slice(text);
                    if errors.ends_with(b"stop\n") {
                        interrupt.trigger();
                    }
                }
            };
            let program = FilterProgram {
                line: line.into(),
                directory: directory.path(),
                prefix: "".into(),
                is_served: true,
            };
            let streams = ProgramStreams {
                output: &mut output,
                events: &events,
            };
            let mut produce = |input: &mut dyn Write| {
                let written = input.write_all(&vec![0; bytes]);
                written.and_then(|()| input.flush()).map_err(from_output)?;
                match fails {
                    true => Err(Error::new(ErrorKind::Object, "a blob is missing")),
                    false => Ok(()),
                }
            };
            let watch = Watch::from(&interrupt);
            let result = program.filter(streams, &mut produce, &watch);
            Case {
                errors: errors.into_inner().expect("no panic"),
                directory,
                output,
                result,
            }
        }

        fn kind(&self) -> Option<ErrorKind> {
            self.result.as_ref().err().map(|error| error.kind())
        }

        /// Waits until the processes whose ids are in the file `pids` have ended. A killed process
        /// may still exist for a moment.
        fn check_ends(&self) {
            let pids = std::fs::read_to_string(self.directory.path().join("pids"));
            let pids = pids.expect("the program has started");
            assert!(!pids.is_empty());
            for pid in pids.split_whitespace() {
                let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
                let begun = Instant::now();
                while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
                    assert!(begun.elapsed() < Duration::from_secs(60), "{pid} is left");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Starts another process, and waits for it.
    const FAMILY: &str = "sleep 1000 & echo $! $$ >pids; ";

    #[test]
    fn a_program_filters_an_archive() {
        let case = Case::new("wc -c; echo said >&2", 1_000_000, false);
        case.result.expect("it succeeds");
        assert_eq!(case.output.trim_ascii(), b"1000000");
        assert_eq!(case.errors, b"said\n");
        let case = Case::new("wc -c; false", 1, false);
        assert_eq!(case.kind(), Some(ErrorKind::Io));
    }

    #[test]
    fn a_program_may_end_early() {
        for line in ["head -c 1", "true", "exec <&-; echo x", "kill -KILL $$"] {
            let case = Case::new(line, 10_000_000, false);
            assert_eq!(case.kind(), Some(ErrorKind::Io), "{line}");
        }
    }

    #[test]
    fn the_group_of_the_program_ends_with_an_archive_that_fails() {
        let line = format!("{FAMILY}cat >/dev/null; wait");
        // The program reads its input, so it has started its child already.
        let case = Case::new(&line, 10_000_000, true);
        assert_eq!(case.kind(), Some(ErrorKind::Object));
        case.check_ends();
        // A program that fails leaves no process behind, either.
        let line = format!("exec >&-; {FAMILY}exit 1");
        let case = Case::new(&line, 0, false);
        assert_eq!(case.kind(), Some(ErrorKind::Io));
        case.check_ends();
    }

    #[test]
    fn the_group_of_the_program_ends_with_an_interrupted_archive() {
        // The first does not read, the second does not write, and the third does not end.
        for (rest, bytes) in [
            ("wait", 10_000_000),
            ("wait", 1),
            ("exec >&- 2>&-; wait", 1),
        ] {
            let case = Case::new(&format!("{FAMILY}echo stop >&2; {rest}"), bytes, false);
            assert_eq!(case.kind(), Some(ErrorKind::Interrupted));
            case.check_ends();
        }
    }
}
