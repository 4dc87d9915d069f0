//! A pack of a store, whose files are opened on first use.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use pronto_hash::Kind;
use pronto_io::view::Access;
use pronto_pack::idx::{Index, IndexPosition};
use pronto_pack::pack::{Pack, PackOffset, PackOrder, PackPosition};
use pronto_pack::rev::ReverseIndex;

use crate::error::{Error, from_pack, is_gone};

/// A pack that was seen in a listing. Opening is done by whichever thread comes first; reading
/// takes no lock.
#[derive(Debug)]
pub(crate) struct PackFile {
    /// Unique within the store, for as long as it lives.
    pub(crate) number: u32,
    pub(crate) listed: Listed,
    kind: Kind,
    access: Access,
    index: OnceLock<Arc<Index>>,
    pack: OnceLock<Arc<Pack>>,
    order: OnceLock<PackOrder>,
    /// The `.rev` file, if there is one that belongs to the pack.
    reverse: OnceLock<Option<ReverseIndex>>,
    vanished: AtomicBool,
}

/// A pack as listed in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The path of the `.idx` file.
    pub(crate) index_path: PathBuf,
    /// The inode number of the `.idx` file: another one means that it was replaced.
    pub(crate) inode: u64,
    /// Whether there is a `.promisor` beside it.
    pub(crate) promisor: bool,
    /// Whether there is a `.keep` beside it.
    pub(crate) kept: bool,
    /// Whether there is a `.mtimes` beside it: nothing led to its objects.
    pub(crate) cruft: bool,
    /// When the pack was last written, if there was reason to ask.
    pub(crate) modified: Option<SystemTime>,
}

impl PackFile {
    pub(crate) fn new(number: u32, listed: Listed, kind: Kind, access: Access) -> Self {
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

    /// The name of the `.idx` file.
    pub(crate) fn index_name(&self) -> &OsStr {
        self.listed.index_path.file_name().unwrap_or_default()
    }

    pub(crate) fn pack_path(&self) -> PathBuf {
        self.listed.index_path.with_extension("pack")
    }

    /// Whether a file of it was found missing, or cut short since it was opened, so that a new
    /// listing is due.
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

    /// # Errors
    /// Those of opening. When the file is gone, the pack [has vanished](Self::has_vanished).
    #[inline]
    pub(crate) fn index(&self) -> Result<&Arc<Index>, Error> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => self.open_index(),
        }
    }

    /// # Errors
    /// Like [`index`](Self::index), and `Corrupt` when pack and index do not belong together.
    #[inline]
    pub(crate) fn pack(&self) -> Result<&Arc<Pack>, Error> {
        match self.pack.get() {
            Some(pack) => Ok(pack),
            None => self.open_pack(),
        }
    }

    /// # Errors
    /// As [`pack`](Self::pack).
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

    /// The order that the `.rev` file says, if there is one that belongs to the pack.
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

    /// The entry at `position` of the pack: where it starts, and its row in the index. Costs two reads
    /// of mapped files, if there is a `.rev` file; otherwise entries are [sorted](Self::order) once.
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
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

    /// Which entry starts at `offset`, if one does. Logarithmic, apart from the cost of
    /// [`entry_at`](Self::entry_at).
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
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
    fn open_index(&self) -> Result<&Arc<Index>, Error> {
        let opened = Index::open(&self.listed.index_path, self.kind, self.access);
        let index = opened.map_err(|error| self.failed(error))?;
        Ok(self.index.get_or_init(|| Arc::new(index)))
    }

    #[cold]
    fn open_pack(&self) -> Result<&Arc<Pack>, Error> {
        let opened = Pack::open(self.pack_path(), self.kind, self.access);
        let pack = opened.map_err(|error| self.failed(error))?;
        let index = self.index()?;
        pack.check_index(index)
            .map_err(|error| self.failed(error))?;
        Ok(self.pack.get_or_init(|| Arc::new(pack)))
    }

    /// Notes whether `error` means that the pack is gone, or comes from its being cut short.
    #[cold]
    pub(crate) fn failed(&self, error: pronto_pack::Error) -> Error {
        let is_cut = (self.pack.get()).is_some_and(|pack| pack.view().verify().is_err());
        if is_cut || is_gone(&error) {
            self.vanished.store(true, Relaxed);
        }
        from_pack(error)
    }
}

/// The name of a file beside the pack whose index is at `index_path`.
pub(crate) fn beside(index_path: &Path, extension: &str) -> PathBuf {
    index_path.with_extension(extension)
}
