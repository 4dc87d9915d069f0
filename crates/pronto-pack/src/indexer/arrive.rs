//! A worker of the first phase, while the pack arrives: hashes objects that are not deltas,
//! resolves deltas whose base is still in memory, and keeps the other deltas for the second phase.
//! Every delta is sent to the worker that has its base, so workers share no state.

use super::StageContext;
use super::batch::{InflatedBatch, InflatedEntry};
use super::buffers::{BufferPool, ObjectBuffer};
use super::digesting::{DigestWorker, NumberedIds, UndigestedObject};
use super::kept::{ArenaBudget, DeltaArena, DeltaPosition};
use super::tables::EntryBase;
use crate::error::Error;
use gix_object::Kind as ObjectKind;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// A delta that waits for its base.
#[derive(Clone, Copy)]
pub(super) struct PendingDelta {
    pub(super) index: u32,
    pub(super) kept: DeltaPosition,
}

/// The number of content bytes from which contents are hashed together, …
const FRESH_BYTES: usize = 2 << 20;
/// … or the number of batches that contain them.
const FRESH_BATCHES: usize = 8;
/// The length from which contents wait for others of similar length. Hashed together with short
/// ones, they would occupy a single lane.
const LARGE_BYTES: usize = 48 << 10;
/// The number of long contents that are hashed together: twice the largest number of lanes.
const LARGE_ITEMS: usize = 32;
/// The largest number of bytes of waiting long contents.
const LARGE_LIMIT_BYTES: usize = 16 << 20;

/// A worker of the first phase.
pub(super) struct Arrivals<'a> {
    surroundings: &'a StageContext<'a>,
    budget: &'a ArenaBudget,
    pool: BufferPool,
    cache: ContentCache,
    digests: DigestWorker,
    arena: DeltaArena,
    pending: Vec<PendingDelta>,
    /// The batches that contain entries that are not hashed yet.
    held: Vec<InflatedBatch>,
    fresh: Vec<Fresh>,
    fresh_bytes: usize,
    large: Vec<Fresh>,
    large_bytes: usize,
    resolved: u64,
}

/// The results of a worker at the end of the first phase.
pub(super) struct ArrivalState {
    pub(super) ids: NumberedIds,
    pub(super) arena: DeltaArena,
    pub(super) pending: Vec<PendingDelta>,
}

/// An object that is not hashed yet.
struct Fresh {
    index: u32,
    kind: ObjectKind,
    content: Where,
}

enum Where {
    /// A content in an entry of a held batch.
    Batch {
        batch: usize,
        item: usize,
    },
    Made(Arc<ObjectBuffer>),
}

impl<'a> Arrivals<'a> {
    /// Returns a worker whose cache holds up to `cache_bytes` of contents.
    pub(super) fn new(
        surroundings: &'a StageContext<'a>,
        budget: &'a ArenaBudget,
        number: u16,
        cache_bytes: usize,
    ) -> Self {
        Arrivals {
            surroundings,
            budget,
            pool: BufferPool::default(),
            cache: ContentCache::new(cache_bytes),
            digests: DigestWorker::new(surroundings.kind),
            arena: DeltaArena::new(number),
            pending: Vec::new(),
            held: Vec::new(),
            fresh: Vec::new(),
            fresh_bytes: 0,
            large: Vec::new(),
            large_bytes: 0,
            resolved: 0,
        }
    }

    /// Processes the entries of one batch. Completed batches are passed to `free`.
    pub(super) fn process(
        &mut self,
        batch: InflatedBatch,
        free: &dyn Fn(InflatedBatch),
    ) -> Result<(), Error> {
        self.surroundings.check()?;
        for (number, item) in batch.items.iter().enumerate() {
            if item.base == EntryBase::NONE {
                self.whole(&batch, number, item);
            } else if !self.resolve(&batch, item)? {
                let kept = self.arena.keep(batch.bytes(item), self.budget);
                let index = item.index;
                self.pending.push(PendingDelta { index, kept });
            }
        }
        self.held.push(batch);
        if self.fresh_bytes >= FRESH_BYTES || self.held.len() >= FRESH_BATCHES {
            self.digest_fresh(free)?;
        }
        if self.large.len() >= LARGE_ITEMS || self.large_bytes >= LARGE_LIMIT_BYTES {
            self.digest_large()?;
        }
        Ok(())
    }

    /// Ends the first phase; frees caches and spare buffers.
    pub(super) fn finish(mut self) -> Result<ArrivalState, Error> {
        self.digest_fresh(&drop)?;
        self.digest_large()?;
        Ok(ArrivalState {
            ids: self.digests.ids,
            arena: self.arena,
            pending: self.pending,
        })
    }

