//! Packs that equal requests share: each is made once while it is asked for, and kept afterwards as long as
//! there is room.
//!
//! The thread of the first request makes the pack into a spool. Each request, also the first one, reads it
//! from there at the speed of its client, so that no client waits for another one. Spools are files without a
//! name; small ones are in memory. A pack that does not fit in the budget is made for the requests that wait
//! for it, a window at a time, and not kept.
//!
//! Requests that are equal want the same objects of the same repository, and were allowed to. Packs that
//! bitmaps answer do not get here: reading a spool costs more than copying from the repository.

mod spool;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use pronto::upload_pack::{Counts, PackKey};
use pronto_io::interrupt::Interrupt;

use spool::{Joined, Spool};

/// The packs of a server. `Send + Sync`; requests share it.
#[derive(Debug)]
pub struct PackCache {
    directory: PathBuf,
    most_bytes: u64,
    entries: Mutex<Entries>,
    budget: Arc<Budget>,
    made: Counter<u64, AtomicU64>,
    shared: Counter<u64, AtomicU64>,
}

/// The bytes that spools have.
#[derive(Debug, Default)]
struct Budget {
    bytes: Gauge,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<PackKey, Entry>,
    /// Rises with each use.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    spool: Arc<Spool>,
    used: u64,
}

impl PackCache {
    /// Returns an empty cache, whose files are in `directory` and have at most `most_bytes` in all. A
    /// single pack has at most a quarter of them.
    pub fn new(directory: &Path, most_bytes: u64) -> Self {
        PackCache {
            directory: directory.to_owned(),
            most_bytes,
            entries: Mutex::default(),
            budget: Arc::default(),
            made: Counter::default(),
            shared: Counter::default(),
        }
    }

    /// Adds the counters of the cache to those of a server.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Packs that were made for requests that may share them";
        registry.register("packs_made", help, self.made.clone());
        let help = "Requests that were answered with the pack of another one";
        registry.register("packs_shared", help, self.shared.clone());
        let help = "Bytes of packs that are kept for equal requests";
        registry.register("kept_pack_bytes", help, self.budget.bytes.clone());
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the spool of `key`, or begins it.
    fn join(&self, key: &PackKey) -> Joined {
        let mut entries = self.entries();
        entries.clock += 1;
        let now = entries.clock;
        if let Some(entry) = entries.by_key.get_mut(key)
            && let Some(reader) = entry.spool.join()
        {
            entry.used = now;
            return Joined {
                spool: Arc::clone(&entry.spool),
                reader,
                makes: false,
            };
        }
        let (spool, reader) = Spool::begin(&self.directory, Arc::clone(&self.budget));
        let spool = Arc::new(spool);
        let entry = Entry {
            spool: Arc::clone(&spool),
            used: now,
        };
        entries.by_key.insert(*key, entry);
        Joined {
            spool,
            reader,
            makes: true,
        }
    }

    /// Removes the spool from the table, if it is the one of `key`.
    fn forget(&self, key: &PackKey, spool: &Arc<Spool>) {
        let mut entries = self.entries();
        let is_it = entries
            .by_key
            .get(key)
            .is_some_and(|entry| Arc::ptr_eq(&entry.spool, spool));
        if is_it {
            entries.by_key.remove(key);
        }
    }

    /// Makes room for `bytes` more of `spool` by removing what was used least recently; whether there is
    /// room.
    fn reserve(&self, spool: &Spool, bytes: u64) -> bool {
        if spool.reserved() + bytes > self.most_bytes / 4 {
            return false;
        }
        let mut entries = self.entries();
        while self.budget.bytes.get().unsigned_abs() + bytes > self.most_bytes {
            let complete = entries
                .by_key
                .iter()
                .filter(|(_, entry)| entry.spool.is_idle());
            let oldest = complete.min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return false;
            };
            entries.by_key.remove(&key);
        }
        spool.reserve(bytes);
        true
    }
}

impl pronto::upload_pack::PackCache for PackCache {
    fn send(
        &self,
        key: &PackKey,
        out: &mut (dyn Write + Send),
        make: &mut dyn FnMut(&mut dyn Write) -> pronto::Result<Counts>,
        interrupt: &Interrupt,
    ) -> pronto::Result<Counts> {
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
            // Without a thread nobody reads, and the pack ends with its first write.
            let mut writer = spool.writer(|bytes| self.reserve(&spool, bytes));
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
            // What went wrong with the pack says more than that it could not be read.
            (Err(error), _) if !spool.is_abandoned() => Err(error),
            (_, Some(read)) => read,
            (_, None) => Err(spool::failure("cannot start a thread for the answer")),
        }
    }
}

#[cfg(test)]
mod tests;
