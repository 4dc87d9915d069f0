//! A cache of packs for equal requests. Each pack is generated once for concurrent requests, and
//! cached afterwards as long as there is room.
//!
//! The thread of the first request writes the pack into a spool. Each request, including the first
//! one, reads the spool at the speed of its client, so that no client waits for another one. Spools
//! are files without a name. Small spools are in memory, up to a total limit. A pack that exceeds
//! the budget is streamed to the waiting requests through a window of limited size, and is not
//! cached.
//!
//! Equal requests want the same objects of the same repository, and have passed the same access
//! checks. Packs that bitmaps provide bypass this cache, because reading a spool costs more than
//! copying from the repository.

mod spool;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use pronto::upload_pack::{PackCounts, SentPackKey};
use pronto_io::interrupt::Interrupt;

use spool::{Joined, PackSpool, SpoolRoom};

/// The largest total size in bytes of packs in memory.
const MOST_MEMORY_BYTES: u64 = 32 << 20;

/// The cache of packs of a server. `Send + Sync`; all requests share it.
#[derive(Debug)]
pub struct ServerPackCache {
    directory: PathBuf,
    most_bytes: u64,
    entries: Mutex<CachedPacks>,
    budget: Arc<SpoolBudget>,
    made: Counter<u64, AtomicU64>,
    shared: Counter<u64, AtomicU64>,
}

/// The number of bytes that all spools use.
#[derive(Debug, Default)]
struct SpoolBudget {
    bytes: Gauge,
    /// The number of these bytes that are in memory.
    memory: Gauge,
}

#[derive(Debug, Default)]
struct CachedPacks {
    by_key: HashMap<SentPackKey, Entry>,
    /// The keys, ordered by the time of their last use.
    by_use: BTreeMap<u64, SentPackKey>,
    /// The counter of uses, which orders entries by their last use.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    spool: Arc<PackSpool>,
    used: u64,
}

impl CachedPacks {
    /// Returns the spool of `key`, and marks it as used now.
    fn get(&mut self, key: &SentPackKey) -> Option<Arc<PackSpool>> {
        let entry = self.by_key.get_mut(key)?;
        self.by_use.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        self.by_use.insert(entry.used, *key);
        Some(Arc::clone(&entry.spool))
    }

    /// Adds a spool, and replaces the previous spool of the key.
    fn insert(&mut self, key: SentPackKey, spool: Arc<PackSpool>) {
        self.remove(&key);
        self.clock += 1;
        let used = self.clock;
        self.by_use.insert(used, key);
        self.by_key.insert(key, Entry { spool, used });
    }

    fn remove(&mut self, key: &SentPackKey) {
        if let Some(entry) = self.by_key.remove(key) {
            self.by_use.remove(&entry.used);
        }
    }

    /// Returns the key of the least recently used spool, among those that `is_evictable` accepts.
    fn oldest(&self, is_evictable: impl Fn(&PackSpool) -> bool) -> Option<SentPackKey> {
        let mut keys = self.by_use.values();
        let is_evictable = |key: &&SentPackKey| {
            let entry = self.by_key.get(*key);
            entry.is_some_and(|entry| is_evictable(&entry.spool))
        };
        keys.find(is_evictable).copied()
    }
}

impl ServerPackCache {
    /// Returns an empty cache, whose files are in `directory` and have at most `most_bytes` in
    /// total. A single pack may have at most a quarter of `most_bytes`.
    pub fn new(directory: &Path, most_bytes: u64) -> Self {
        ServerPackCache {
            directory: directory.to_owned(),
            most_bytes,
            entries: Mutex::default(),
            budget: Arc::default(),
            made: Counter::default(),
            shared: Counter::default(),
        }
    }

