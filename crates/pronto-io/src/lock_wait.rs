//! Reports long waits for locks to a receiver, which the program sets.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The wait after which a report is made.
pub const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// The receiver of reports.
static RECEIVER: OnceLock<fn(&Path)> = OnceLock::new();

/// Makes each wait for a lock that takes longer than [`REPORTED_AFTER`] call `receiver` once, with the
/// path of the locked file or directory. Only the first call has an effect. Waits are not reported by default.
pub fn report_to(receiver: fn(&Path)) {
    // A later receiver is ignored.
    let _ = RECEIVER.set(receiver);
}

/// A wait for a lock, which is reported at most once.
#[derive(Debug)]
pub struct ReportedWait {
    begun: Instant,
    is_reported: bool,
}

impl Default for ReportedWait {
    fn default() -> Self {
        ReportedWait {
            begun: Instant::now(),
            is_reported: false,
        }
    }
}

impl ReportedWait {
    /// Reports the wait for the lock of `path` if it has taken long enough. Call this before each
    /// pause.
    pub fn look(&mut self, path: &Path) {
        self.look_after(path, REPORTED_AFTER, RECEIVER.get().copied());
    }

    fn look_after(&mut self, path: &Path, limit: Duration, receiver: Option<fn(&Path)>) {
        if self.is_reported || self.begun.elapsed() < limit {
            return;
        }
        self.is_reported = true;
        if let Some(receiver) = receiver {
            receiver(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    fn count(path: &Path) {
        assert_eq!(path, Path::new("index"));
        COUNT.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn a_long_wait_is_reported_once() {
        let mut wait = ReportedWait::default();
        let path = Path::new("index");
        wait.look_after(path, Duration::from_secs(3600), Some(count));
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
        wait.look_after(path, Duration::ZERO, Some(count));
        wait.look_after(path, Duration::ZERO, Some(count));
        assert_eq!(COUNT.load(Ordering::Relaxed), 1);
    }
}
