//! Carrying a session over a stream: pipes to a child, a socket.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use pronto_io::interrupt::Interrupt;
use pronto_netsync::repository::Repository;
use pronto_netsync::session::{Report, Session};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// How often an interrupt is looked for while nothing happens.
const LOOK: Duration = Duration::from_millis(250);

/// How long a peer that is told why it is over may take to hear it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Who looks at a session while it runs.
pub struct Watch<'a> {
    /// Called whenever something happened.
    pub report: &'a mut dyn FnMut(&Report),
    /// Ends it.
    pub interrupt: &'a Interrupt,
    /// How long a peer may be silent.
    pub patience: Duration,
}

/// Runs a session to its end. Reads and writes are made one after the other in this thread, whichever
/// is possible, so that two sides that both send do not wait for each other. Both streams do not wait
/// any more from then on (`O_NONBLOCK`).
///
/// # Errors
/// Those of the session; the stream fails or ends, nothing comes for too long, or it is interrupted.
/// The peer is told why as far as it listens.
pub fn drive<R: Repository>(
    session: &mut Session<R>,
    input: &mut (impl Read + AsFd),
    output: &mut (impl Write + AsFd),
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    calm(input.as_fd())?;
    calm(output.as_fd())?;
    let result = run(session, input, output, watch);
    let limit = Instant::now() + LAST_WORDS;
    while session.wants_output() && Instant::now() < limit {
        match session.write_to(output) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(None, Some((output.as_fd(), true)), LOOK)?;
            }
            Err(_) => break,
        }
    }
    result
}

fn run<R: Repository>(
    session: &mut Session<R>,
    input: &mut (impl Read + AsFd),
    output: &mut (impl Write + AsFd),
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let mut heard = Instant::now();
    loop {
        session.advance()?;
        (watch.report)(session.report());
        if session.is_finished() && !session.wants_output() {
            return Ok(());
        }
        watch
            .interrupt
            .check()
            .map_err(|reason| Error::new(ErrorKind::Closed, reason.to_string()))?;
        if heard.elapsed() > watch.patience {
            let message = format!(
                "nothing came from the peer for {} s",
                watch.patience.as_secs()
            );
            return Err(Error::new(ErrorKind::Closed, message));
        }
        let source = session.wants_input().then(|| input.as_fd());
        let sink = (output.as_fd(), session.wants_output());
        let (can_read, can_write) = wait(source, Some(sink), LOOK)?;
        if can_write && session.wants_output() {
            match session.write_to(output) {
                Ok(_) => heard = Instant::now(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // What the peer said before it went says more.
                Err(error)
                    if error.kind() == io::ErrorKind::BrokenPipe && session.wants_input() =>
                {
                    while matches!(session.read_from(input), Ok(1..)) {
                        session.advance()?;
                    }
                    return Err(lost(error));
                }
                Err(error) => return Err(lost(error)),
            }
        }
        if can_read {
            match session.read_from(input) {
                Ok(0) => {
                    session.advance()?;
                    session.end_of_input()?;
                }
                Ok(_) => heard = Instant::now(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }
}

fn lost(error: io::Error) -> Error {
    Error::new(ErrorKind::Closed, "the connection to the peer is lost").because(error)
}

/// Waits until one of the two is ready, or for `patience`. Ends of streams count as ready. The sink is
/// looked at even if nothing is to be written: who only waits for an answer learns that way that nobody
/// listens.
fn wait(
    source: Option<BorrowedFd<'_>>,
    sink: Option<(BorrowedFd<'_>, bool)>,
    patience: Duration,
) -> Result<(bool, bool), Error> {
    let mut fds = Vec::with_capacity(2);
    if let Some(source) = &source {
        fds.push(PollFd::new(source, PollFlags::IN));
    }
    if let Some((sink, writes)) = &sink {
        let flags = match writes {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        };
        fds.push(PollFd::new(sink, flags));
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
    let can_read = source.is_some() && fds.first().is_some_and(is_ready);
    let can_write = sink.is_some() && fds.last().is_some_and(is_ready);
    if can_write && !can_read && !sink.is_some_and(|(_, writes)| writes) {
        return Err(lost(io::ErrorKind::BrokenPipe.into()));
    }
    Ok((can_read, can_write))
}

/// From now on, reading and writing do not wait.
fn calm(stream: BorrowedFd<'_>) -> Result<(), Error> {
    let set = || -> io::Result<()> {
        let flags = fcntl_getfl(stream)?;
        Ok(fcntl_setfl(stream, flags | OFlags::NONBLOCK)?)
    };
    set().map_err(lost)
}
