//! Runs a signing program with its input and output, an interrupt and a deadline.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pronto_config::Environment;
use pronto_io::interrupt::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// The maximum size of each output, which is much larger than the real output.
const MOST_OUTPUT_BYTES: usize = 1 << 20;

/// The interval between two checks of the interrupt.
const TICK: Duration = Duration::from_millis(50);

/// The environment in which programs run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramContext<'a> {
    /// The working directory of the programs.
    pub(crate) directory: &'a Path,
    /// The changes of their environment, compared with that of this process.
    pub(crate) environment: &'a Environment,
    /// The interrupt, which kills the programs.
    pub(crate) interrupt: &'a Interrupt,
    /// Whether the programs run without a terminal. Their whole process group is then killed.
    pub(crate) is_detached: bool,
    /// The deadline, at which the programs are killed.
    pub(crate) deadline: Option<Instant>,
}

/// The exit status and the output of a program.
pub(crate) struct ProgramOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl ProgramContext<'_> {
    /// Runs a program with the input `input`, and waits for its exit.
    ///
    /// # Errors
    /// Fails if the program cannot be started, if its output is too large, or if the program was
    /// killed by the interrupt (see [`is_interrupted`]) or at the deadline.
    pub(crate) fn run(&self, mut command: Command, input: &[u8]) -> io::Result<ProgramOutput> {
        for (name, value) in self.environment.changes() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .current_dir(self.directory)
            .stdin(match input.is_empty() {
                true => Stdio::null(),
                false => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.is_detached {
            command.process_group(0);
        }
        let traced = pronto_io::child::started("?", &command);
        let mut running = RunningProgram {
            child: pronto_io::child::spawn(&mut command)?,
            is_group: self.is_detached,
            has_ended: false,
        };
        let (stdout, stderr) = self.exchange(&mut running.child, input)?;
        let status = self.wait(&mut running)?;
        traced.ended(running.child.id(), status);
        Ok(ProgramOutput {
            status,
            stdout,
            stderr,
        })
    }

    /// Writes the input and reads both outputs, in the order in which the streams become ready.
    fn exchange(&self, child: &mut Child, input: &[u8]) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut stdin = child.stdin.take();
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        if let Some(stdin) = &stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        let (mut printed, mut reported) = (Vec::new(), Vec::new());
        let mut left = input;
        while stdout.is_some() || stderr.is_some() {
            self.check()?;
            let ready = ready(stdin.as_ref(), stdout.as_ref(), stderr.as_ref())?;
            if ready.stdin && !write_some(stdin.as_mut(), &mut left)? {
                stdin = None;
            }
            if ready.stdout && !read_some(stdout.as_mut(), &mut printed)? {
                stdout = None;
            }
            if ready.stderr && !read_some(stderr.as_mut(), &mut reported)? {
                stderr = None;
            }
        }
        Ok((printed, reported))
    }

    /// Fails if the interrupt is triggered or the deadline has passed.
    fn check(&self) -> io::Result<()> {
        if self.interrupt.is_triggered() {
            return Err(interrupted());
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(io::Error::other("timeout: it is still running"))
            }
            _ => Ok(()),
        }
    }

    fn wait(&self, running: &mut RunningProgram) -> io::Result<ExitStatus> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = running.child.try_wait()? {
                running.has_ended = true;
                return Ok(status);
            }
            self.check()?;
            std::thread::sleep(pause);
            pause = TICK.min(pause * 2);
        }
    }
}

fn interrupted() -> io::Error {
    // Callers would retry after `ErrorKind::Interrupted`.
    io::Error::other(pronto_io::interrupt::Interrupted)
}

/// Returns whether the error means that the interrupt has killed the program.
pub(crate) fn is_interrupted(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<pronto_io::interrupt::Interrupted>())
}

/// The streams that are ready for reading or writing.
#[derive(Default)]
struct ReadyStreams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

