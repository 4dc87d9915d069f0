//! The threads of the first phase besides the receiver: workers that process inflated entries, and
//! look ahead while they are idle.

use super::arrive::{ArrivalState, Arrivals};
use super::batch::{BatchPool, InflatedBatch};
use super::receive::Deliver;
use super::scout::{OpenSegments, Scout};
use super::segment::StreamSegment;
use crate::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError, TrySendError};
use std::thread::{Scope, ScopedJoinHandle};

/// The largest number of queued batches for each worker.
const BATCHES_WAITING: usize = 8;
/// The number of segments that are read ahead, in addition to one for each thread.
const SEGMENTS_BESIDE: usize = 6;

/// A task for a worker.
enum WorkerTask {
    Take(InflatedBatch),
    /// A segment may be available for looking ahead.
    LookAhead,
}

type WorkerHandle<'scope> = ScopedJoinHandle<'scope, Result<ArrivalState, Error>>;

/// Workers on separate threads.
pub(super) struct Crew<'a> {
    tasks: Vec<SyncSender<WorkerTask>>,
    ahead: &'a OpenSegments,
    scout: Scout<'a>,
}

impl<'a> Crew<'a> {
    /// Starts a thread for each of `members`. The receiver uses `scout` to look ahead when it would
    /// block.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        pool: &'scope BatchPool,
        ahead: &'a OpenSegments,
        scout: Scout<'a>,
        members: impl Iterator<Item = (Arrivals<'scope>, Scout<'scope>)>,
    ) -> (Crew<'a>, Vec<WorkerHandle<'scope>>) {
        let (tasks, handles) = members
            .map(|(worker, scout)| {
                let (sender, tasks) = mpsc::sync_channel(BATCHES_WAITING);
                let handle = scope.spawn(move || work(worker, scout, &tasks, pool));
                (sender, handle)
            })
            .unzip();
        let crew = Crew {
            tasks,
            ahead,
            scout,
        };
        (crew, handles)
    }
}

/// Runs a worker until there are no more tasks.
fn work(
    mut worker: Arrivals<'_>,
    mut scout: Scout<'_>,
    tasks: &Receiver<WorkerTask>,
    pool: &BatchPool,
) -> Result<ArrivalState, Error> {
    loop {
        let task = match tasks.try_recv() {
            Err(TryRecvError::Empty) if scout.look() => continue,
            Err(TryRecvError::Empty) => tasks.recv().ok(),
            Err(TryRecvError::Disconnected) => None,
            Ok(task) => Some(task),
        };
        match task {
            Some(WorkerTask::Take(batch)) => worker.process(batch, &|batch| pool.put(batch))?,
            Some(WorkerTask::LookAhead) => {}
            None => return worker.finish(),
        }
    }
}

impl Deliver for Crew<'_> {
    fn workers(&self) -> usize {
        self.tasks.len()
    }

    fn deliver(&mut self, worker: usize, batch: InflatedBatch) -> Result<(), Error> {
        let tasks = &self.tasks[worker];
        let mut task = WorkerTask::Take(batch);
        loop {
            let sent = match tasks.try_send(task) {
                // The receiver looks ahead instead of waiting.
                Err(TrySendError::Full(unsent)) if self.scout.look() => {
                    task = unsent;
                    continue;
                }
                Err(TrySendError::Full(unsent)) => tasks.send(unsent).is_ok(),
                Err(TrySendError::Disconnected(_)) => false,
                Ok(()) => true,
            };
            return if sent { Ok(()) } else { Err(super::stopped()) };
        }
    }

    fn segments(&self) -> usize {
        self.tasks.len() + 1 + SEGMENTS_BESIDE
    }

    fn offer(&mut self, segment: &Arc<StreamSegment>) {
        self.ahead.offer(Arc::clone(segment));
        for tasks in &self.tasks {
            // A worker with a full queue is busy, and searches for segments itself later.
            let _ = tasks.try_send(WorkerTask::LookAhead);
        }
    }

    fn look_ahead(&mut self) -> bool {
        self.scout.look()
    }
}

/// A worker on the thread of the receiver.
pub(super) struct Alone<'a> {
    worker: Arrivals<'a>,
    pool: &'a BatchPool,
}

impl<'a> Alone<'a> {
    pub(super) fn new(worker: Arrivals<'a>, pool: &'a BatchPool) -> Self {
        Alone { worker, pool }
    }

    pub(super) fn finish(self) -> Result<ArrivalState, Error> {
        self.worker.finish()
    }
}

impl Deliver for Alone<'_> {
    fn workers(&self) -> usize {
        1
    }

    fn deliver(&mut self, _worker: usize, batch: InflatedBatch) -> Result<(), Error> {
        self.worker.process(batch, &|batch| self.pool.put(batch))
    }

    fn segments(&self) -> usize {
        1
    }

    fn offer(&mut self, _segment: &Arc<StreamSegment>) {}

    fn look_ahead(&mut self) -> bool {
        false
    }
}
