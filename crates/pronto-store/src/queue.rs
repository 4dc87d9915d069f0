//! The queue of changes that are committed together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::change::{Outcome, StoreChange};
use crate::{Error, ErrorKind, Result};

/// The largest number of changes that are committed together.
const MOST_TOGETHER: usize = 1000;

/// Changes that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct ChangeQueue {
    waiting: Mutex<Vec<Arc<QueuedChange>>>,
    /// The lock that is held during a commit.
    pub(crate) turn: tokio::sync::Mutex<CommitSeries>,
}

/// The state of a series of generations that this process creates while more changes wait.
#[derive(Debug)]
pub(crate) struct CommitSeries {
    in_a_row: u32,
    /// The number of generations in a row after which other processes get time for a commit.
    most: u32,
    /// The longest duration of a commit in the series.
    took: Duration,
    /// The time at which the last generation was created.
    ended: Duration,
}

/// The number of generations that a process creates in a row if other processes commit, too.
const IN_COMPANY: u32 = 8;

/// The number of generations that a process creates in a row if no other process has used its time
/// for long.
const ALONE: u32 = 64;

/// The number of calls that another process makes until it has created a generation: a late
/// creation with a read of the existing generation, three calls to find the newest generation, a
/// creation, and the calls of another such step that had just begun.
const CALLS_OF_OTHERS: u32 = 8;

/// The longest pause for other processes.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Default for CommitSeries {
    fn default() -> Self {
        CommitSeries {
            in_a_row: 0,
            most: IN_COMPANY,
            took: Duration::ZERO,
            ended: Duration::ZERO,
        }
    }
}

impl CommitSeries {
    /// Records that this process has created a generation, between `begun` and `now`.
    pub(crate) fn created(&mut self, begun: Duration, now: Duration) {
        self.in_a_row += 1;
        self.took = self.took.max(now.saturating_sub(begun));
        self.ended = now;
    }

    /// Records that another process has created a generation.
    pub(crate) fn lost(&mut self) {
        (self.in_a_row, self.most) = (0, IN_COMPANY);
    }

    /// Returns the pause before the commit of changes, the first of which was submitted at
    /// `arrived`. Without a pause, a process that commits continuously would always be first,
    /// because it knows its own generations before other processes do.
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
pub(crate) struct QueuedChange {
    pub(crate) change: StoreChange,
    /// The earliest time at which the base of the decision must have been the newest generation.
    pub(crate) arrived: Duration,
    outcome: Mutex<Option<Result<Outcome>>>,
}

impl QueuedChange {
    pub(crate) fn new(change: StoreChange, arrived: Duration) -> Self {
        QueuedChange {
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

/// The changes of one commit. Dropping it sets the outcome of undecided changes to unknown.
pub(crate) struct CommitBatch(pub(crate) Vec<Arc<QueuedChange>>);

impl Drop for CommitBatch {
    fn drop(&mut self) {
        for waiting in &self.0 {
            waiting.settle(Err(unknown()));
        }
    }
}

impl ChangeQueue {
    pub(crate) fn push(&self, waiting: Arc<QueuedChange>) {
        let mut queue = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(waiting);
    }

    pub(crate) fn next_batch(&self) -> CommitBatch {
        let mut queue = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let len = queue.len().min(MOST_TOGETHER);
        CommitBatch(queue.drain(..len).collect())
    }
}

/// Returns the error for a change that may or may not be committed.
pub(crate) fn unknown() -> Error {
    let message = "the store did not confirm whether the change was committed";
    Error::new(ErrorKind::Unknown, message).with_hint("fetch to check whether it was")
}
