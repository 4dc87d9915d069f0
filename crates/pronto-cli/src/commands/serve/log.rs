//! The log of a server on standard error.
//!
//! A thread of its own writes the lines, so that a reader of the log that stops reading does not stop
//! the server.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use pronto_server::Event;

use crate::CliError;

/// The number of lines that wait for the reader of the log. Further ones are dropped and counted.
const MOST_LINES: usize = 4096;

/// The time that the last lines have at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// A log that is written by a thread.
pub(super) struct Log {
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
    /// Ends when all lines are written.
    written: Receiver<()>,
}

/// The side of the log that takes events, from any thread and without waiting.
#[derive(Clone)]
pub(super) struct Writer {
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start() -> Result<Self, CliError> {
        let (lines, received) = sync_channel::<String>(MOST_LINES);
        let (writing, written) = channel::<()>();
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let run = move || {
            // It is dropped with the last line.
            let _writing = writing;
            for line in received {
                write(&line);
                match counter.swap(0, Ordering::Relaxed) {
                    0 => {}
                    count => write(&Event::Dropped { lines: count }.to_line()),
                }
            }
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(run)
            .map_err(|error| CliError::fatal(format!("cannot start the log: {error}")))?;
        Ok(Log {
            lines,
            dropped,
            written,
        })
    }

    pub(super) fn writer(&self) -> Writer {
        Writer {
            lines: self.lines.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// Waits until all lines are written, or the reader of the log has made it wait too long. All
    /// writers have to be gone.
    pub(super) fn end(self) {
        drop(self.lines);
        // The thread sends nothing: the end of the channel is the end of the thread.
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

impl Writer {
    pub(super) fn write(&self, event: &Event) {
        if self.lines.try_send(event.to_line()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes a line to standard error. A failure is ignored, and the server continues.
fn write(line: &str) {
    let line = format!("{line}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