/// Waits until a stream is ready, at most until the next check of the interrupt.
fn ready(
    stdin: Option<&impl AsFd>,
    stdout: Option<&impl AsFd>,
    stderr: Option<&impl AsFd>,
) -> io::Result<ReadyStreams> {
    let mut polled = Vec::with_capacity(3);
    polled.extend(stdin.map(|stream| PollFd::new(stream, PollFlags::OUT)));
    polled.extend(stdout.map(|stream| PollFd::new(stream, PollFlags::IN)));
    polled.extend(stderr.map(|stream| PollFd::new(stream, PollFlags::IN)));
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: TICK.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&tick)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(ReadyStreams::default()),
        Err(error) => return Err(error.into()),
    }
    let mut events = polled.iter().map(|one| !one.revents().is_empty());
    let mut of = |is_open: bool| is_open && events.next().unwrap_or_default();
    Ok(ReadyStreams {
        stdin: of(stdin.is_some()),
        stdout: of(stdout.is_some()),
        stderr: of(stderr.is_some()),
    })
}

/// Writes a part of `left`. Returns whether there is more to write.
fn write_some(stream: Option<&mut impl Write>, left: &mut &[u8]) -> io::Result<bool> {
    let Some(stream) = stream else {
        return Ok(false);
    };
    match stream.write(left) {
        Ok(count) => *left = left.get(count..).unwrap_or_default(),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
            // The program may exit without reading its input.
            io::ErrorKind::BrokenPipe => return Ok(false),
            _ => return Err(error),
        },
    }
    Ok(!left.is_empty())
}

/// Reads a part of the output. Returns whether there may be more.
fn read_some(stream: Option<&mut impl Read>, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let Some(stream) = stream else {
        return Ok(false);
    };
    match stream.read(&mut piece) {
        Ok(0) => Ok(false),
        Ok(count) => {
            into.extend_from_slice(piece.get(..count).unwrap_or_default());
            match into.len() > MOST_OUTPUT_BYTES {
                true => Err(io::Error::other("the output of the program is too large")),
                false => Ok(true),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// A child process that is killed if its caller returns early.
struct RunningProgram {
    child: Child,
    is_group: bool,
    has_ended: bool,
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if self.is_group
            && let Some(group) = Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings<'a>(
        environment: &'a Environment,
        interrupt: &'a Interrupt,
    ) -> ProgramContext<'a> {
        ProgramContext {
            directory: Path::new("/"),
            environment,
            interrupt,
            is_detached: true,
            deadline: None,
        }
    }

    fn script(text: &str) -> Command {
        pronto_io::child::shell(text, "script")
    }

    #[test]
    fn both_outputs_are_read_while_the_input_is_written() {
        let environment = Environment::empty("/");
        let interrupt = Interrupt::new();
        let around = surroundings(&environment, &interrupt);
        let input = vec![b'x'; 300_000];
        let output = around.run(script("echo no >&2; cat; exit 3"), &input);
        let output = output.expect("it runs");
        assert_eq!(output.stdout, input);
        assert_eq!(output.stderr, b"no\n");
        assert_eq!(output.status.code(), Some(3));
        // This program does not read its input.
        let output = around.run(script("exit 0"), &input).expect("it runs");
        assert!(output.status.success());
    }

    #[test]
    fn what_hangs_or_never_ends_is_stopped() {
        let environment = Environment::empty("/");
        let interrupt = Interrupt::new();
        let around = surroundings(&environment, &interrupt);
        around
            .run(script("yes"), b"")
            .err()
            .expect("its output has a bound");
        let late = ProgramContext {
            deadline: Some(Instant::now() + Duration::from_millis(100)),
            ..around
        };
        let ended = late.run(script("sleep 60; :"), b"");
        assert!(!is_interrupted(&ended.err().expect("it was late")));
        std::thread::scope(|scope| {
            let other = interrupt.clone();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                other.trigger();
            });
            // The grandchild inherits the pipes, too.
            let ended = around.run(script("sleep 60; :"), b"");
            assert!(is_interrupted(&ended.err().expect("it was interrupted")));
        });
    }
}
