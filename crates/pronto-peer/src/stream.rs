//! Runs a session over a stream: the pipes of a child process, or a socket.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use pronto_io::error::OsReason;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::repository::SyncRepository;
use pronto_netsync::session::{Report, SyncSession};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::pace::PeerPace;

/// The interval of checks for an interrupt while the stream is idle.
const LOOK: Duration = Duration::from_millis(250);

/// The time in which a peer must read the final error.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Observes a session while it runs.
pub struct SessionWatch<'a> {
    /// The callback for each event.
    pub report: &'a mut dyn FnMut(&Report),
    /// The flag that ends the session.
    pub interrupt: &'a Interrupt,
    /// The callback that runs about four times a second and after each event, with the time for
    /// which the peer has been slow. Time in which this side works does not count. An error ends
    /// the session, and the peer is notified if the kind is [`ErrorKind::Busy`].
    pub keep: &'a dyn Fn(Duration) -> Result<(), Error>,
    /// The timeout in which a peer must move 16 KiB, or take a step of the protocol.
    pub patience: Duration,
    /// The timeout of the handshake and the greeting.
    pub greeting_patience: Duration,
}

/// The file descriptors of a link.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The descriptor of the input.
    pub input: BorrowedFd<'a>,
    /// The descriptor of the output.
    pub output: BorrowedFd<'a>,
}

/// A nonblocking stream in both directions.
pub trait DuplexStream: Read + Write {
    /// Makes reads and writes nonblocking.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn prepare(&mut self) -> io::Result<()>;

    /// Returns the file descriptors to poll.
    fn ends(&self) -> Ends<'_>;

    /// Returns whether received bytes are buffered for reading.
    fn has_pending_input(&self) -> bool {
        false
    }

    /// Returns whether accepted bytes are buffered for writing.
    fn has_pending_output(&self) -> bool {
        false
    }

    /// Writes as many buffered bytes as possible without blocking.
    ///
    /// # Errors
    /// Fails with the errors of the stream.
    fn flush_pending(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Signals the end of the written data, if the link supports it.
    fn finish(&mut self) {}

    /// Closes the link for writing.
    fn shut(&mut self) {}
}

/// A link of two pipes, or of a socket in both roles.
pub struct PipePair<'a, R, W> {
    /// The input.
    pub input: &'a mut R,
    /// The output.
    pub output: &'a mut W,
}

impl<R: Read, W> Read for PipePair<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl<R, W: Write> Write for PipePair<'_, R, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.output.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl<R: Read + AsFd, W: Write + AsFd> DuplexStream for PipePair<'_, R, W> {
    fn prepare(&mut self) -> io::Result<()> {
        calm(self.input.as_fd())?;
        calm(self.output.as_fd())
    }

    fn ends(&self) -> Ends<'_> {
        Ends {
            input: self.input.as_fd(),
            output: self.output.as_fd(),
        }
    }
}

/// Runs a session to its end. This thread alternates between the possible reads and writes, so that
/// two sides that both send do not deadlock.
///
/// # Errors
/// Fails with the errors of the session, and with [`ErrorKind::Closed`] if the stream fails or
/// ends, the peer makes no progress before the timeout, or the session is interrupted. The error is
/// sent to the peer if possible.
pub fn drive<R: SyncRepository>(
    session: &mut SyncSession<R>,
    link: &mut impl DuplexStream,
    watch: &mut SessionWatch<'_>,
) -> Result<(), Error> {
    link.prepare().map_err(lost)?;
    let result = run(session, link, watch);
    match &result {
        Err(error) if error.kind() == ErrorKind::Busy => session.refuse(error),
        Err(_) => session.release(),
        Ok(()) => {}
    }
    let limit = Instant::now() + LAST_WORDS;
    let mut has_finished = false;
    while Instant::now() < limit {
        let written = match session.wants_output() {
            true => session.write_to(link).map(|_| ()),
            false if !has_finished => {
                has_finished = true;
                link.finish();
                link.flush_pending()
            }
            false if link.has_pending_output() => link.flush_pending(),
            false => break,
        };
        match written {
            Ok(()) if !link.has_pending_output() => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
            _ => {
                let interest = Interest {
                    input: None,
                    output: Some((link.ends().output, true)),
                };
                wait(&interest, LOOK)?;
            }
        }
    }
    link.shut();
    let has_refused = (result.as_ref()).is_err_and(|error| error.kind() != ErrorKind::Closed);
    if has_refused && !session.was_refused() {
        linger(link, limit)?;
    }
    result
}

