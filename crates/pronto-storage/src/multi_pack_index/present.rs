//! The existing multi-pack-index: a single file, or a chain.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pronto_hash::oid;
use pronto_pack::midx::{MultiIndex, chain};
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};
use pronto_repository::{Notice, PackNotice};

use super::{CHAIN, MidxContext, SourcePack};

/// The multi-pack-index of a directory of packs.
pub(super) struct Present {
    /// The layers, lowest first. Pack numbers are consecutive: the first pack of a layer follows the
    /// last one of the layer below.
    pub(super) layers: Vec<MultiIndex>,
    /// Whether the layers are listed in a chain file. A chain may have a single layer.
    pub(super) is_chain: bool,
}

impl Present {
    /// Returns the layers, each with the number of its first pack.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &MultiIndex)> {
        self.layers.iter().scan(0, |next, layer| {
            let first = *next;
            *next += layer.pack_names().len() as u32;
            Some((first, layer))
        })
    }

    /// Returns the names of all packs, in the order of their numbers.
    pub(super) fn pack_names(&self) -> impl Iterator<Item = &String> {
        self.layers.iter().flat_map(MultiIndex::pack_names)
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> u64 {
        self.layers.iter().map(|layer| u64::from(layer.len())).sum()
    }

    /// Returns the only layer.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if there are several layers. `cannot` is the part of the
    /// message that names the operation.
    pub(super) fn single(&self, cannot: &str) -> Result<&MultiIndex> {
        match self.layers.as_slice() {
            [index] => Ok(index),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("cannot {cannot} an incremental multi-pack-index"),
            )),
        }
    }

    /// Returns whether a layer lists the object `id`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if a file cannot be read.
    pub(super) fn contains(&self, id: &oid) -> Result<bool> {
        for layer in &self.layers {
            if layer.find(id).map_err(from_pack)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The identity of a version of a file; `None` if it does not exist.
type FileStamp = Option<(u64, u64, i64, i64)>;

/// The number of attempts to write while other processes change the packs.
const MAX_ATTEMPTS: usize = 8;

impl MidxContext<'_> {
    /// Calls `write` until it returns `true`, which means that no other process has changed the packs
    /// in the meantime. The argument of `write` is `true` in the last attempt.
    ///
    /// # Errors
    /// Fails if `write` fails.
    pub(super) fn undisturbed(&self, mut write: impl FnMut(bool) -> Result<bool>) -> Result<()> {
        for attempt in 1..=MAX_ATTEMPTS {
            if write(attempt == MAX_ATTEMPTS)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the versions of the single file and of the chain file.
    pub(super) fn state(&self) -> [FileStamp; 2] {
        let chain = self.chain_directory().join(CHAIN);
        [self.path(), chain].map(|path| {
            let metadata = path.metadata().ok()?;
            let (changed, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
            Some((metadata.ino(), metadata.len(), changed, nanoseconds))
        })
    }

    /// Returns whether the multi-pack-index has changed since `before`, or a new pack has disappeared.
    /// The collected data would then name missing packs. The lock is held.
    pub(super) fn is_disturbed(&self, before: &[FileStamp; 2], sources: &[SourcePack]) -> bool {
        let new = |source: &&SourcePack| source.modified > 0;
        self.state() != *before
            || (sources.iter().filter(new)).any(|source| !self.pack_path(source).exists())
    }
    /// Returns the directory of the chain and its layers.
    pub(super) fn chain_directory(&self) -> PathBuf {
        self.directory.join("multi-pack-index.d")
    }

    /// Returns the existing multi-pack-index; `None` if `core.multiPackIndex` is off.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the multi-pack-index exists and cannot
    /// be read.
    pub(super) fn present(&self) -> Result<Option<Present>> {
        let repository = self.repository;
        if !repository.config().bool_or("core.multipackindex", true)? {
            return Ok(None);
        }
        self.open()
    }

    /// Does the same as [`present`](Self::present), but returns `None` if a checksum is wrong.
    ///
    /// # Errors
    /// As for [`present`](Self::present).
    pub(super) fn sound(&self) -> Result<Option<Present>> {
        let Some(present) = self.present()? else {
            return Ok(None);
        };
        for layer in &present.layers {
            if !layer.checksum_holds().map_err(from_pack)? {
                self.notify(PackNotice::MultiPackIndexChecksum);
                return Ok(None);
            }
        }
        Ok(Some(present))
    }

    /// Opens the multi-pack-index, if there is a readable one: the single file, or else the existing
    /// layers of the chain. Defects that Git ignores are reported as notices.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a file exists and is malformed.
    pub(super) fn open(&self) -> Result<Option<Present>> {
        if let Some(index) = self.open_one(&self.path())? {
            return Ok(Some(Present {
                layers: vec![index],
                is_chain: false,
            }));
        }
        let kind = self.repository.object_hash();
        let (files, error) = match chain::files(&self.directory, kind) {
            Err(error) if error.kind() == pronto_pack::ErrorKind::Truncated => {
                (Vec::new(), Some(error))
            }
            files => files.map_err(from_pack)?,
        };
        if let Some(error) = error {
            let error = error.without_context(ErrorKind::Object);
            self.repository.notify(Notice::Ignored(error));
        }
        let mut layers = Vec::new();
        for path in files {
            match self.open_one(&path)? {
                Some(index) => layers.push(index),
                None => {
                    self.notify(PackNotice::MissingLayer);
                    break;
                }
            }
        }
        Ok((!layers.is_empty()).then_some(Present {
            layers,
            is_chain: true,
        }))
    }

    fn open_one(&self, path: &Path) -> Result<Option<MultiIndex>> {
        if !path.exists() {
            return Ok(None);
        }
        let kind = self.repository.object_hash();
        let access = self.repository.objects()?.options().access;
        match MultiIndex::open(path, kind, access) {
            Ok(index) => Ok(Some(index)),
            Err(error) => {
                use pronto_pack::ErrorKind as Below;
                let kind = error.kind();
                let error = error.without_context(ErrorKind::Object);
                self.repository.notify(match kind {
                    Below::NoHeader => {
                        Notice::Packs(PackNotice::MultiPackIndexTooSmall(self.display_path(path)))
                    }
                    Below::Truncated | Below::OtherHash => Notice::Failure(error),
                    _ => return Err(error),
                });
                Ok(None)
            }
        }
    }
}
