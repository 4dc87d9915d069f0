//! Tells a user on a terminal that calls of a store fail and are retried.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_store::{CallObserver, ErrorKind, MeteredCall, Options};

use crate::terminal::text::write_to_stderr;

/// The time for which calls fail before it is reported.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// An observer of calls that writes a line when calls have failed for more than a second, and
/// another when calls succeed again.
pub(super) struct RetryReport {
    /// The URL of the store.
    url: String,
    calls: Mutex<FailedCalls>,
}

impl RetryReport {
    /// Observes the calls of the store at `url`.
    pub(super) fn new(url: &str) -> Self {
        RetryReport {
            url: url.to_owned(),
            calls: Mutex::default(),
        }
    }
}

/// A notice about the calls of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RetryNotice {
    /// Calls fail, and are retried.
    Fails,
    /// A call has succeeded after a notice that calls fail.
    Responds,
}

/// The calls that have failed since the last success.
#[derive(Clone, Copy, Default)]
struct FailedCalls {
    begun: Option<Instant>,
    is_reported: bool,
}

impl FailedCalls {
    /// Adds the call that ended at `now`, and returns the notice to write.
    fn add(&mut self, is_failure: bool, now: Instant) -> Option<RetryNotice> {
        if !is_failure {
            let ended = std::mem::take(self);
            return ended.is_reported.then_some(RetryNotice::Responds);
        }
        let begun = *self.begun.get_or_insert(now);
        if self.is_reported || now.saturating_duration_since(begun) < REPORTED_AFTER {
            return None;
        }
        self.is_reported = true;
        Some(RetryNotice::Fails)
    }
}

impl CallObserver for RetryReport {
    fn called(&self, call: &MeteredCall) {
        let is_failure = call.error == Some(ErrorKind::Unavailable);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let url = &self.url;
        let line = match calls.add(is_failure, Instant::now()) {
            Some(RetryNotice::Fails) => {
                let seconds = Options::default().patience.as_secs();
                format!(
                    "the store '{url}' does not respond; retrying for up to {seconds} seconds\n"
                )
            }
            Some(RetryNotice::Responds) => format!("the store '{url}' responds again\n"),
            None => return,
        };
        write_to_stderr(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_more_than_a_second_is_reported_once() {
        let mut calls = FailedCalls::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(calls.add(false, begun), None);
        assert_eq!(calls.add(true, begun), None);
        assert_eq!(calls.add(true, at(2)), Some(RetryNotice::Fails));
        assert_eq!(calls.add(true, at(3)), None);
        assert_eq!(calls.add(false, at(4)), Some(RetryNotice::Responds));
        assert_eq!(calls.add(true, at(5)), None);
        assert_eq!(calls.add(false, at(6)), None);
    }
}