/// Reads and discards remaining input, because closing with unread input would discard the last
/// message to the peer.
fn linger(link: &mut impl DuplexStream, limit: Instant) -> Result<(), Error> {
    let mut rest = vec![0; 16 * 1024];
    while Instant::now() < limit {
        match link.read(&mut rest) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let interest = Interest {
                    input: Some(link.ends().input),
                    output: None,
                };
                wait(&interest, LOOK)?;
            }
            _ => break,
        }
    }
    Ok(())
}

fn run<R: SyncRepository>(
    session: &mut SyncSession<R>,
    link: &mut impl DuplexStream,
    watch: &mut SessionWatch<'_>,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut pace = PeerPace::new();
    loop {
        session.advance()?;
        pace.stepped(session.report().received_steps);
        (watch.report)(session.report());
        let has_output = session.wants_output() || link.has_pending_output();
        if session.is_finished() && !has_output {
            return Ok(());
        }
        watch
            .interrupt
            .check()
            .map_err(|reason| Error::new(ErrorKind::Closed, reason.to_string()))?;
        (watch.keep)(pace.quiet())?;
        let (since, patience) = match session.is_greeted() {
            true => (pace.idle(), watch.patience),
            false => (begun.elapsed(), watch.greeting_patience),
        };
        if since > patience {
            return Err(too_slow(patience));
        }
        let Ends { input, output } = link.ends();
        let interest = Interest {
            input: session.wants_input().then_some(input),
            output: Some((output, has_output)),
        };
        let has_input = session.wants_input() && link.has_pending_input();
        let patience = if has_input { Duration::ZERO } else { LOOK };
        let asleep = Instant::now();
        let ready = wait(&interest, patience)?;
        pace.waited(asleep.elapsed());
        if ready.can_write && has_output {
            pace.moved(write(session, link)?);
        }
        if ready.can_read || has_input {
            pace.moved(read(session, link)?);
        }
    }
}

/// Writes without blocking. Returns the number of bytes that the peer accepted.
fn write<R: SyncRepository>(
    session: &mut SyncSession<R>,
    link: &mut impl DuplexStream,
) -> Result<usize, Error> {
    let written = match session.wants_output() {
        true => session.write_to(link),
        // Encrypted bytes were counted when they were buffered.
        false => link.flush_pending().map(|()| 0),
    };
    match written {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        // The last message of the peer contains a better reason.
        Err(error) if is_gone(&error) && session.wants_input() => {
            while matches!(session.read_from(link), Ok(1..)) {
                session.advance()?;
            }
            Err(lost(error))
        }
        Err(error) => Err(lost(error)),
    }
}

/// Reads received bytes. Returns their number.
fn read<R: SyncRepository>(
    session: &mut SyncSession<R>,
    link: &mut impl DuplexStream,
) -> Result<usize, Error> {
    match session.read_from(link) {
        Ok(0) => {
            session.advance()?;
            session.end_of_input()?;
            Ok(0)
        }
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(lost(error)),
    }
}

fn too_slow(patience: Duration) -> Error {
    let seconds = patience.as_secs();
    let message = format!("timeout: the peer sent too little within {seconds} s");
    Error::new(ErrorKind::Closed, message)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

fn lost(error: io::Error) -> Error {
    Error::new(ErrorKind::Closed, "lost the connection to the peer").because(OsReason(error))
}

/// The result of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamReadiness {
    pub(super) can_read: bool,
    pub(super) can_write: bool,
}

/// The file descriptors to wait for.
pub(super) struct Interest<'a> {
    pub(super) input: Option<BorrowedFd<'a>>,
    /// The output is polled even if nothing is to be written, so that a side that only waits for a
    /// response notices that the other side has disconnected.
    pub(super) output: Option<(BorrowedFd<'a>, bool)>,
}

/// Waits until one of the descriptors is ready, or until the timeout. The end of a stream counts as
/// ready.
pub(super) fn wait(interest: &Interest<'_>, patience: Duration) -> Result<StreamReadiness, Error> {
    let mut fds = Vec::with_capacity(2);
    if let Some(input) = &interest.input {
        fds.push(PollFd::new(input, PollFlags::IN));
    }
    if let Some((output, writes)) = &interest.output {
        let flags = match writes {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        };
        fds.push(PollFd::new(output, flags));
    }
    let timeout = Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: patience.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(lost(error.into())),
    }
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    let can_read = interest.input.is_some() && fds.first().is_some_and(is_ready);
    let can_write = interest.output.is_some() && fds.last().is_some_and(is_ready);
    let writes = interest.output.as_ref().is_some_and(|(_, writes)| *writes);
    if can_write && !can_read && !writes {
        return Err(lost(io::ErrorKind::BrokenPipe.into()));
    }
    Ok(StreamReadiness {
        can_read,
        can_write,
    })
}

/// Makes reads and writes nonblocking.
fn calm(stream: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(stream)?;
    Ok(fcntl_setfl(stream, flags | OFlags::NONBLOCK)?)
}
