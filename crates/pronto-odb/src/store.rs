//! The object store: reads objects by id from packs, loose files and alternates.

mod ahead;
mod batch;
mod bitmapped;
mod details;
mod enumerate;
mod first_use;
mod links;
mod lookup;
mod loosen;
mod numbered;
pub mod packing;
mod promised;
mod replacements;
mod salvage;
mod unpack;
mod write;
mod writing;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, oid};
use pronto_pack::pack::{BaseCache, BaseSources, Decoder, PackOffset};

pub use batch::Inventory;
pub use bitmapped::Bitmapped;
pub use details::{ObjectData, ObjectReader, StoredForm};
pub use enumerate::{PrefixMatches, StoreIds};
pub use first_use::FirstUse;
pub use links::LinkedPack;
pub use numbered::{NumberedObjects, ObjectSet};
pub use promised::PromisedObjects;
pub use salvage::Salvaged;

use replacements::Replacements;

use crate::error::{Error, from_pack};
use crate::options::Options;
use crate::packs::PackFile;
use crate::snapshot::PackSnapshot;
use crate::turns::Writing;
use crate::{alternates, loose};

/// The number of locks for building large objects from deltas.
const CHAINS: usize = 16;

/// The object store of a repository.
///
/// Cheap to clone; clones share all state. `Send + Sync`: any number of threads may read and write
/// concurrently. Reading packs takes no lock, except for short locks of shards of the cache of
/// delta bases. Each thread has its own decoder.
///
/// Other processes may add, repack and prune objects meanwhile: if an object is not found and the
/// directories of packs have changed, the packs are listed again and the search is repeated.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<StoreState>,
    replacements: Option<Arc<Replacements>>,
}

#[derive(Debug)]
struct StoreState {
    options: Options,
    /// The object directories, the store's own directory first.
    directories: Vec<PathBuf>,
    warnings: Vec<Error>,
    snapshot: ArcSwap<PackSnapshot>,
    /// A lock for the thread that lists packs.
    listing: Mutex<()>,
    pack_numbers: AtomicU32,
    bases: Arc<BaseCache>,
    writing: Arc<Writing>,
    /// The turn of writing in which packs were listed last.
    listed_in: AtomicU32,
    /// Locks for threads that build large objects, selected by the offset of the chain of deltas.
    chains: [Mutex<()>; CHAINS],
    promised: OnceLock<Box<dyn PromisedObjects>>,
    /// The receiver that learns of the first lookup.
    first_lookup: OnceLock<Box<dyn FirstUse>>,
}

/// The position of an object in a pack. Reading objects in this order is fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackLocation {
    /// The number of the pack, unique within the store for the lifetime of the store.
    pub pack: u32,
    /// The start of the entry in the pack.
    pub offset: PackOffset,
}

thread_local! {
    static SCRATCH: RefCell<ReadBuffers> = RefCell::default();
}

/// Buffers with which a thread reads objects.
#[derive(Default)]
struct ReadBuffers {
    decoder: Decoder,
    loose: loose::LooseBuffers,
}

impl Store {
    /// Opens the object directory at `objects` and reads `info/alternates`. Packs are listed at the
    /// first lookup.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if an existing `info/alternates` cannot be read.
    pub fn open(objects: impl AsRef<Path>, options: Options) -> Result<Store, Error> {
        let writing = Arc::new(Writing::new(objects.as_ref()));
        Store::open_with(objects.as_ref(), options, writing)
    }

    /// Does the same as [`open`](Self::open) for a directory that shares the write lock of another
    /// directory.
    pub(crate) fn open_with(
        objects: &Path,
        options: Options,
        writing: Arc<Writing>,
    ) -> Result<Store, Error> {
        let found = alternates::resolve(objects, &options.alternates)?;
        Ok(Store {
            inner: Arc::new(StoreState {
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
                first_lookup: OnceLock::new(),
            }),
            replacements: None,
        })
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.inner.options.kind
    }

    /// Returns the options with which the store was opened.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Returns the directory to which objects are written.
    pub fn path(&self) -> &Path {
        &self.inner.directories[0]
    }

    /// Returns the alternates, which are only read.
    pub fn alternates(&self) -> &[PathBuf] {
        self.use_alternates();
        &self.inner.directories[1..]
    }

    /// Returns the errors of unusable alternates. Objects in other directories can still be read.
    pub fn warnings(&self) -> &[Error] {
        &self.inner.warnings
    }

    /// Reads the content of `id` into `out`, replacing the former content of `out`. Returns `None`
    /// if the object does not exist. A damaged copy is skipped if there is another one. The empty
    /// tree always exists, as in Git.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or another kind if the object exists and cannot be read.
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

    /// Returns the type and the size of `id`; `None` if the object does not exist. Inflates only a
    /// few bytes.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
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

