//! Progress without callbacks: an operation opens a [`Meter`] and increments its counters. An
//! observer (a terminal, an editor) reads them at any time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Receives progress updates. `()` discards them.
pub trait Progress: Send + Sync {
    /// A new phase begins, named `title` as Git names it ("Receiving objects"), of `total` steps
    /// if that is known. The watcher keeps a clone of the meter it returns.
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter;

    /// A line of text from the other side of a connection, or a remark worth showing now.
    fn message(&self, text: &str);

    /// The server redirects a connection to `url`, which has no slash at its end. By default it is
    /// shown as a message, in Git's words.
    fn redirected(&self, url: &str) {
        self.message(&format!("warning: redirecting to {url}/"));
    }
}

impl Progress for () {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        Meter::new(title, total)
    }

    fn message(&self, _text: &str) {}
}

/// The counters of one phase. Cloning shares them; every method is lock-free and may be called
/// from any thread.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    title: &'static str,
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
    finished: AtomicBool,
    ending: OnceLock<String>,
}

const UNKNOWN: u64 = u64::MAX;

impl Meter {
    /// A meter for a phase called `title`, of `total` steps if that is known.
    pub fn new(title: &'static str, total: Option<u64>) -> Self {
        Meter(Arc::new(Counters {
            title,
            total: AtomicU64::new(total.unwrap_or(UNKNOWN)),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            ending: OnceLock::new(),
        }))
    }

    /// Counts `steps` more as done.
    pub fn add(&self, steps: u64) {
        self.0.done.fetch_add(steps, Relaxed);
    }

    /// Counts `bytes` more as moved, for a rate.
    pub fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Relaxed);
    }

    /// Says how many steps there are, once that is known.
    pub fn set_total(&self, total: u64) {
        self.0.total.store(total, Relaxed);
    }

    /// Like [`finish`](Self::finish), with `ending` to be shown in place of "done".
    pub fn finish_saying(&self, ending: String) {
        // The first ending counts.
        let _ = self.0.ending.set(ending);
        self.finish();
    }

    /// Returns the text to show at the end, if it is not "done".
    pub fn ending(&self) -> Option<&str> {
        self.0.ending.get().map(String::as_str)
    }

    /// The phase is over. Dropping a meter without this means that it was given up.
    pub fn finish(&self) {
        self.0.finished.store(true, Relaxed);
    }

    /// The name of the phase.
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

    /// Whether the phase is over.
    pub fn is_finished(&self) -> bool {
        self.0.finished.load(Relaxed)
    }

    /// Whether the operation has dropped its side: only the watcher holds the meter still.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
