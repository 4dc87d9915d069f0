//! The log of a server on standard error.
//!
//! A separate thread writes the lines, so that a blocked reader of the log does not block the
//! server. The output of child processes, such as hooks, becomes records of the log, too.

mod capture;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use pronto_server::config::LogFormatSetting;
use pronto_server::{Event, LogFormat};

use crate::CliError;
use capture::StderrCapture;

/// The largest number of lines in the queue. Further lines are dropped and counted.
const MOST_LINES: usize = 4096;

/// The timeout for writing the remaining lines when the server ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the format for a setting. Terminals are for people.
pub(super) fn chosen(setting: LogFormatSetting) -> LogFormat {
    match setting {
        LogFormatSetting::Human => LogFormat::Human,
        LogFormatSetting::Auto if io::stderr().is_terminal() => LogFormat::Human,
        LogFormatSetting::Auto | LogFormatSetting::Json => LogFormat::Json,
    }
}

/// A log and the thread that writes it.
pub(super) struct ServeLog {
    writer: Writer,
    capture: StderrCapture,
    /// A channel that is closed when all lines are written.
    written: Receiver<()>,
}

/// The writing end of the log, which takes events from any thread and does not block.
#[derive(Clone)]
pub(super) struct Writer {
    format: LogFormat,
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
}

impl ServeLog {
    /// Starts the log. From now on, lines that this process and its children write to standard error are
    /// events.
    ///
    /// # Errors
    /// Fails if the system cannot start another thread or create a pipe.
    pub(super) fn start(format: LogFormat) -> Result<Self, CliError> {
        let cannot = |error: io::Error| CliError::fatal(format!("cannot start logging: {error}"));
        let target = io::stderr().as_fd().try_clone_to_owned().map_err(cannot)?;
        let mut target = File::from(target);
        let (lines, received) = sync_channel::<String>(MOST_LINES);
        let (writing, written) = channel::<()>();
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let run = move || {
            // The sender is dropped after the last line.
            let _writing = writing;
            for line in received {
                write(&mut target, &line);
                match counter.swap(0, Ordering::Relaxed) {
                    0 => {}
                    count => {
                        let event = Event::Dropped { lines: count };
                        write(&mut target, &event.record().line(format));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(run).map_err(cannot)?;
        let writer = Writer {
            format,
            lines,
            dropped,
        };
        let capture = StderrCapture::start(writer.clone()).map_err(cannot)?;
        Ok(ServeLog {
            writer,
            capture,
            written,
        })
    }

    pub(super) fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Restores standard error, and waits until all lines are written or the timeout expires. All writers
    /// must have been dropped.
    pub(super) fn end(self) {
        self.capture.end();
        drop(self.writer);
        // The thread sends nothing. It closes the channel when it ends.
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

impl Writer {
    pub(super) fn write(&self, event: &Event) {
        let line = event.record().line(self.format);
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes a line. The server ignores a failure to write.
fn write(target: &mut File, line: &str) {
    let _ = target.write_all(format!("{line}\n").as_bytes());
}
