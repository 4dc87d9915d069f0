//! The object store: reads objects by id from packs, loose files and alternates.

mod ahead;
mod batch;
mod bitmapped;
mod details;
mod enumerate;
mod links;
mod lookup;
mod loosen;
mod numbered;
pub mod packing;
mod promised;
mod salvage;
mod unpack;
mod write;
mod writing;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, oid};
use pronto_pack::pack::{BaseCache, Bases, Decoder, PackOffset};

pub use batch::Inventory;
pub use bitmapped::Bitmapped;
pub use details::{Content, ObjectReader, Packed};
pub use enumerate::{Ids, Matches};
pub use links::LinkedPack;
pub use numbered::{Numbered, ObjectSet};
pub use promised::Promised;
pub use salvage::Salvaged;

use crate::error::{Error, ErrorKind, from_pack};
use crate::options::Options;
use crate::packs::PackFile;
use crate::snapshot::Snapshot;
use crate::turns::Writing;
use crate::{alternates, loose};

/// The largest number of replacements of replacements that are followed.
const MAX_REPLACE_DEPTH: usize = 5;

/// The number of large objects that are built from deltas at the same time.
const CHAINS: usize = 16;

/// The objects of a repository.
///
/// Cheap to clone; clones share everything. `Send + Sync`: any number of threads may read and write
/// at once. Reading packs takes no lock, except for short locks of shards of the cache of delta
/// bases. Each thread has a decoder of its own.
///
/// Other processes may add, repack and prune meanwhile: when something is not found and the
/// directories of packs have changed, they are listed again and the search is repeated.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
    replacements: Option<Arc<HashMap<ObjectId, ObjectId>>>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    /// The store's own directory first.
    directories: Vec<PathBuf>,
    warnings: Vec<Error>,
    snapshot: ArcSwap<Snapshot>,
    /// Held by the one who lists.
    listing: Mutex<()>,
    pack_numbers: AtomicU32,
    bases: Arc<BaseCache>,
    writing: Arc<Writing>,
    /// The turn of writing in which packs were listed last.
    listed_in: AtomicU32,
    /// Held by the one who makes a large object, for chains that end at like offsets.
    chains: [Mutex<()>; CHAINS],
    promised: OnceLock<Box<dyn Promised>>,
}

/// The position of an object in a pack. Objects are read fastest in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The number of the pack: unique within the store as long as it lives.
    pub pack: u32,
    /// The start of the entry in the pack.
    pub offset: PackOffset,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Buffers with which a thread reads objects.
#[derive(Default)]
struct Scratch {
    decoder: Decoder,
    loose: loose::Scratch,
}

impl Store {
    /// Opens the object directory at `objects` and reads its list of alternates. Packs are listed
    /// at the first lookup.
    ///
    /// # Errors
    /// `Io` when a list of alternates exists and cannot be read.
    pub fn open(objects: impl AsRef<Path>, options: Options) -> Result<Store, Error> {
        let writing = Arc::new(Writing::new(objects.as_ref()));
        Store::open_with(objects.as_ref(), options, writing)
    }

    /// Like [`open`](Self::open), of a directory whose writers count as those of another one.
    pub(crate) fn open_with(
        objects: &Path,
        options: Options,
        writing: Arc<Writing>,
    ) -> Result<Store, Error> {
        let found = alternates::resolve(objects, &options.alternates)?;
        Ok(Store {
            inner: Arc::new(Inner {
                bases: Arc::new(BaseCache::new(options.delta_base_cache_bytes)),
                options,
                writing,
                listed_in: AtomicU32::new(0),
                directories: found.paths,
                warnings: found.warnings,
                snapshot: ArcSwap::default(),
                listing: Mutex::new(()),
                pack_numbers: AtomicU32::new(0),
                chains: Default::default(),
                promised: OnceLock::new(),
            }),
            replacements: None,
        })
    }

    /// The same store, in which asking for a key of `replacements` gives its value instead
    /// (`refs/replace/`).
    #[must_use]
    pub fn with_replacements(&self, replacements: HashMap<ObjectId, ObjectId>) -> Store {
        Store {
            inner: self.inner.clone(),
            replacements: (!replacements.is_empty()).then(|| Arc::new(replacements)),
        }
    }

    /// The same store, in which nothing is replaced.
    #[must_use]
    pub fn without_replacements(&self) -> Store {
        Store {
            inner: self.inner.clone(),
            replacements: None,
        }
    }

    /// Whether any object is replaced by another.
    pub fn has_replacements(&self) -> bool {
        self.replacements.is_some()
    }

    /// The id of the object that replaces `id`, or `id` itself.
    ///
    /// # Errors
    /// `Limit` when replacements are replaced too often.
    pub fn replaced(&self, id: &oid) -> Result<ObjectId, Error> {
        let mut id = id.to_owned();
        let Some(replacements) = &self.replacements else {
            return Ok(id);
        };
        for _ in 0..MAX_REPLACE_DEPTH {
            match replacements.get(&id) {
                Some(replacement) => id = *replacement,
                None => return Ok(id),
            }
        }
        Err(Error::new(ErrorKind::Limit, "replace depth too high").on_object(id))
    }