    /// Processes an object that is not a delta. Caches the object if its type is often used as a
    /// base.
    fn whole(&mut self, batch: &InflatedBatch, number: usize, item: &InflatedEntry) {
        let kind = item.kind.unwrap_or(ObjectKind::Blob);
        let bytes = batch.bytes(item);
        let content = if matches!(kind, ObjectKind::Tree | ObjectKind::Blob)
            && self.cache.admits(bytes.len())
        {
            let mut content = self.pool.take(bytes.len(), kind);
            content.as_mut_slice().copy_from_slice(bytes);
            let content = Arc::new(content);
            self.cache
                .insert(item.index, Arc::clone(&content), &mut self.pool);
            Where::Made(content)
        } else {
            Where::Batch {
                batch: self.held.len(),
                item: number,
            }
        };
        let index = item.index;
        self.add(
            Fresh {
                index,
                kind,
                content,
            },
            bytes.len(),
        );
    }

    /// Resolves a delta. Returns `false` if its base is not in the cache.
    fn resolve(&mut self, batch: &InflatedBatch, item: &InflatedEntry) -> Result<bool, Error> {
        let base = item.base.index().and_then(|base| self.cache.get(base));
        let Some(base) = base else {
            return Ok(false);
        };
        let base = Arc::clone(base);
        let limits = self.surroundings.limits;
        let content = limits
            .make(&base, batch.bytes(item), &mut self.pool)
            .map_err(|error| error.at_offset(item.offset))?;
        self.pool.release(base);
        let len = content.as_slice().len();
        let content = Arc::new(content);
        if self.cache.admits(len) {
            self.cache
                .insert(item.index, Arc::clone(&content), &mut self.pool);
        }
        self.resolved += 1;
        let fresh = Fresh {
            index: item.index,
            kind: content.kind,
            content: Where::Made(content),
        };
        self.add(fresh, len);
        Ok(true)
    }

    fn add(&mut self, fresh: Fresh, len: usize) {
        if len > LARGE_BYTES && matches!(fresh.content, Where::Made(_)) {
            self.large_bytes += len;
            self.large.push(fresh);
        } else {
            self.fresh_bytes += len;
            self.fresh.push(fresh);
        }
    }

    fn digest_fresh(&mut self, free: &dyn Fn(InflatedBatch)) -> Result<(), Error> {
        let fresh = std::mem::take(&mut self.fresh);
        self.fresh_bytes = 0;
        self.fresh = self.digest(fresh)?;
        self.held.drain(..).for_each(free);
        Ok(())
    }

    fn digest_large(&mut self) -> Result<(), Error> {
        let large = std::mem::take(&mut self.large);
        self.large_bytes = 0;
        self.large = self.digest(large)?;
        Ok(())
    }

    /// Hashes contents and releases them; returns the emptied list.
    fn digest(&mut self, mut list: Vec<Fresh>) -> Result<Vec<Fresh>, Error> {
        let objects: Vec<UndigestedObject<'_>> = list
            .iter()
            .map(|fresh| UndigestedObject {
                index: fresh.index,
                kind: fresh.kind,
                content: match &fresh.content {
                    Where::Batch { batch, item } => {
                        let batch = &self.held[*batch];
                        batch.bytes(&batch.items[*item])
                    }
                    Where::Made(content) => content.as_slice(),
                },
            })
            .collect();
        self.digests.digest(self.surroundings, &objects)?;
        drop(objects);
        for fresh in list.drain(..) {
            if let Where::Made(content) = fresh.content {
                self.pool.release(content);
            }
        }
        self.surroundings.resolving.add(self.resolved);
        self.resolved = 0;
        Ok(list)
    }
}

/// A cache of recent contents by entry number. The oldest content is evicted first, unless it was
/// used since the last pass.
struct ContentCache {
    limit: usize,
    used: usize,
    contents: HashMap<u32, Cached, BuildHasherDefault<NumberHasher>>,
    order: VecDeque<u32>,
}

struct Cached {
    content: Arc<ObjectBuffer>,
    used: bool,
}

impl ContentCache {
    fn new(limit: usize) -> Self {
        ContentCache {
            limit,
            used: 0,
            contents: HashMap::default(),
            order: VecDeque::new(),
        }
    }

    /// Returns whether an object of `len` bytes may be cached; a single object must not fill the
    /// cache.
    fn admits(&self, len: usize) -> bool {
        len <= self.limit / 4
    }

    fn get(&mut self, index: u32) -> Option<&Arc<ObjectBuffer>> {
        let cached = self.contents.get_mut(&index)?;
        cached.used = true;
        Some(&cached.content)
    }

    fn insert(&mut self, index: u32, content: Arc<ObjectBuffer>, pool: &mut BufferPool) {
        self.used += content.footprint();
        let used = false;
        self.contents.insert(index, Cached { content, used });
        self.order.push_back(index);
        while self.used > self.limit {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            match self.contents.get_mut(&oldest) {
                Some(cached) if cached.used => {
                    cached.used = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    if let Some(cached) = self.contents.remove(&oldest) {
                        self.used -= cached.content.footprint();
                        pool.release(cached.content);
                    }
                }
            }
        }
    }
}

/// A hasher that distributes entry numbers, which are small and dense, over all bits.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
