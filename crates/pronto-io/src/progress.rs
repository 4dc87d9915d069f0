//! Progress without callbacks: an operation opens a [`Meter`] and increments its counters. An
//! observer (a terminal, an editor) reads them at any time.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Receives progress updates. `()` discards them.
pub trait Progress: Send + Sync {
    /// Begins a phase of `total` steps, if the number is known. `title` is Git's title of the phase
    /// ("Receiving objects"). The implementation keeps a clone of the returned meter.
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter;

    /// Receives a message that is of use while the operation runs.
    fn message(&self, message: ProgressMessage<'_>);
}

/// A message of a running operation. Its `Display` gives Git's words without a prefix, and
/// [`prefix`](Self::prefix) the prefix that `git` prints on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgressMessage<'a> {
    /// A line that the remote side sent over the sideband.
    Remote {
        /// The line without its end. It has no control characters but escape sequences for colours.
        line: &'a str,
        /// Whether the line ended with a carriage return: the next line takes its place.
        is_overwritten: bool,
    },
    /// A step of the operation ("Cloning into 'project'...").
    Step(&'a str),
    /// A warning.
    Warning(&'a str),
    /// An error after which the operation continues.
    Error(&'a str),
    /// The error that ended a part of the operation, which `git` runs as a program of its own.
    Fatal(&'a str),
    /// The server redirects the connection to this URL, which has no trailing slash.
    Redirected(&'a str),
}

impl ProgressMessage<'_> {
    /// Returns the prefix that `git` prints before the message, such as `warning: `.
    pub fn prefix(&self) -> &'static str {
        match self {
            ProgressMessage::Remote { .. } => "remote: ",
            ProgressMessage::Step(_) => "",
            ProgressMessage::Warning(_) | ProgressMessage::Redirected(_) => "warning: ",
            ProgressMessage::Error(_) => "error: ",
            ProgressMessage::Fatal(_) => "fatal: ",
        }
    }
}

impl fmt::Display for ProgressMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgressMessage::Remote { line, .. } => f.write_str(line),
            ProgressMessage::Step(text)
            | ProgressMessage::Warning(text)
            | ProgressMessage::Error(text)
            | ProgressMessage::Fatal(text) => f.write_str(text),
            ProgressMessage::Redirected(url) => write!(f, "redirecting to {url}/"),
        }
    }
}

impl Progress for () {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        Meter::new(title, total)
    }

    fn message(&self, _: ProgressMessage<'_>) {}
}

/// The counters of one phase. Clones share the counters. Every method is lock-free and may be
/// called from any thread.
#[derive(Clone, Debug)]
pub struct Meter(Arc<MeterCounters>);

#[derive(Debug)]
struct MeterCounters {
    title: &'static str,
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
    finished: AtomicBool,
    ending: OnceLock<String>,
}

const UNKNOWN: u64 = u64::MAX;

impl Meter {
    /// Creates a meter for a phase called `title`, of `total` steps if the number is known.
    pub fn new(title: &'static str, total: Option<u64>) -> Self {
        Meter(Arc::new(MeterCounters {
            title,
            total: AtomicU64::new(total.unwrap_or(UNKNOWN)),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            ending: OnceLock::new(),
        }))
    }

    /// Adds `steps` to the number of finished steps.
    pub fn add(&self, steps: u64) {
        self.0.done.fetch_add(steps, Relaxed);
    }

    /// Adds `bytes` to the number of transferred bytes, from which the throughput is computed.
    pub fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Relaxed);
    }

    /// Sets the number of steps, once the number is known.
    pub fn set_total(&self, total: u64) {
        self.0.total.store(total, Relaxed);
    }

    /// Finishes the phase like [`finish`](Self::finish), and shows `ending` in place of "done".
    pub fn finish_saying(&self, ending: String) {
        // The first ending is kept.
        let _ = self.0.ending.set(ending);
        self.finish();
    }

    /// Returns the text to show at the end in place of "done", if there is one.
    pub fn ending(&self) -> Option<&str> {
        self.0.ending.get().map(String::as_str)
    }

    /// Marks the phase as finished. A meter that is dropped without this call belongs to an
    /// abandoned phase.
    pub fn finish(&self) {
        self.0.finished.store(true, Relaxed);
    }

    /// Returns the title of the phase.
    pub fn title(&self) -> &'static str {
        self.0.title
    }

    /// Returns the number of steps, if it is known.
    pub fn total(&self) -> Option<u64> {
        match self.0.total.load(Relaxed) {
            UNKNOWN => None,
            total => Some(total),
        }
    }

    /// Returns the number of finished steps.
    pub fn done(&self) -> u64 {
        self.0.done.load(Relaxed)
    }

    /// Returns the number of transferred bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Relaxed)
    }

    /// Whether the phase is finished.
    pub fn is_finished(&self) -> bool {
        self.0.finished.load(Relaxed)
    }

    /// Whether the operation has dropped its clones, so that only the observer holds the meter.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
