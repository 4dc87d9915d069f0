//! A pack of a store, whose files are opened on first use.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use pronto_hash::Kind;
use pronto_io::view::ViewAccess;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::pack::{PackOffset, PackOrder, PackPosition, PackReader};
use pronto_pack::rev::ReverseIndex;

use crate::error::{Error, from_pack, is_gone};

/// A pack that was found in a directory listing. The first thread that needs a file of the pack
/// opens it; reading takes no lock.
#[derive(Debug)]
pub(crate) struct PackFile {
    /// The number of the pack, unique within the store for the lifetime of the store.
    pub(crate) number: u32,
    pub(crate) listed: PackListing,
    kind: Kind,
    access: ViewAccess,
    index: OnceLock<Arc<PackIndex>>,
    pack: OnceLock<Arc<PackReader>>,
    order: OnceLock<PackOrder>,
    /// The `.rev` file, if it exists and belongs to the pack.
    reverse: OnceLock<Option<ReverseIndex>>,
    vanished: AtomicBool,
}

/// A pack in a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackListing {
    /// The path of the `.idx` file.
    pub(crate) index_path: PathBuf,
    /// The inode number of the `.idx` file, which changes if the file is replaced.
    pub(crate) inode: u64,
    /// Whether the pack has a `.promisor` file.
    pub(crate) promisor: bool,
    /// Whether the pack has a `.keep` file.
    pub(crate) kept: bool,
    /// Whether the pack has a `.mtimes` file and is therefore a cruft pack, with unreachable
    /// objects.
    pub(crate) cruft: bool,
    /// The modification time of the pack, if it was queried.
    pub(crate) modified: Option<SystemTime>,
}

impl PackFile {
    pub(crate) fn new(number: u32, listed: PackListing, kind: Kind, access: ViewAccess) -> Self {
        PackFile {
            number,
            listed,
            kind,
            access,
            index: OnceLock::new(),
            pack: OnceLock::new(),
            order: OnceLock::new(),
            reverse: OnceLock::new(),
            vanished: AtomicBool::new(false),
        }
    }

    /// Returns the file name of the `.idx` file.
    pub(crate) fn index_name(&self) -> &OsStr {
        self.listed.index_path.file_name().unwrap_or_default()
    }

    pub(crate) fn pack_path(&self) -> PathBuf {
        self.listed.index_path.with_extension("pack")
    }

    /// Returns whether a file of the pack was found missing, or was truncated after it was opened,
    /// so that the packs must be listed again.
    pub(crate) fn has_vanished(&self) -> bool {
        self.vanished.load(Relaxed)
            || (self.index.get()).is_some_and(|index| index.view().check().is_err())
            || (self.pack.get()).is_some_and(|pack| pack.view().check().is_err())
    }

    /// Does the same as [`has_vanished`](Self::has_vanished), and also checks the index. Used
    /// before an object is reported as missing.
    pub(crate) fn is_outdated(&self) -> bool {
        self.has_vanished() || (self.index.get()).is_some_and(|index| index.verify().is_err())
    }