    /// Registers the counters of the cache in `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Packs that were made for requests that may share them";
        registry.register("packs_made", help, self.made.clone());
        let help = "Requests that were answered with the pack of another one";
        registry.register("packs_shared", help, self.shared.clone());
        let help = "Bytes of packs that are kept for equal requests";
        registry.register("kept_pack_bytes", help, self.budget.bytes.clone());
        let help = "Bytes of these packs that are in memory";
        let memory = self.budget.memory.clone();
        registry.register("kept_pack_memory_bytes", help, memory);
    }

    fn entries(&self) -> MutexGuard<'_, CachedPacks> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the spool of `key`, or starts a new spool.
    fn join(&self, key: &SentPackKey) -> Joined {
        let mut entries = self.entries();
        if let Some(spool) = entries.get(key)
            && let Some(reader) = spool.join()
        {
            return Joined {
                spool,
                reader,
                makes: false,
            };
        }
        let (spool, reader) = PackSpool::begin(&self.directory, Arc::clone(&self.budget));
        let spool = Arc::new(spool);
        entries.insert(*key, Arc::clone(&spool));
        Joined {
            spool,
            reader,
            makes: true,
        }
    }

    /// Removes the entry of `key` if it still has this spool.
    fn forget(&self, key: &SentPackKey, spool: &Arc<PackSpool>) {
        let mut entries = self.entries();
        let entry = entries.by_key.get(key);
        if entry.is_some_and(|entry| Arc::ptr_eq(&entry.spool, spool)) {
            entries.remove(key);
        }
    }

    /// Evicts the least recently used spools, among those that `is_evictable` accepts, until `used` and
    /// `bytes` together are at most `most`. Returns the locked entries, or `None` if there is not
    /// enough room.
    fn make_room(
        &self,
        used: &Gauge,
        bytes: u64,
        most: u64,
        is_evictable: impl Fn(&PackSpool) -> bool,
    ) -> Option<MutexGuard<'_, CachedPacks>> {
        let mut entries = self.entries();
        while used.get().unsigned_abs() + bytes > most {
            let key = entries.oldest(&is_evictable)?;
            entries.remove(&key);
        }
        Some(entries)
    }
}

impl SpoolRoom for ServerPackCache {
    fn reserve(&self, spool: &PackSpool, bytes: u64) -> bool {
        if spool.reserved() + bytes > self.most_bytes / 4 {
            return false;
        }
        let room = self.make_room(
            &self.budget.bytes,
            bytes,
            self.most_bytes,
            PackSpool::is_idle,
        );
        // The reservation takes place under the lock, so that no other spool uses the same room.
        room.inspect(|_| spool.reserve(bytes)).is_some()
    }

    fn reserve_memory(&self, spool: &PackSpool, bytes: u64) -> bool {
        let (used, is_evictable) = (&self.budget.memory, PackSpool::is_idle_in_memory);
        let room = self.make_room(used, bytes, MOST_MEMORY_BYTES, is_evictable);
        room.inspect(|_| spool.reserve_memory(bytes)).is_some()
    }
}

impl pronto::upload_pack::PackCache for ServerPackCache {
    fn send(
        &self,
        key: &SentPackKey,
        out: &mut (dyn Write + Send),
        make: &mut dyn FnMut(&mut dyn Write) -> pronto::Result<PackCounts>,
        interrupt: &Interrupt,
    ) -> pronto::Result<PackCounts> {
        let joined = self.join(key);
        if !joined.makes {
            self.shared.inc();
            return joined.read(out, interrupt);
        }
        self.made.inc();
        let spool = Arc::clone(&joined.spool);
        let sent = std::thread::scope(|scope| {
            let reading = std::thread::Builder::new()
                .name("pack".into())
                .spawn_scoped(scope, move || joined.read(out, interrupt));
            // If the thread does not start, no reader joins, and the pack ends with its first
            // write.
            let mut writer = spool.writer(self);
            let made = make(&mut writer);
            if made.is_err() || !writer.is_kept() {
                self.forget(key, &spool);
            }
            writer.end(&made);
            match reading {
                Ok(reading) => (made, reading.join().ok()),
                Err(_) => (made, None),
            }
        });
        match sent {
            // The error of the pack is more specific than the error of the reader.
            (Err(error), _) if !spool.is_abandoned() => Err(error),
            (_, Some(read)) => read,
            (_, None) => Err(spool::failure("cannot start a thread for the response")),
        }
    }
}

#[cfg(test)]
mod tests;
