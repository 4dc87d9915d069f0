//! The cache of delta bases: shared among threads in shards, limited in bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;

use super::PackOffset;

const SHARDS: usize = 16;

/// The memory of a cache entry besides its bytes.
const OVERHEAD: usize = 96;

/// The size from which a base is large.
const LARGE_BYTES: usize = 1 << 20;

/// The fraction of the cache for large bases.
const LARGE_PART: usize = 4;

/// The key of an opened pack in a cache, unique for the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackKey(pub(super) u64);

impl PackKey {
    pub(super) fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        PackKey(NEXT.fetch_add(1, Relaxed))
    }
}

/// An object that is the base of deltas.
#[derive(Clone, Debug)]
pub struct CachedBase {
    /// The type of the object.
    pub kind: ObjectKind,
    /// The content of the object.
    pub bytes: Arc<Vec<u8>>,
}

/// A size-limited cache of delta bases, to be shared among all packs and threads in an [`Arc`]. A
/// lookup takes one short lock of a shard, and another one for large bases if there are any.
/// Entries that were not used since the last pass are evicted first. Bases of one MiB or more have
/// a quarter of the cache: a reader of a chain needs only the last few bases, and they would evict
/// all small ones.
#[derive(Debug)]
pub struct BaseCache {
    shards: [Mutex<Shard>; SHARDS],
    large: Mutex<LargeBases>,
    /// The memory of the large entries, in bytes.
    large_used: AtomicUsize,
    /// The memory of all entries, in bytes.
    used: AtomicUsize,
    limit: AtomicUsize,
}

/// The large bases, most recently used last.
#[derive(Debug, Default)]
struct LargeBases {
    bases: VecDeque<(CacheKey, CachedBase)>,
}

#[derive(Debug, Default)]
struct Shard {
    places: HashMap<CacheKey, usize, BuildHasherDefault<KeyHasher>>,
    slots: Vec<CacheSlot>,
    hand: usize,
}

#[derive(Debug)]
struct CacheSlot {
    key: CacheKey,
    base: CachedBase,
    asked_for: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    pack: PackKey,
    offset: PackOffset,
}

impl BaseCache {
    /// Returns a cache of at most `limit` bytes; zero disables caching. Allocates memory only as
    /// the cache fills.
    pub fn new(limit: usize) -> Self {
        BaseCache {
            shards: Default::default(),
            large: Mutex::default(),
            large_used: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        }
    }

    /// Returns the memory limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Lowers the limit to `limit` bytes. Does nothing if the limit is lower already. Excess
    /// entries are evicted at the next insertion. Any thread may call this function while others
    /// use the cache.
    pub fn lower_limit(&self, limit: usize) {
        self.limit.fetch_min(limit, Relaxed);
    }

    /// Returns the used memory in bytes.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Returns the base at `offset` of `pack`, if it is cached.
    pub fn get(&self, pack: PackKey, offset: PackOffset) -> Option<CachedBase> {
        let key = CacheKey { pack, offset };
        if self.large_used.load(Relaxed) > 0
            && let Some(base) = self.large().get(key)
        {
            return Some(base);
        }
        let mut shard = self.shard(key);
        let at = *shard.places.get(&key)?;
        let slot = &mut shard.slots[at];
        slot.asked_for = true;
        Some(slot.base.clone())
    }

    /// Caches `base`, unless it is too large for the cache, and evicts other bases if necessary.
    pub fn insert(&self, pack: PackKey, offset: PackOffset, base: CachedBase) {
        let cost = base.bytes.len() + OVERHEAD;
        if cost > self.limit() / 2 {
            return;
        }
        let key = CacheKey { pack, offset };
        if base.bytes.len() >= LARGE_BYTES {
            return self.insert_large(key, base, cost);
        }
        let mut shard = self.shard(key);
        if shard.places.contains_key(&key) {
            return;
        }
        let used = self.used.fetch_add(cost, Relaxed) + cost;
        if used > self.limit() {
            let freed = shard.evict(used.saturating_sub(self.limit()));
            self.used.fetch_sub(freed, Relaxed);
        }
        let at = shard.slots.len();
        shard.places.insert(key, at);
        shard.slots.push(CacheSlot {
            key,
            base,
            asked_for: false,
        });
        drop(shard);
        if self.used() > self.limit() {
            self.evict_elsewhere(shard_of(key));
        }
    }

    /// Caches a large base. Evicts the least recently used large base if necessary, and small bases
    /// if the total limit is exceeded.
    fn insert_large(&self, key: CacheKey, base: CachedBase, cost: usize) {
        let mut large = self.large();
        if large.get(key).is_some() {
            return;
        }
        let most = (self.limit() / LARGE_PART).saturating_sub(cost);
        while self.large_used.load(Relaxed) > most
            && let Some((_, gone)) = large.bases.pop_front()
        {
            let freed = gone.bytes.len() + OVERHEAD;
            self.large_used.fetch_sub(freed, Relaxed);
            self.used.fetch_sub(freed, Relaxed);
        }
        large.bases.push_back((key, base));
        self.large_used.fetch_add(cost, Relaxed);
        self.used.fetch_add(cost, Relaxed);
        drop(large);
        self.evict_elsewhere(0);
    }

