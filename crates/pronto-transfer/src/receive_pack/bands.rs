//! The sidebands of the server's output: messages and progress beside the report.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_wire::pktline::{self, MAX_LINE};

use crate::meters::OperationMeters;
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::Notice;

/// The interval of progress messages, and the precision of keep-alive packets.
const TICK: Duration = Duration::from_millis(500);

/// The size of the pieces in which a hook's output is forwarded.
const PIECE_BYTES: usize = 16 << 10;

/// The number of buffered bytes at which lines about commands are sent, if not after a tick.
const MOST_WAITING_BYTES: usize = 32 << 10;

/// The sidebands of one connection.
pub(super) struct ReceiveBands<'a> {
    repository: &'a Repository,
    out: Mutex<ReceiveBandOutput<'a>>,
    is_banded: bool,
    is_quiet: bool,
    keep_alive: Option<Duration>,
    /// Whether the client waits for the server, so that keep-alive packets are sent.
    is_awaited: AtomicBool,
    meters: OperationMeters,
}

struct ReceiveBandOutput<'a> {
    out: &'a mut (dyn Write + Send),
    /// The time of the last data to the client.
    last: Instant,
    /// The buffered lines about commands.
    waiting: Vec<u8>,
}

impl ReceiveBandOutput<'_> {
    /// Sends the buffered lines, and then `bytes`.
    fn put(&mut self, band: u8, bytes: &[u8]) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut packets = Vec::with_capacity(waiting.len() + bytes.len() + 32);
        for (band, bytes) in [(2, waiting.as_slice()), (band, bytes)] {
            for piece in bytes.chunks(MAX_LINE - 5) {
                pktline::write_parts(&mut packets, &[&[band], piece])
                    .map_err(|error| io::Error::other(error.to_string()))?;
            }
        }
        if packets.is_empty() {
            return Ok(());
        }
        self.last = Instant::now();
        self.out.write_all(&packets)?;
        self.out.flush()
    }
}

/// The mode of the sidebands of a connection.
pub(super) struct Mode {
    /// Whether the client has chosen `side-band-64k`.
    pub(super) is_banded: bool,
    /// Whether the client requested no progress (`quiet`).
    pub(super) is_quiet: bool,
    /// The interval of keep-alive packets while the client waits (`receive.keepAlive`).
    pub(super) keep_alive: Option<Duration>,
}

