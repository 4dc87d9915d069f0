//! The services on which a repository in a store is built.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::Result;
use crate::bucket::{Bucket, CreationResult};
use crate::clock::{Clock, SystemClock};
use crate::database::Database;
use crate::generations::{GenerationStore, GenerationSummary, InBucket};

/// A store, the storage of its generations, and a clock.
pub trait StoreBackend: Send + Sync + 'static {
    /// The store.
    type Bucket: Bucket;
    /// The storage of generations.
    type Generations: GenerationStore;
    /// The clock.
    type Clock: Clock;

    /// Returns the store.
    fn bucket(&self) -> &Self::Bucket;

    /// Returns the storage of generations.
    fn generations(&self) -> &Self::Generations;

    /// Returns the clock.
    fn clock(&self) -> &Self::Clock;

    /// Returns the fault that the simulation must detect.
    #[cfg(test)]
    #[expect(private_interfaces, reason = "only tests of this crate plant faults")]
    fn fault(&self) -> Option<PlantedFault> {
        None
    }
}

/// The storage of the generations of a store.
pub enum GenerationStorage<B> {
    /// The store itself.
    Bucket(InBucket<B>),
    /// A database.
    Database(Box<Database<B>>),
}

impl<B: Bucket> GenerationStore for GenerationStorage<B> {
    async fn newest(&self, prefix: &str) -> Result<Option<GenerationSummary>> {
        match self {
            GenerationStorage::Bucket(place) => place.newest(prefix).await,
            GenerationStorage::Database(place) => place.newest(prefix).await,
        }
    }

    async fn read(&self, prefix: &str, number: u64) -> Result<Option<Bytes>> {
        match self {
            GenerationStorage::Bucket(place) => place.read(prefix, number).await,
            GenerationStorage::Database(place) => place.read(prefix, number).await,
        }
    }

    async fn create(&self, prefix: &str, number: u64, manifest: Bytes) -> Result<CreationResult> {
        match self {
            GenerationStorage::Bucket(place) => place.create(prefix, number, manifest).await,
            GenerationStorage::Database(place) => place.create(prefix, number, manifest).await,
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<GenerationSummary>> {
        match self {
            GenerationStorage::Bucket(place) => place.list(prefix).await,
            GenerationStorage::Database(place) => place.list(prefix).await,
        }
    }

    async fn remove(&self, prefix: &str, number: u64) -> Result<()> {
        match self {
            GenerationStorage::Bucket(place) => place.remove(prefix, number).await,
            GenerationStorage::Database(place) => place.remove(prefix, number).await,
        }
    }

    async fn time(&self, prefix: &str) -> Result<Duration> {
        match self {
            GenerationStorage::Bucket(place) => place.time(prefix).await,
            GenerationStorage::Database(place) => place.time(prefix).await,
        }
    }

    async fn claim(&self, prefix: &str) -> Result<()> {
        match self {
            GenerationStorage::Bucket(place) => place.claim(prefix).await,
            GenerationStorage::Database(place) => place.claim(prefix).await,
        }
    }

    async fn repositories(&self) -> Result<Vec<String>> {
        match self {
            GenerationStorage::Bucket(place) => place.repositories().await,
            GenerationStorage::Database(place) => place.repositories().await,
        }
    }
}

/// A store with the storage of its generations, and the clock of the system.
pub struct SystemBackend<B> {
    bucket: Arc<B>,
    generations: GenerationStorage<B>,
    clock: SystemClock,
}

impl<B: Bucket> SystemBackend<B> {
    /// Uses `bucket` for all data.
    pub fn new(bucket: B) -> Self {
        let bucket = Arc::new(bucket);
        SystemBackend {
            generations: GenerationStorage::Bucket(InBucket(Arc::clone(&bucket))),
            bucket,
            clock: SystemClock::default(),
        }
    }

    /// Uses `bucket` for all data except generations.
    pub fn with_generations(bucket: Arc<B>, generations: Database<B>) -> Self {
        SystemBackend {
            generations: GenerationStorage::Database(Box::new(generations)),
            bucket,
            clock: SystemClock::default(),
        }
    }
}

impl<B: Bucket> StoreBackend for SystemBackend<B> {
    type Bucket = B;
    type Generations = GenerationStorage<B>;
    type Clock = SystemClock;

    fn bucket(&self) -> &B {
        &self.bucket
    }

    fn generations(&self) -> &GenerationStorage<B> {
        &self.generations
    }

    fn clock(&self) -> &SystemClock {
        &self.clock
    }
}

/// The faults that the simulation must detect. No fault exists outside of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no fault is planted outside of tests")
)]
pub(crate) enum PlantedFault {
    /// A push is committed before its packs are uploaded.
    CommitBeforeUpload,
    /// After a conflict, the old values of refs are not compared again.
    NoCheckAfterConflict,
    /// A push does not check whether objects were deleted after its base.
    NoCheckOfBase,
    /// Objects are deleted although refs have changed.
    PruneUnchecked,
    /// Objects are deleted as soon as they are unreferenced, without a grace period.
    NoGrace,
    /// A request uses the known generation without a query for a newer one.
    StaleRead,
    /// The removal of a repository does not count as a deletion of its objects.
    RemovalUnnoticed,
    /// After a lost response, an existing generation is treated as a generation of another process.
    DoubleCommit,
}

/// Returns whether the fault `fault` is active.
pub(crate) fn has_fault<B: StoreBackend>(backend: &B, fault: PlantedFault) -> bool {
    #[cfg(test)]
    return backend.fault() == Some(fault);
    #[cfg(not(test))]
    {
        let _ = (backend, fault);
        false
    }
}