    /// Does the same as [`header`](Self::header) for an object with a known
    /// [`position`](Self::position), without a search. If the pack is gone, the object is searched.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn header_at(
        &self,
        location: PackLocation,
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

    /// Returns whether the object `id` exists. Ignores replacements.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if the object is not found and a file
    /// that may contain it could not be read.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        let found = self.lookup(
            id,
            |pack, _| pack.pack().map(|_| ()),
            |objects| Ok(loose::exists(objects, id).then_some(())),
        );
        Ok(found?.is_some() || id.is_empty_tree())
    }

    /// Returns the position of `id` in a pack; `None` if the object is loose or missing. Does not
    /// list packs again. Ignores replacements.
    pub fn position(&self, id: &oid) -> Option<PackLocation> {
        let snapshot = self.snapshot().ok()?;
        let mut failure = None;
        lookup::in_packs(&snapshot, id, &mut failure, &mut |pack, offset| {
            Ok(PackLocation {
                pack: pack.number,
                offset,
            })
        })
    }

    /// Does the same as [`find`](Self::find) for an object with a known
    /// [`position`](Self::position), without a search. If the pack is gone, the object is searched.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn find_at(
        &self,
        location: PackLocation,
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

    /// Lists packs again unless they have been listed in this turn of writing.
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

    /// Lowers the limit of the cache of delta bases
    /// ([`Options::delta_base_cache_bytes`](crate::Options::delta_base_cache_bytes)) to `bytes`, to
    /// free memory for other work. Does nothing if the limit is lower already. All clones of this
    /// store share the cache.
    pub fn lower_base_cache(&self, bytes: usize) {
        self.inner.bases.lower_limit(bytes);
    }

    /// Lists packs again if a directory has changed. Returns whether the list differs.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a directory exists and cannot be listed.
    pub fn refresh(&self) -> Result<bool, Error> {
        let before = self.inner.snapshot.load_full();
        Ok(self.newer_than(&before)?.is_some())
    }

    /// Decodes an object; `None` if the object, or a base of its chain of deltas, takes at least
    /// `below` bytes.
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

    /// Returns the list of packs. Lists the packs on first use.
    fn snapshot(&self) -> Result<arc_swap::Guard<Arc<PackSnapshot>>, Error> {
        let snapshot = self.inner.snapshot.load();
        if snapshot.generation > 0 {
            return Ok(snapshot);
        }
        drop(snapshot);
        self.newer_than(&PackSnapshot::default())?;
        Ok(self.inner.snapshot.load())
    }

    /// Returns a snapshot whose packs differ from those of `seen`; `None` if nothing has changed.
    #[cold]
    fn newer_than(&self, seen: &PackSnapshot) -> Result<Option<Arc<PackSnapshot>>, Error> {
        if seen.generation == 0 {
            self.use_alternates();
        }
        let _listing = self
            .inner
            .listing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let current = self.inner.snapshot.load_full();
        if current.generation > seen.generation && !current.equals(seen) {
            // Another thread has listed the packs meanwhile.
            return Ok(Some(current));
        }
        if !current.may_be_outdated(&self.inner.directories) {
            return Ok(None);
        }
        let new = Arc::new(PackSnapshot::list(
            &current,
            &self.inner.directories,
            &self.inner.options,
            &self.inner.pack_numbers,
        )?);
        self.inner.snapshot.store(new.clone());
        Ok((!new.equals(seen)).then_some(new))
    }

    /// Returns the number that the next new pack will get; all current packs have smaller numbers.
    #[doc(hidden)]
    pub fn packs_seen(&self) -> u32 {
        self.inner.pack_numbers.load(Relaxed)
    }
}

fn with_scratch<T>(read: impl FnOnce(&mut ReadBuffers) -> T) -> T {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => read(&mut scratch),
        // The buffers are in use only if reading calls itself, which does not happen.
        Err(_) => read(&mut ReadBuffers::default()),
    })
}

fn with_bases<T>(cache: &BaseCache, pack: &PackFile, read: impl FnOnce(BaseSources<'_>) -> T) -> T {
    let find = |id: &oid| base_by_id(pack, id);
    read(BaseSources { cache, find: &find })
}

/// Returns the position in `pack` of a base that is named by its object id.
fn base_by_id(pack: &PackFile, id: &oid) -> Result<Option<PackOffset>, pronto_pack::Error> {
    match pack.index() {
        Ok(index) => index.find_offset(id),
        Err(error) => Err(error.map_kind(|_| pronto_pack::ErrorKind::Corrupt)),
    }
}

/// Adds the id of the searched object to an error of a pack index.
#[cold]
fn on_object(error: pronto_pack::Error, id: &oid) -> Error {
    from_pack(error).on_object(id)
}
