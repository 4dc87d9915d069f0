//! The parts that a repository in a store is built on.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::clock::{Clock, SystemClock};
use crate::generations::{Generations, InBucket};

/// A store, the place of its generations, and a clock.
pub trait Backend: Send + Sync + 'static {
    /// The store.
    type Bucket: Bucket;
    /// The generations.
    type Generations: Generations;
    /// The clock.
    type Clock: Clock;

    /// Returns the store.
    fn bucket(&self) -> &Self::Bucket;

    /// Returns the generations.
    fn generations(&self) -> &Self::Generations;

    /// Returns the clock.
    fn clock(&self) -> &Self::Clock;

    /// Returns the fault that the simulation must find.
    #[cfg(test)]
    #[expect(private_interfaces, reason = "only tests of this crate plant faults")]
    fn fault(&self) -> Option<Fault> {
        None
    }
}

/// A store that keeps its generations itself, and the clock of the system.
#[derive(Debug)]
pub struct Plain<B> {
    bucket: Arc<B>,
    generations: InBucket<B>,
    clock: SystemClock,
}

impl<B: Bucket> Plain<B> {
    /// Uses `bucket` for everything.
    pub fn new(bucket: B) -> Self {
        let bucket = Arc::new(bucket);
        Plain {
            generations: InBucket(Arc::clone(&bucket)),
            bucket,
            clock: SystemClock::default(),
        }
    }
}

impl<B: Bucket> Backend for Plain<B> {
    type Bucket = B;
    type Generations = InBucket<B>;
    type Clock = SystemClock;

    fn bucket(&self) -> &B {
        &self.bucket
    }

    fn generations(&self) -> &InBucket<B> {
        &self.generations
    }

    fn clock(&self) -> &SystemClock {
        &self.clock
    }
}

/// Faults that the simulation must find. None exists outside of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no fault is planted outside of tests")
)]
pub(crate) enum Fault {
    /// A push is committed before its packs are uploaded.
    CommitBeforeUpload,
    /// After a conflict the old values of refs are not compared again.
    NoCheckAfterConflict,
    /// A push does not check whether objects were deleted since its base.
    NoCheckOfBase,
    /// Objects are deleted though refs have changed.
    PruneUnchecked,
    /// Objects are deleted as soon as nothing refers to them.
    NoGrace,
    /// A request uses the known generation without asking for a newer one.
    StaleRead,
    /// The removal of a repository does not count as deletion of its objects.
    RemovalUnnoticed,
    /// After a lost answer, a generation that exists is taken for that of another process.
    DoubleCommit,
}

/// Returns whether `fault` is planted.
pub(crate) fn has_fault<B: Backend>(backend: &B, fault: Fault) -> bool {
    #[cfg(test)]
    return backend.fault() == Some(fault);
    #[cfg(not(test))]
    {
        let _ = (backend, fault);
        false
    }
}