    /// Returns the index of the pack, and opens it on first use.
    ///
    /// # Errors
    /// Fails if the index cannot be opened. If the file is gone, the pack [has
    /// vanished](Self::has_vanished).
    #[inline]
    pub(crate) fn index(&self) -> Result<&Arc<PackIndex>, Error> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => self.open_index(),
        }
    }

    /// Returns the opened pack, and opens it on first use.
    ///
    /// # Errors
    /// Fails as [`index`](Self::index) does, and with `ErrorKind::Corrupt` if the pack and its
    /// index do not belong together.
    #[inline]
    pub(crate) fn pack(&self) -> Result<&Arc<PackReader>, Error> {
        match self.pack.get() {
            Some(pack) => Ok(pack),
            None => self.open_pack(),
        }
    }

    /// Returns the order of the entries in the pack, and computes it on first use.
    ///
    /// # Errors
    /// Fails as [`pack`](Self::pack) does.
    pub(crate) fn order(&self) -> Result<&PackOrder, Error> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let order = match self.written_order() {
            Some(order) => order,
            None => PackOrder::new(self.pack()?, self.index()?).map_err(from_pack)?,
        };
        Ok(self.order.get_or_init(|| order))
    }

    /// Returns the order of entries from the `.rev` file, if there is one that belongs to the pack.
    fn written_order(&self) -> Option<PackOrder> {
        let (pack, index) = (self.pack().ok()?, self.index().ok()?);
        PackOrder::from_reverse(pack, index, self.reverse()?).ok()
    }

    fn reverse(&self) -> Option<&ReverseIndex> {
        let open = || {
            let (pack, index) = (self.pack().ok()?, self.index().ok()?);
            let path = self.listed.index_path.with_extension("rev");
            let reverse = ReverseIndex::open(path, self.kind, index.len(), self.access).ok()?;
            let is_ours = reverse.pack_checksum().ok()? == pack.checksum().ok()?;
            is_ours.then_some(reverse)
        };
        self.reverse.get_or_init(open).as_ref()
    }

    /// Returns the entry at `position` of the pack: its start, and its row in the index. With a
    /// `.rev` file, costs two reads of mapped files; otherwise entries are [sorted](Self::order)
    /// once.
    ///
    /// # Errors
    /// Fails as [`pack`](Self::pack) does.
    pub(crate) fn entry_at(
        &self,
        position: PackPosition,
    ) -> Result<Option<(PackOffset, IndexPosition)>, Error> {
        let reverse = match self.order.get() {
            Some(order) => return Ok(order.get(position)),
            None => self.reverse(),
        };
        let index = self.index()?;
        match reverse {
            None => Ok(self.order()?.get(position)),
            Some(_) if position.0 >= index.len() => Ok(None),
            Some(reverse) => {
                let row = reverse.row_at(position.0).map_err(from_pack)?;
                let offset = index.offset_at(row).map_err(from_pack)?;
                Ok(Some((offset, row)))
            }
        }
    }

    /// Returns the position of the entry that starts at `offset`, if there is one. Costs a
    /// logarithmic number of calls of [`entry_at`](Self::entry_at).
    ///
    /// # Errors
    /// Fails as [`pack`](Self::pack) does.
    pub(crate) fn position_of(&self, offset: PackOffset) -> Result<Option<PackPosition>, Error> {
        if let Some(order) = self.order.get() {
            return Ok(order.position(offset));
        }
        let (mut low, mut high) = (0, self.index()?.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry_at(PackPosition(middle))? {
                Some((found, _)) if found == offset => return Ok(Some(PackPosition(middle))),
                Some((found, _)) if found < offset => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(None)
    }

    #[cold]
    fn open_index(&self) -> Result<&Arc<PackIndex>, Error> {
        let opened = PackIndex::open(&self.listed.index_path, self.kind, self.access);
        let index = opened.map_err(|error| self.failed(error))?;
        Ok(self.index.get_or_init(|| Arc::new(index)))
    }

    #[cold]
    fn open_pack(&self) -> Result<&Arc<PackReader>, Error> {
        let opened = PackReader::open(self.pack_path(), self.kind, self.access);
        let pack = opened.map_err(|error| self.failed(error))?;
        let index = self.index()?;
        pack.check_index(index)
            .map_err(|error| self.failed(error))?;
        Ok(self.pack.get_or_init(|| Arc::new(pack)))
    }

    /// Records whether `error` means that the pack is gone or was truncated. Returns the converted
    /// error.
    #[cold]
    pub(crate) fn failed(&self, error: pronto_pack::Error) -> Error {
        let is_cut = (self.pack.get()).is_some_and(|pack| pack.view().verify().is_err());
        if is_cut || is_gone(&error) {
            self.vanished.store(true, Relaxed);
        }
        from_pack(error)
    }
}

/// Returns the path of the file with `extension` that belongs to the pack with the index at
/// `index_path`.
pub(crate) fn beside(index_path: &Path, extension: &str) -> PathBuf {
    index_path.with_extension(extension)
}
