//! Timeouts for a client on the standard streams: a client that is idle for too long ends the
//! process.

use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

/// The interval at which the timeouts are checked.
const TICK: Duration = Duration::from_millis(100);

/// The time since which the process waits for the client; `None` while it works.
pub(super) type WaitStart = Arc<Mutex<Option<Instant>>>;

/// The timeouts of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientTimeouts {
    /// The longest time for which a client may neither send nor receive.
    pub(super) silence: Duration,
    /// The longest time of a whole request; `None` for no limit.
    pub(super) whole: Option<Duration>,
    /// The signal with which the process ends itself after a timeout.
    pub(super) signal: Signal,
}

/// Starts the thread that checks the timeouts on the streams of [`WatchedStream`].
pub(super) fn watch(patience: ClientTimeouts) -> WaitStart {
    let waiting = WaitStart::default();
    let watched = Arc::clone(&waiting);
    let begun = Instant::now();
    let watch = move || {
        loop {
            std::thread::sleep(TICK.min(patience.silence));
            let since = *watched.lock().unwrap_or_else(PoisonError::into_inner);
            let is_silent = since.is_some_and(|since| since.elapsed() >= patience.silence);
            let is_late = patience.whole.is_some_and(|whole| begun.elapsed() >= whole);
            if is_silent || is_late {
                // A failure cannot be reported.
                let _ = kill_process(getpid(), patience.signal);
            }
        }
    };
    // If no thread can be started, the client has no timeout.
    let _ = std::thread::Builder::new().spawn(watch);
    waiting
}

/// A stream of the client. During a read or write, the process counts as waiting for the client.
pub(super) struct WatchedStream<S> {
    stream: S,
    waiting: WaitStart,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, waiting: &WaitStart) -> Self {
        WatchedStream {
            stream,
            waiting: Arc::clone(waiting),
        }
    }

    fn wait<T>(&mut self, wait: impl FnOnce(&mut S) -> T) -> T {
        let set = |waiting: &WaitStart, since| {
            *waiting.lock().unwrap_or_else(PoisonError::into_inner) = since;
        };
        set(&self.waiting, Some(Instant::now()));
        let result = wait(&mut self.stream);
        set(&self.waiting, None);
        result
    }
}

impl<S: Read> Read for WatchedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| stream.read(buffer))
    }
}

impl<S: Write> Write for WatchedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|stream| stream.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wait(|stream| stream.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wait(|stream| stream.flush())
    }
}
