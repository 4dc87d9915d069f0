//! Changes that wait until they are committed together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::change::{Change, Outcome};
use crate::{Error, ErrorKind, Result};

/// The most changes that are committed together.
const MOST_TOGETHER: usize = 1000;

/// Changes that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Vec<Arc<Waiting>>>,
    /// Held while a commit is on its way.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// A change in the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) change: Change,
    /// The moment from which on the base of the decision must be the newest.
    pub(crate) arrived: Duration,
    outcome: Mutex<Option<Result<Outcome>>>,
}

impl Waiting {
    pub(crate) fn new(change: Change, arrived: Duration) -> Self {
        Waiting {
            change,
            arrived,
            outcome: Mutex::new(None),
        }
    }

    pub(crate) fn settle(&self, outcome: Result<Outcome>) {
        let mut slot = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(outcome);
    }

    pub(crate) fn take(&self) -> Option<Result<Outcome>> {
        let mut slot = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take()
    }
}

/// Changes that are committed together. Those that have no outcome when it is dropped are unknown.
pub(crate) struct Batch(pub(crate) Vec<Arc<Waiting>>);

impl Drop for Batch {
    fn drop(&mut self) {
        for waiting in &self.0 {
            waiting.settle(Err(unknown()));
        }
    }
}

impl Queue {
    pub(crate) fn push(&self, waiting: Arc<Waiting>) {
        let mut queue = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(waiting);
    }

    pub(crate) fn next_batch(&self) -> Batch {
        let mut queue = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let len = queue.len().min(MOST_TOGETHER);
        Batch(queue.drain(..len).collect())
    }
}

/// Returns the error for a change that may be committed.
pub(crate) fn unknown() -> Error {
    let message = "the store did not tell whether the change was committed";
    Error::new(ErrorKind::Unknown, message).with_hint("fetch to see whether it was")
}
