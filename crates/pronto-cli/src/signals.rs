//! SIGINT and its kin: the operation is asked to stop, what it made is removed, and the process
//! dies by the signal itself, so that the shell knows.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::interrupt::Interrupt;
use pronto_trace::Session;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long an operation has to notice the interrupt and to unwind.
const GRACE: Duration = Duration::from_secs(1);

/// Waits for signals on behalf of one command. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The first signal that came.
    signal: AtomicI32,
    /// Held for good by whoever ends the process.
    ending: Mutex<()>,
    trace: Option<Session>,
}

impl Watch {
    /// Starts a thread that waits for signals, and triggers `interrupt` on the first. Signals
    /// that were ignored when the process started stay so.
    pub(crate) fn start(interrupt: Interrupt, trace: Option<Session>) -> io::Result<Self> {
        let watch = Watch(Arc::new(Shared {
            trace,
            ..Shared::default()
        }));
        let shared = watch.clone();
        let ignored = ignored_signals();
        let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        let mut signals = Signals::new(
            wanted
                .into_iter()
                .filter(|signal| ignored >> (signal - 1) & 1 == 0),
        )?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    shared.0.signal.store(signal, SeqCst);
                    interrupt.trigger();
                    let end = Instant::now() + GRACE;
                    // A second signal means: now.
                    while Instant::now() < end && signals.pending().next().is_none() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    shared.end_if_asked();
                }
            })?;
        Ok(watch)
    }

    /// Cleans up and dies, if a signal has come; else returns at once.
    pub(crate) fn end_if_asked(&self) {
        let signal = self.0.signal.load(SeqCst);
        if signal == 0 {
            return;
        }
        let _forever = self.0.ending.lock().unwrap_or_else(PoisonError::into_inner);
        pronto_io::cleanup::remove_all();
        gix_tempfile::registry::cleanup_tempfiles();
        if let Some(trace) = &self.0.trace {
            trace.signal(signal);
        }
        // Only returns if the signal is blocked.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Which signals this process was started to ignore (by `nohup`, or in the background of a
/// script): bit `n - 1` for signal `n`.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
