//! Adds many objects at once: as one pack instead of one file each.
//!
//! A loose object costs at least five system calls, an inode and a block; an entry of a pack costs
//! none of these. From [`PACKED_FROM`] objects on a pack is written. This is Git's own threshold
//! (`fetch.unpackLimit`) for the same decision. Fewer objects are written loose, as in Git.

use std::collections::HashSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_pack::entry::Header;
use pronto_pack::writer::{self, Encoder, PackWriter};

use crate::error::{Error, ErrorKind, from_pack, to_pack};
use crate::loose;
use crate::store::{Inventory, Store};

/// The number of new objects from which on they are stored as a pack.
pub const PACKED_FROM: usize = 100;

/// Contents that may wait in memory until it is known whether there are enough for a pack.
const WAITING_BYTES: usize = 16 << 20;

/// Sets of ids, so that threads seldom wait for one another.
const SHARDS: usize = 16;

/// Takes objects from any number of threads. What was added is there for readers when
/// [`finish`](Self::finish) is done; dropping it instead may leave loose objects, and no pack.
#[derive(Debug)]
pub struct Bulk {
    store: Store,
    options: writer::Options,
    /// `None` when there are too few objects for a pack.
    many: Option<Many>,
}

#[derive(Debug)]
struct Many {
    packed_from: usize,
    inventory: Inventory,
    /// The ids of the objects that were added in this run.
    claimed: [Mutex<HashSet<ObjectId>>; SHARDS],
    state: Mutex<State>,
    /// Something that was added is lost: then there is nothing to finish.
    lost: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// Not enough for a pack yet.
    Waiting {
        objects: Vec<(ObjectId, ObjectKind, Vec<u8>)>,
        bytes: usize,
    },
    Packing(Box<PackWriter>),
}

impl Store {
    /// Begins to add about `expected` objects. Fewer than [`PACKED_FROM`] are looked up and written
    /// one by one; otherwise the store is listed once.
    ///
    /// # Errors
    /// `Io` when the packs cannot be listed.
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

    /// Begins to add objects that become a pack if at least `packed_from` of them are new. Lists the
    /// store once.
    ///
    /// # Errors
    /// `Io` when the packs cannot be listed.
    pub fn pack_from(&self, packed_from: usize, options: writer::Options) -> Result<Bulk, Error> {
        let many = Many {
            packed_from,
            inventory: self.inventory()?,
            claimed: std::array::from_fn(|_| Mutex::default()),
            state: Mutex::new(State::Waiting {
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
    /// Makes entries for the pack: one for each thread.
    pub fn encoder(&self) -> Encoder {
        Encoder::new(self.options.level)
    }

    /// Adds an object whose id is known to be `id`, unless it is there already; then it is marked
    /// as used. No system call for an object that is new and goes into the pack.
    ///
    /// # Errors
    /// `Io` when something cannot be written or listed.
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
                State::Waiting { objects, bytes }
                    if objects.len() + 1 < many.packed_from
                        && *bytes + content.len() <= WAITING_BYTES =>
                {
                    *bytes += content.len();
                    objects.push((id.to_owned(), kind, content.to_vec()));
                    return Ok(());
                }
                State::Waiting { objects, .. } => {
                    let pack = self.begin_pack()?;
                    let waited = std::mem::take(objects);
                    *state = State::Packing(Box::new(pack));
                    waited
                }
                State::Packing(_) => Vec::new(),
            }
        };
        for (id, kind, content) in &waited {
            many.append(id, *kind, content, encoder)?;
        }
        many.append(id, kind, content, encoder)
    }

    /// Adds an object of `size_bytes` from a stream, which is never held whole, and returns its id.
    ///
    /// # Errors
    /// `Io` when it cannot be read or written, `Corrupt` when the stream is shorter,
    /// `Collision` when its content is part of a known attack on SHA-1. What follows is not read.
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
        if let State::Waiting { objects, .. } = &mut *state {
            let mut pack = self.begin_pack()?;
            let mut encoder = self.encoder();
            for (id, kind, content) in objects {
                let entry = encoder.encode(Header::Object(*kind), content);
                pack.append(id, &entry).map_err(from_pack)?;
            }
            *state = State::Packing(Box::new(pack));
        }
        let State::Packing(pack) = &mut *state else {
            unreachable!("a pack was begun above");
        };
        let added = pack.append_stream(kind, size_bytes, from, &mut exists);
        many.lost
            .fetch_or(added.is_err() && is_claimed, Ordering::Relaxed);
        added.map_err(from_pack)
    }

    /// Does the same as [`add_stream`](Self::add_stream), but always into a file of its own, so
    /// that threads that add streams do not wait for one another. For contents that are too large
    /// to be held by several threads, and small enough for several to be read at a time.
    ///
    /// # Errors
    /// As [`add_stream`](Self::add_stream).
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

    /// Marks `id` as used and says whether it was there before this run.
    ///
    /// # Errors
    /// `Io` when something cannot be listed.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        match &self.many {
            Some(many) => self.is_there(many, id),
            None => self.store.freshen(id),
        }
    }

    /// Writes all pending objects and the index of the pack. Then all readers, this store included,
    /// find them.
    ///
    /// # Errors
    /// `Io` when something cannot be written, or could not be added before. A caller that was told
    /// that an object exists may have been told too early.
    pub fn finish(self) -> Result<(), Error> {
        let Some(many) = self.many else {
            return Ok(());
        };
        if many.lost.load(Ordering::Relaxed) {
            let message = "an object could not be stored, and others may rely on it";
            return Err(Error::new(ErrorKind::Io, message));
        }
        match many
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            State::Waiting { objects, .. } => {
                self.store.begin_writing()?;
                for (id, kind, content) in objects {
                    let (path, options) = (self.store.path(), self.store.options());
                    loose::write::write(path, options, &id, kind, &content)?;
                }
            }
            State::Packing(pack) if pack.is_empty() => {}
            State::Packing(pack) => {
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

    /// Whether the store had it at the start. It is marked as used then, so that it stays.
    fn is_there(&self, many: &Many, id: &oid) -> Result<bool, Error> {
        let mut found = Vec::new();
        many.inventory
            .contains_batch(&[id.to_owned()], &mut found)?;
        Ok(!found.is_empty() && self.store.freshen(id)?)
    }
}

impl Many {
    /// False if it was added already in this run.
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
        let entry = encoder.encode(Header::Object(kind), content);
        match &mut *lock(&self.state) {
            State::Packing(pack) => pack.append(id, &entry).map(|_| ()).map_err(from_pack),
            State::Waiting { .. } => unreachable!("a pack that was begun stays"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