    fn large(&self) -> MutexGuard<'_, LargeBases> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evicts entries of other shards whose locks are free, because one shard alone could not free
    /// enough memory. Passes twice, because recently used entries are spared in the first pass.
    fn evict_elsewhere(&self, own: usize) {
        for step in 1..=2 * SHARDS {
            let excess = self.used().saturating_sub(self.limit());
            if excess == 0 {
                return;
            }
            if let Ok(mut shard) = self.shards[(own + step) % SHARDS].try_lock() {
                let freed = shard.evict(excess);
                self.used.fetch_sub(freed, Relaxed);
            }
        }
    }

    fn shard(&self, key: CacheKey) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(key)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl LargeBases {
    fn get(&mut self, key: CacheKey) -> Option<CachedBase> {
        let at = self.bases.iter().position(|(known, _)| *known == key)?;
        let found = self.bases.remove(at)?;
        let base = found.1.clone();
        self.bases.push_back(found);
        Some(base)
    }
}

impl Shard {
    /// Passes once over the entries until `bytes` are freed, and spares entries that were used
    /// since the last pass. Returns the number of freed bytes.
    fn evict(&mut self, bytes: usize) -> usize {
        let mut freed = 0;
        for _ in 0..self.slots.len() {
            if freed >= bytes {
                break;
            }
            self.hand %= self.slots.len();
            let slot = &mut self.slots[self.hand];
            if slot.asked_for {
                slot.asked_for = false;
                self.hand += 1;
                continue;
            }
            let gone = self.slots.swap_remove(self.hand);
            self.places.remove(&gone.key);
            if let Some(moved) = self.slots.get(self.hand) {
                self.places.insert(moved.key, self.hand);
            }
            self.hand += 1;
            freed += gone.base.bytes.len() + OVERHEAD;
        }
        freed
    }
}

fn shard_of(key: CacheKey) -> usize {
    (mix(key) >> 32) as usize % SHARDS
}

fn mix(key: CacheKey) -> u64 {
    let mut hasher = KeyHasher::default();
    hasher.write_u64(key.pack.0);
    hasher.write_u64(key.offset.0);
    hasher.finish()
}

/// A simple hasher: offsets do not need protection against collisions, because an adversary would
/// have to build a whole pack.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(len: usize) -> CachedBase {
        CachedBase {
            kind: ObjectKind::Blob,
            bytes: Arc::new(vec![1; len]),
        }
    }

    #[test]
    fn it_stays_within_its_limit_and_keeps_what_is_used() {
        let cache = BaseCache::new(100_000);
        let pack = PackKey::unique();
        for offset in 0..1000 {
            cache.insert(pack, PackOffset(offset), base(1000));
            cache
                .get(pack, PackOffset(0))
                .expect("it is asked for all the time");
            assert!(cache.used() <= cache.limit());
        }
        let kept = (0..1000).filter(|&at| cache.get(pack, PackOffset(at)).is_some());
        assert!(kept.count() > 60);
        assert!(cache.get(PackKey::unique(), PackOffset(999)).is_none());
    }

    #[test]
    fn large_ones_have_a_quarter_to_themselves() {
        let cache = BaseCache::new(16 << 20);
        let pack = PackKey::unique();
        for offset in 0..100 {
            cache.insert(pack, PackOffset(offset), base(10_000));
        }
        for offset in 100..120 {
            cache.insert(pack, PackOffset(offset), base(1 << 20));
            cache.insert(pack, PackOffset(offset), base(1 << 20));
            cache
                .get(pack, PackOffset(100))
                .expect("it is asked for all the time");
        }
        let is_kept = |at: &u64| cache.get(pack, PackOffset(*at)).is_some();
        assert_eq!((0..100).filter(is_kept).count(), 100);
        assert_eq!(
            (100..120).filter(is_kept).collect::<Vec<u64>>(),
            [100, 118, 119]
        );
        assert!(cache.used() <= cache.limit());
        // A base that alone exceeds the limit of large bases is cached alone, and small bases are
        // evicted for it.
        cache.insert(pack, PackOffset(200), base(5 << 20));
        assert!(is_kept(&200) && !is_kept(&119));
        for offset in 1000..2000 {
            cache.insert(pack, PackOffset(offset), base(10_000));
            assert!(cache.used() <= cache.limit());
        }
        cache.insert(pack, PackOffset(201), base(6 << 20));
        assert!(cache.used() <= cache.limit());
    }

    #[test]
    fn what_is_out_of_proportion_is_not_kept() {
        let cache = BaseCache::new(1000);
        let pack = PackKey::unique();
        cache.insert(pack, PackOffset(1), base(800));
        assert!(cache.get(pack, PackOffset(1)).is_none());
        assert_eq!(cache.used(), 0);
    }
}
