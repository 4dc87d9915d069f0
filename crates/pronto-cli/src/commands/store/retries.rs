//! Tells a user on a terminal that calls of a store fail and are retried.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_store::{CallObserver, ErrorKind, MeteredCall, Options};

use crate::terminal::text::write_to_stderr;

/// The time for which calls fail before it is reported.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// An observer of calls that writes a line when calls have failed for more than a second, and
/// another when calls succeed again.
#[derive(Default)]
pub(super) struct RetryReport(Mutex<FailedCalls>);

/// The calls that have failed since the last success.
#[derive(Clone, Copy, Default)]
struct FailedCalls {
    begun: Option<Instant>,
    is_reported: bool,
}

impl FailedCalls {
    /// Adds the call that ended at `now`, and returns the line to write.
    fn add(&mut self, is_failure: bool, now: Instant) -> Option<String> {
        if !is_failure {
            let ended = std::mem::take(self);
            return ended
                .is_reported
                .then(|| "the store responds again\n".to_owned());
        }
        let begun = *self.begun.get_or_insert(now);
        if self.is_reported || now.saturating_duration_since(begun) < REPORTED_AFTER {
            return None;
        }
        self.is_reported = true;
        let seconds = Options::default().patience.as_secs();
        let line = format!("the store does not respond; retrying for up to {seconds} seconds\n");
        Some(line)
    }
}

impl CallObserver for RetryReport {
    fn called(&self, call: &MeteredCall) {
        let is_failure = call.error == Some(ErrorKind::Unavailable);
        let mut outage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = outage.add(is_failure, Instant::now()) {
            write_to_stderr(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_more_than_a_second_is_reported_once() {
        let mut outage = FailedCalls::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(outage.add(false, begun), None);
        assert_eq!(outage.add(true, begun), None);
        assert!(
            outage
                .add(true, at(2))
                .is_some_and(|line| line.contains("retrying"))
        );
        assert_eq!(outage.add(true, at(3)), None);
        assert!(
            outage
                .add(false, at(4))
                .is_some_and(|line| line.contains("again"))
        );
        assert_eq!(outage.add(true, at(5)), None);
        assert_eq!(outage.add(false, at(6)), None);
    }
}
