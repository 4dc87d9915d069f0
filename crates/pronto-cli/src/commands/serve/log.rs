//! The log of a server on standard error.
//!
//! A separate thread writes the lines, so that a blocked reader of the log does not block the
//! server.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use pronto_server::Event;

use crate::CliError;

/// The largest number of lines in the queue. Further lines are dropped and counted.
const MOST_LINES: usize = 4096;

/// The timeout for writing the remaining lines when the server ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// A log and the thread that writes it.
pub(super) struct ServeLog {
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
    /// A channel that is closed when all lines are written.
    written: Receiver<()>,
}

/// The writing end of the log, which takes events from any thread and does not block.
#[derive(Clone)]
pub(super) struct Writer {
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
}

impl ServeLog {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system cannot start another thread.
    pub(super) fn start() -> Result<Self, CliError> {
        let (lines, received) = sync_channel::<String>(MOST_LINES);
        let (writing, written) = channel::<()>();
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let run = move || {
            // The sender is dropped after the last line.
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
            .map_err(|error| CliError::fatal(format!("cannot start logging: {error}")))?;
        Ok(ServeLog {
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

    /// Waits until all lines are written or the timeout expires. All writers must have been
    /// dropped.
    pub(super) fn end(self) {
        drop(self.lines);
        // The thread sends nothing. It closes the channel when it ends.
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

/// Writes a line to standard error. The server ignores a failure to write.
fn write(line: &str) {
    let line = format!("{line}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
