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
    pub(crate) turn: tokio::sync::Mutex<Turn>,
}

/// The generations that this process has created one after the other, while more changes waited.
#[derive(Debug)]
pub(crate) struct Turn {
    in_a_row: u32,
    /// The number of generations in a row after which others get time.
    most: u32,
    /// The longest time that one of them took.
    took: Duration,
    /// The moment at which the last one was created.
    ended: Duration,
}

/// The generations that a process creates in a row if others commit, too.
const IN_COMPANY: u32 = 8;

/// The generations that a process creates in a row if no other has used its time for long.
const ALONE: u32 = 64;

/// The calls that another process makes until it has created a generation: a creation that is too late with a read of what
/// was first, three calls that find the newest generation, a creation, and as many as one of these that has just begun.
const CALLS_OF_OTHERS: u32 = 8;

/// The longest pause for others.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Default for Turn {
    fn default() -> Self {
        Turn {
            in_a_row: 0,
            most: IN_COMPANY,
            took: Duration::ZERO,
            ended: Duration::ZERO,
        }
    }
}

impl Turn {
    /// Notes that this process has created a generation, from `begun` to `now`.
    pub(crate) fn created(&mut self, begun: Duration, now: Duration) {
        self.in_a_row += 1;
        self.took = self.took.max(now.saturating_sub(begun));
        self.ended = now;
    }

    /// Notes that another process has created a generation.
    pub(crate) fn lost(&mut self) {
        (self.in_a_row, self.most) = (0, IN_COMPANY);
    }

    /// Returns the pause before the commit of changes of which the first has `arrived`. A process that commits without a
    /// pause is always first, because it knows its own generations before others do.
    pub(crate) fn pause(&mut self, arrived: Duration) -> Duration {
        let is_in_a_row = arrived <= self.ended;
        if is_in_a_row && self.in_a_row < self.most {
            return Duration::ZERO;
        }
        self.in_a_row = 0;
        let took = std::mem::take(&mut self.took);
        if !is_in_a_row {
            return Duration::ZERO;
        }
        self.most = (self.most * 2).min(ALONE);
        (took * CALLS_OF_OTHERS).min(LONGEST_PAUSE)
    }
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
