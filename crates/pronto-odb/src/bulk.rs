//! Adds many objects at once: as one pack instead of one loose object each.
//!
//! A loose object costs at least five system calls, an inode and a block; a pack entry costs none
//! of these. From [`PACKED_FROM`] new objects on, a pack is written. This is Git's own threshold
//! (`fetch.unpackLimit`) for the same decision. Fewer objects are written loose, as in Git.

use std::collections::HashSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_pack::entry::EntryHeader;
use pronto_pack::writer::{self, Encoder, PackWriter};

use crate::error::{Error, ErrorKind, from_pack, to_pack};
use crate::loose;
use crate::store::{Inventory, Store};

/// The number of new objects from which a pack is written.
pub const PACKED_FROM: usize = 100;

/// The largest number of content bytes held in memory until the number of objects is sufficient for
/// a pack.
const WAITING_BYTES: usize = 16 << 20;

/// The number of sets of ids, each with its own lock, so that threads seldom wait for one another.
const SHARDS: usize = 16;

/// Adds objects from any number of threads. Readers find the added objects after
/// [`finish`](Self::finish). Dropping the value without `finish` may leave loose objects, but no
/// pack.
#[derive(Debug)]
pub struct Bulk {
    store: Store,
    options: writer::Options,
    /// The state for a pack; `None` if too few objects are expected for a pack.
    many: Option<Many>,
}

#[derive(Debug)]
struct Many {
    packed_from: usize,
    inventory: Inventory,
    /// The ids of the objects that this run has added.
    claimed: [Mutex<HashSet<ObjectId>>; SHARDS],
    state: Mutex<BulkBuffer>,
    /// Whether an added object could not be stored, so that `finish` must fail.
    lost: AtomicBool,
}

#[derive(Debug)]
enum BulkBuffer {
    /// There are not enough objects for a pack yet.
    Waiting {
        objects: Vec<(ObjectId, ObjectKind, Vec<u8>)>,
        bytes: usize,
    },
    Packing(Box<PackWriter>),
}

impl Store {
    /// Begins to add about `expected` objects. Fewer than [`PACKED_FROM`] objects are looked up and
    /// written one by one; for more objects, the store is listed once.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn bulk(&self, expected: usize, options: writer::Options) -> Result<Bulk, Error> {
        if expected >= PACKED_FROM {
            return self.pack_from(PACKED_FROM, options);
        }
        Ok(Bulk {
            store: self.clone(),
            options,
            many: None,
        })
    }

    /// Begins to add objects that are stored as a pack if at least `packed_from` of them are new.
    /// Lists the store once.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn pack_from(&self, packed_from: usize, options: writer::Options) -> Result<Bulk, Error> {
        let many = Many {
            packed_from,
            inventory: self.inventory()?,
            claimed: std::array::from_fn(|_| Mutex::default()),
            state: Mutex::new(BulkBuffer::Waiting {
                objects: Vec::new(),
                bytes: 0,
            }),
            lost: AtomicBool::new(false),
        };
        Ok(Bulk {
            store: self.clone(),
            options,
            many: Some(many),
        })
    }
}

impl Bulk {
    /// Returns an encoder for pack entries; each thread needs its own.
    pub fn encoder(&self) -> Encoder {
        Encoder::new(self.options.level)
    }

    /// Adds an object with the known id `id`. If the object exists already, refreshes its
    /// modification time instead. Makes no system call for a new object that is stored in the pack.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a file cannot be written or a directory cannot be listed.
    pub fn add(
        &self,
        id: &oid,
        kind: ObjectKind,
        content: &[u8],
        encoder: &mut Encoder,
    ) -> Result<(), Error> {
        let Some(many) = &self.many else {
            return self.store.write_known(id, kind, content);
        };
        let added = self.add_new(many, id, kind, content, encoder);
        many.lost.fetch_or(added.is_err(), Ordering::Relaxed);
        added
    }

    fn add_new(
        &self,
        many: &Many,
        id: &oid,
        kind: ObjectKind,
        content: &[u8],
        encoder: &mut Encoder,
    ) -> Result<(), Error> {
        if !many.claim(id) || self.is_there(many, id)? {
            return Ok(());
        }
        let waited = {
            let mut state = lock(&many.state);
            match &mut *state {
                BulkBuffer::Waiting { objects, bytes }
                    if objects.len() + 1 < many.packed_from
                        && *bytes + content.len() <= WAITING_BYTES =>
                {
                    *bytes += content.len();
                    objects.push((id.to_owned(), kind, content.to_vec()));
                    return Ok(());
                }
                BulkBuffer::Waiting { objects, .. } => {
                    let pack = self.begin_pack()?;
                    let waited = std::mem::take(objects);
                    *state = BulkBuffer::Packing(Box::new(pack));
                    waited
                }
                BulkBuffer::Packing(_) => Vec::new(),
            }
        };
        for (id, kind, content) in &waited {
            many.append(id, *kind, content, encoder)?;
        }
        many.append(id, kind, content, encoder)
    }