    /// The hash of its ids.
    pub fn kind(&self) -> Kind {
        self.inner.options.kind
    }

    /// Returns the options with which the store was opened.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The directory that objects are written to.
    pub fn path(&self) -> &Path {
        &self.inner.directories[0]
    }

    /// The directories that are only read.
    pub fn alternates(&self) -> &[PathBuf] {
        &self.inner.directories[1..]
    }

    /// Returns the defects of alternates. None of them prevents reading objects elsewhere.
    pub fn warnings(&self) -> &[Error] {
        &self.inner.warnings
    }

    /// Reads the content of `id` into `out`, replacing its former content; `None` if there is no
    /// such object. A damaged copy is skipped if there is another one. The empty tree always
    /// exists, as in Git.
    ///
    /// # Errors
    /// `Corrupt` and others when the object is there but cannot be read.
    pub fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        match self.replacements {
            None => self.find_exactly(id, out),
            Some(_) => self.find_exactly(&self.replaced(id)?, out),
        }
    }

    fn find_exactly(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        match self.find_present(id, out)? {
            None if self.fetch_missing(id)? => self.find_present(id, out),
            found => Ok(found),
        }
    }

    fn find_present(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        let shared = RefCell::new(&mut *out);
        let found = self.lookup(
            id,
            |pack, offset| self.decode(pack, offset, &mut shared.borrow_mut()),
            |objects| {
                with_scratch(|scratch| {
                    loose::read(objects, id, &mut scratch.loose, &mut shared.borrow_mut())
                })
            },
        )?;
        if found.is_none() && id.is_empty_tree() {
            out.clear();
            return Ok(Some(ObjectKind::Tree));
        }
        Ok(found)
    }

    /// Kind and size of `id`; `None` if there is no such object. Nothing is inflated but a few
    /// bytes.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn header(&self, id: &oid) -> Result<Option<gix_object::Header>, Error> {
        match self.replacements {
            None => self.header_exactly(id),
            Some(_) => self.header_exactly(&self.replaced(id)?),
        }
    }

    fn header_exactly(&self, id: &oid) -> Result<Option<gix_object::Header>, Error> {
        match self.header_of_present(id)? {
            None if self.fetch_missing(id)? => self.header_of_present(id),
            found => Ok(found),
        }
    }

    fn header_of_present(&self, id: &oid) -> Result<Option<gix_object::Header>, Error> {
        let found = self.lookup(
            id,
            |pack, offset| self.packed_header(pack, offset),
            |objects| with_scratch(|scratch| loose::header(objects, id, &mut scratch.loose)),
        )?;
        let empty_tree = gix_object::Header {
            kind: ObjectKind::Tree,
            size: 0,
        };
        Ok(found.or_else(|| id.is_empty_tree().then_some(empty_tree)))
    }

    /// Does the same as [`header`](Self::header) for an object whose [`position`](Self::position)
    /// is known, which saves the search. If its pack is gone, the object is searched.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn header_at(
        &self,
        location: Location,
        id: &oid,
    ) -> Result<Option<gix_object::Header>, Error> {
        if self.replacements.is_none() {
            let snapshot = self.snapshot()?;
            if let Some(pack) = snapshot.pack(location.pack)
                && let Ok(header) = self.packed_header(pack, location.offset)
            {
                return Ok(Some(header));
            }
        }
        self.header(id)
    }

    fn packed_header(
        &self,
        pack: &PackFile,
        offset: PackOffset,
    ) -> Result<gix_object::Header, Error> {
        let opened = pack.pack()?;
        with_bases(&self.inner.bases, pack, |bases| {
            with_scratch(|scratch| scratch.decoder.header(opened, offset, bases))
        })
        .map_err(|error| pack.failed(error))
    }

    /// Whether `id` is there. Replacements do not count.
    ///
    /// # Errors
    /// `Corrupt` or `Io` when it is not found, but where it might be could not be read.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        let found = self.lookup(
            id,
            |pack, _| pack.pack().map(|_| ()),
            |objects| Ok(loose::exists(objects, id).then_some(())),
        );
        Ok(found?.is_some() || id.is_empty_tree())
    }

    /// Returns the position of `id` in a pack; `None` if it is loose or missing. Does not list
    /// packs again. Ignores replacements.
    pub fn position(&self, id: &oid) -> Option<Location> {
        let snapshot = self.snapshot().ok()?;
        let mut failure = None;
        lookup::in_packs(&snapshot, id, &mut failure, &mut |pack, offset| {
            Ok(Location {
                pack: pack.number,
                offset,
            })
        })
    }

    /// Does the same as [`find`](Self::find) for an object whose [`position`](Self::position) is
    /// known, which saves the search. If its pack is gone, the object is searched.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_at(
        &self,
        location: Location,
        id: &oid,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        if self.replacements.is_none() {
            let snapshot = self.snapshot()?;
            if let Some(pack) = snapshot.pack(location.pack)
                && let Ok(kind) = self.decode(pack, location.offset, out)
            {
                return Ok(Some(kind));
            }
        }
        self.find(id, out)
    }

    /// Sees that what is known of packs is not older than this turn of writing.
    #[inline]
    pub(crate) fn since_turn(&self, turn: u32) -> Result<(), Error> {
        if self.inner.listed_in.load(Relaxed) == turn {
            return Ok(());
        }
        if self.inner.snapshot.load().generation > 0 {
            self.refresh()?;
        }
        self.inner.listed_in.store(turn, Relaxed);
        Ok(())
    }

    pub(crate) fn writing(&self) -> &Arc<Writing> {
        &self.inner.writing
    }

    /// Keeps at most `bytes` of delta bases from now on, if it were more
    /// ([`Options::delta_base_cache_bytes`](crate::Options::delta_base_cache_bytes)): for work that
    /// needs memory for other things. All clones of this store share them.
    pub fn lower_base_cache(&self, bytes: usize) {
        self.inner.bases.lower_limit(bytes);
    }

    /// Lists packs again if a directory has changed. Returns whether the list differs.
    ///
    /// # Errors
    /// `Io` when a directory exists and cannot be listed.
    pub fn refresh(&self) -> Result<bool, Error> {
        let before = self.inner.snapshot.load_full();
        Ok(self.newer_than(&before)?.is_some())
    }

    /// `None` if it, or a base of its chain, takes at least `below` bytes.
    fn decode_below(
        &self,
        pack: &PackFile,
        offset: PackOffset,
        below: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        let opened = pack.pack()?;
        with_bases(&self.inner.bases, pack, |bases| {
            with_scratch(|scratch| {
                let decoder = &mut scratch.decoder;
                decoder.decode_below(opened, offset, bases, below, out)
            })
        })
        .map_err(|error| pack.failed(error))
    }

    fn decode(
        &self,
        pack: &PackFile,
        offset: PackOffset,
        out: &mut Vec<u8>,
    ) -> Result<ObjectKind, Error> {
        let opened = pack.pack()?;
        with_bases(&self.inner.bases, pack, |bases| {
            with_scratch(|scratch| scratch.decoder.decode(opened, offset, bases, out))
        })
        .map_err(|error| pack.failed(error))
    }

    /// Returns the list of packs, and lists them first if that has not happened.
    fn snapshot(&self) -> Result<arc_swap::Guard<Arc<Snapshot>>, Error> {
        let snapshot = self.inner.snapshot.load();
        if snapshot.generation > 0 {
            return Ok(snapshot);
        }
        drop(snapshot);
        self.newer_than(&Snapshot::default())?;
        Ok(self.inner.snapshot.load())
    }

    /// A snapshot with other packs than `seen` has, or `None` when nothing has changed.
    #[cold]
    fn newer_than(&self, seen: &Snapshot) -> Result<Option<Arc<Snapshot>>, Error> {
        let _listing = self
            .inner
            .listing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let current = self.inner.snapshot.load_full();
        if current.generation > seen.generation && !current.equals(seen) {
            // Someone else has listed meanwhile.
            return Ok(Some(current));
        }
        if !current.may_be_outdated(&self.inner.directories) {
            return Ok(None);
        }
        let new = Arc::new(Snapshot::list(
            &current,
            &self.inner.directories,
            &self.inner.options,
            &self.inner.pack_numbers,
        )?);
        self.inner.snapshot.store(new.clone());
        Ok((!new.equals(seen)).then_some(new))
    }

    /// The number that the next pack to be seen will get: those seen now are below it.
    #[doc(hidden)]
    pub fn packs_seen(&self) -> u32 {
        self.inner.pack_numbers.load(Relaxed)
    }
}

fn with_scratch<T>(read: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => read(&mut scratch),
        // Only if reading leads to reading, which it does not.
        Err(_) => read(&mut Scratch::default()),
    })
}

fn with_bases<T>(cache: &BaseCache, pack: &PackFile, read: impl FnOnce(Bases<'_>) -> T) -> T {
    let find = |id: &oid| base_by_id(pack, id);
    read(Bases { cache, find: &find })
}

/// Returns the position in `pack` of a base that is named by its id.
fn base_by_id(pack: &PackFile, id: &oid) -> Result<Option<PackOffset>, pronto_pack::Error> {
    match pack.index() {
        Ok(index) => index.find_offset(id),
        Err(error) => Err(error.map_kind(|_| pronto_pack::ErrorKind::Corrupt)),
    }
}

/// Adds the searched object to an error of a pack index.
#[cold]
fn on_object(error: pronto_pack::Error, id: &oid) -> Error {
    from_pack(error).on_object(id)
}