impl<'a> ReceiveBands<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        out: &'a mut (dyn Write + Send),
        mode: &Mode,
    ) -> Self {
        ReceiveBands {
            repository,
            out: Mutex::new(ReceiveBandOutput {
                out,
                last: Instant::now(),
                waiting: Vec::new(),
            }),
            is_banded: mode.is_banded,
            is_quiet: mode.is_quiet || !mode.is_banded,
            keep_alive: mode.keep_alive.filter(|_| mode.is_banded),
            is_awaited: AtomicBool::new(false),
            meters: OperationMeters::default(),
        }
    }

    /// Whether messages are sent to the client.
    pub(super) fn is_banded(&self) -> bool {
        self.is_banded
    }

    /// Marks that the client has sent everything and waits from now on.
    pub(super) fn begin_waiting(&self) {
        self.is_awaited.store(true, Relaxed);
    }

    /// Sends `error: TEXT` to the client, or as a notice of the repository.
    pub(super) fn error(&self, text: &str) {
        match self.is_banded {
            true => self.line(&format!("error: {text}\n")),
            false => self
                .repository
                .notify(Notice::Failure(Error::new(ErrorKind::Refused, text))),
        }
    }

    /// Sends `warning: TEXT` to the client, or as a notice of the repository.
    pub(super) fn warning(&self, text: &str) {
        match self.is_banded {
            true => self.line(&format!("warning: {text}\n")),
            false => self
                .repository
                .notify(Notice::Ignored(Error::new(ErrorKind::Refused, text))),
        }
    }

    /// Sends lines of a program, or sends them as notices of the repository.
    pub(super) fn program_line(&self, kind: ProgramLine, text: &str) {
        match (self.is_banded, kind) {
            (true, ProgramLine::Fatal) => self.message(format!("fatal: {text}\n").as_bytes()),
            (_, ProgramLine::Warning) => self.warning(text),
            _ => self.error(text),
        }
    }

    /// Sends `text` unchanged. Without sidebands, the text is discarded: callers let programs write
    /// to standard error then.
    pub(super) fn message(&self, text: &[u8]) {
        if self.is_banded {
            // A broken connection is detected when the report is sent.
            let _ = self.put(2, text);
        }
    }

    /// Buffers a line, which is sent with the next data or after a tick. A push may result in a
    /// line for each of many commands.
    fn line(&self, text: &str) {
        let mut output = self.locked();
        output.waiting.extend_from_slice(text.as_bytes());
        if output.waiting.len() >= MOST_WAITING_BYTES {
            // A broken connection is detected when the report is sent.
            let _ = output.put(2, b"");
        }
    }

    /// Sends the buffered lines.
    pub(super) fn flush(&self) {
        // A broken connection is detected when the report is sent.
        let _ = self.locked().put(2, b"");
    }

    /// Forwards the output of a program until its end.
    pub(super) fn forward(&self, pipe: &mut dyn Read) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.message(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends the report.
    pub(super) fn report(&self, bytes: &[u8]) -> Result<()> {
        let sent = match self.is_banded {
            true => self.put(1, bytes),
            false => {
                let mut output = self.locked();
                output
                    .out
                    .write_all(bytes)
                    .and_then(|()| output.out.flush())
            }
        };
        sent.map_err(unwritable)
    }

    /// Sends the flush packet that ends the sidebands.
    pub(super) fn end(&self) -> Result<()> {
        self.is_awaited.store(false, Relaxed);
        if !self.is_banded {
            return Ok(());
        }
        let mut output = self.locked();
        let sent = output
            .put(2, b"")
            .and_then(|()| output.out.write_all(b"0000"));
        sent.and_then(|()| output.out.flush()).map_err(unwritable)
    }

    /// Sends progress and keep-alive packets until the channel `stopped` closes.
    pub(super) fn tick_until(&self, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
            self.show_progress(false);
            self.flush();
            let Some(keep_alive) = self.keep_alive else {
                continue;
            };
            let mut output = self.locked();
            if self.is_awaited.load(Relaxed) && output.last.elapsed() >= keep_alive {
                output.last = Instant::now();
                // A broken connection is detected when the report is sent.
                let _ = output.out.write_all(b"0005\x01");
                let _ = output.out.flush();
            }
        }
    }

    /// Sends the progress since the last call; `is_end` ends all meters.
    pub(super) fn show_progress(&self, is_end: bool) {
        if !self.is_quiet {
            let text = self.meters.news(is_end);
            if !text.is_empty() {
                self.message(text.as_bytes());
            }
        }
    }

    fn put(&self, band: u8, bytes: &[u8]) -> io::Result<()> {
        self.locked().put(band, bytes)
    }

    fn locked(&self) -> MutexGuard<'_, ReceiveBandOutput<'a>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The severity of a line of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramLine {
    /// A line that starts with `fatal: `.
    Fatal,
    /// A line that starts with `error: `.
    Error,
    /// A line that starts with `warning: `.
    Warning,
}

impl Progress for ReceiveBands<'_> {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        // The client shows the progress of sending itself.
        if title != pronto_pack::indexer::RECEIVING {
            self.meters.add(&meter);
        }
        meter
    }

    fn message(&self, message: ProgressMessage<'_>) {
        let line = format!("{}{message}\n", message.prefix());
        ReceiveBands::message(self, line.as_bytes());
    }
}

/// Writes to the client before the sidebands start.
pub(super) fn send(out: &mut (dyn Write + Send), bytes: &[u8]) -> Result<()> {
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(unwritable)
}

/// Appends one packet.
pub(super) fn packet(out: &mut Vec<u8>, payload: &[u8]) -> Result<()> {
    pktline::write(out, payload).map_err(from_wire)
}

#[cold]
fn unwritable(error: io::Error) -> Error {
    Error::new(ErrorKind::Transport, "unable to write to the client").because(error)
}