    /// Adds an object of `size_bytes` from a stream, without holding the whole content in memory.
    /// Returns the id of the object.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the stream cannot be read or the object cannot be written,
    /// with `ErrorKind::Corrupt` if the stream is shorter than `size_bytes`, and with
    /// `ErrorKind::Collision` if the content is part of a known attack on SHA-1. Bytes after
    /// `size_bytes` are not read.
    pub fn add_stream(
        &self,
        kind: ObjectKind,
        size_bytes: u64,
        from: &mut dyn Read,
    ) -> Result<ObjectId, Error> {
        let Some(many) = &self.many else {
            let from = &mut from.take(size_bytes);
            return self.store.write_stream(kind, size_bytes, from);
        };
        let mut is_claimed = false;
        let mut exists = |id: &oid| {
            if !many.claim(id) {
                return Ok(true);
            }
            is_claimed = true;
            self.is_there(many, id).map_err(to_pack)
        };
        let mut state = lock(&many.state);
        if let BulkBuffer::Waiting { objects, .. } = &mut *state {
            let mut pack = self.begin_pack()?;
            let mut encoder = self.encoder();
            for (id, kind, content) in objects {
                let entry = encoder.encode(EntryHeader::Object(*kind), content);
                pack.append(id, &entry).map_err(from_pack)?;
            }
            *state = BulkBuffer::Packing(Box::new(pack));
        }
        let BulkBuffer::Packing(pack) = &mut *state else {
            unreachable!("a pack was begun above");
        };
        let added = pack.append_stream(kind, size_bytes, from, &mut exists);
        many.lost
            .fetch_or(added.is_err() && is_claimed, Ordering::Relaxed);
        added.map_err(from_pack)
    }

    /// Does the same as [`add_stream`](Self::add_stream), but always writes a loose object, so that
    /// threads that add streams do not wait for one another. This is intended for contents that are
    /// too large to be held by several threads, and small enough for several to be read at a time.
    ///
    /// # Errors
    /// Fails as [`add_stream`](Self::add_stream) does.
    pub fn add_loose_stream(
        &self,
        kind: ObjectKind,
        size_bytes: u64,
        from: &mut dyn Read,
    ) -> Result<ObjectId, Error> {
        let Some(many) = &self.many else {
            return self.add_stream(kind, size_bytes, from);
        };
        let mut is_claimed = false;
        let mut exists = |id: &oid| {
            is_claimed = many.claim(id);
            Ok(!is_claimed || self.is_there(many, id)?)
        };
        self.store.begin_writing()?;
        let (objects, options) = (self.store.path(), self.store.options());
        let from = &mut from.take(size_bytes);
        let added =
            loose::write::write_stream(objects, options, kind, size_bytes, from, &mut exists);
        many.lost
            .fetch_or(added.is_err() && is_claimed, Ordering::Relaxed);
        added
    }

    /// Returns whether the object `id` existed before this run, and refreshes its modification
    /// time.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a directory cannot be listed.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        match &self.many {
            Some(many) => self.is_there(many, id),
            None => self.store.freshen(id),
        }
    }

    /// Writes all pending objects and the index of the pack. Afterwards all readers, including this
    /// store, find the objects.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if an object cannot be written, or could not be added before.
    /// After an error, objects that were reported as existing may be missing.
    pub fn finish(self) -> Result<(), Error> {
        let Some(many) = self.many else {
            return Ok(());
        };
        if many.lost.load(Ordering::Relaxed) {
            let message = "an earlier object could not be stored, so the batch was aborted";
            return Err(Error::new(ErrorKind::Io, message));
        }
        match many
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            BulkBuffer::Waiting { objects, .. } => {
                self.store.begin_writing()?;
                for (id, kind, content) in objects {
                    let (path, options) = (self.store.path(), self.store.options());
                    loose::write::write(path, options, &id, kind, &content)?;
                }
            }
            BulkBuffer::Packing(pack) if pack.is_empty() => {}
            BulkBuffer::Packing(pack) => {
                pack.finish().map_err(from_pack)?;
                self.store.refresh()?;
            }
        }
        Ok(())
    }

    fn begin_pack(&self) -> Result<PackWriter, Error> {
        self.store.begin_writing()?;
        let directory = self.store.path().join("pack");
        loose::write::make_directory(&directory, self.store.options())?;
        PackWriter::begin(&directory, self.options.clone()).map_err(from_pack)
    }

    /// Returns whether the store had the object at the start. Refreshes the modification time of an
    /// existing object, so that it is not pruned.
    fn is_there(&self, many: &Many, id: &oid) -> Result<bool, Error> {
        let mut found = Vec::new();
        many.inventory
            .contains_batch(&[id.to_owned()], &mut found)?;
        Ok(!found.is_empty() && self.store.freshen(id)?)
    }
}

impl Many {
    /// Records `id` as added. Returns `false` if this run has added the object already.
    fn claim(&self, id: &oid) -> bool {
        let shard = usize::from(id.first_byte()) % SHARDS;
        lock(&self.claimed[shard]).insert(id.to_owned())
    }

    fn append(
        &self,
        id: &oid,
        kind: ObjectKind,
        content: &[u8],
        encoder: &mut Encoder,
    ) -> Result<(), Error> {
        let entry = encoder.encode(EntryHeader::Object(kind), content);
        match &mut *lock(&self.state) {
            BulkBuffer::Packing(pack) => pack.append(id, &entry).map(|_| ()).map_err(from_pack),
            BulkBuffer::Waiting { .. } => unreachable!("a pack that was begun stays"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
