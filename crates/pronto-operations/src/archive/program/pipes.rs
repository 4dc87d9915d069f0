//! Pipes to and from a program that may stop reading or writing. Each call returns soon after the
//! archive is aborted.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pronto_io::interrupt::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The interval between two checks of the state of the archive, in nanoseconds.
const TICK_NANOSECONDS: i64 = 50_000_000;

/// The state of a filtered archive that all threads share.
pub(super) struct PipeState<'a> {
    interrupt: &'a Interrupt,
    is_given_up: AtomicBool,
}

impl<'a> PipeState<'a> {
    pub(super) fn new(interrupt: &'a Interrupt) -> Self {
        PipeState {
            interrupt,
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Aborts all reading and writing.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Relaxed);
    }

    /// Returns whether [`give_up`](Self::give_up) was called, or the operation is interrupted.
    pub(super) fn has_failed(&self) -> bool {
        self.is_given_up.load(Relaxed) || self.interrupt.is_triggered()
    }

    fn check(&self) -> io::Result<()> {
        match self.has_failed() {
            // The kind is not `Interrupted`, because the standard library then repeats the call.
            true => Err(io::Error::other("the archive was interrupted")),
            false => Ok(()),
        }
    }

    /// Waits a short time until `descriptor` is ready. Returns whether it is.
    fn wait(&self, descriptor: &impl AsFd, flags: PollFlags) -> io::Result<bool> {
        self.check()?;
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: TICK_NANOSECONDS,
        };
        match poll(&mut [PollFd::new(descriptor, flags)], Some(&time)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The standard input of the program.
pub(super) struct PipeInput<'a> {
    pipe: ChildStdin,
    state: &'a PipeState<'a>,
    /// Whether the program has closed its input.
    is_closed: bool,
}

impl<'a> PipeInput<'a> {
    /// Wraps the pipe to the standard input of a program.
    pub(super) fn new(pipe: ChildStdin, state: &'a PipeState<'a>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(PipeInput {
            pipe,
            state,
            is_closed: false,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

impl Write for PipeInput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.state.check()?;
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.state.wait(&self.pipe, PollFlags::OUT)?;
                }
                Err(error) => {
                    self.is_closed |= error.kind() == io::ErrorKind::BrokenPipe;
                    return Err(error);
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The standard output or error of the program.
pub(super) struct PipeOutput<'a, P> {
    pub(super) pipe: P,
    pub(super) state: &'a PipeState<'a>,
    /// Set when the program has ended: only the bytes that are in the pipe remain to be read.
    pub(super) is_over: &'a AtomicBool,
}

impl<P: Read + AsFd> Read for PipeOutput<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let is_over = self.is_over.load(Relaxed);
            match self.state.wait(&self.pipe, PollFlags::IN)? {
                true => return self.pipe.read(buffer),
                false if is_over => return Ok(0),
                false => {}
            }
        }
    }
}
