//! The bitmaps of a multi-pack-index.

use std::path::{Path, PathBuf};

use pronto_hash::ObjectId;
use pronto_pack::bitmap::BitmapFile;
use pronto_pack::idx::PackIndex;
use pronto_pack::midx::MultiIndex;
use pronto_pack::pack::PackReader;
use pronto_repository::Notice;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::{MidxContext, SourcePack};
use crate::bitmaps::{self, BitmapObjects, MidxPack};

/// Options for the bitmaps of a multi-pack-index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BitmapOptions {
    /// Read the tips of refs from this file instead of the refs (`--refs-snapshot`).
    pub refs_snapshot: Option<PathBuf>,
}

impl MidxContext<'_> {
    fn bitmap_path(&self, id: &ObjectId) -> PathBuf {
        self.directory.join(format!("multi-pack-index-{id}.bitmap"))
    }

    /// Returns whether a bitmap file exists that belongs to `index`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
    pub(super) fn has_bitmaps(&self, index: &MultiIndex) -> Result<bool> {
        if !index.has_order() {
            return Ok(false);
        }
        let id = index.checksum().map_err(from_pack)?;
        let access = self.repository.objects()?.options().access;
        let kind = self.repository.object_hash();
        let opened = BitmapFile::open(self.bitmap_path(&id), kind, index.len(), access);
        Ok(opened.is_ok_and(|bitmaps| bitmaps.checksum() == id))
    }

    /// Returns the default preferred pack: the oldest pack that is not empty.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if a pack index cannot be read.
    pub(super) fn oldest(&self, sources: &[SourcePack]) -> Result<Option<usize>> {
        let mut oldest: Option<(u64, usize)> = None;
        for (number, source) in sources.iter().enumerate() {
            let modified = self.modified(source);
            let is_older = oldest.is_none_or(|(time, _)| modified < time);
            if is_older && !self.is_empty(source)? {
                oldest = Some((modified, number));
            }
        }
        Ok(oldest.map(|(_, number)| number))
    }

    fn modified(&self, source: &SourcePack) -> u64 {
        match source.modified {
            0 => super::modified(&self.pack_path(source)).unwrap_or(0),
            known => known,
        }
    }

    fn is_empty(&self, source: &SourcePack) -> Result<bool> {
        match &source.index {
            Some(index) => Ok(index.is_empty()),
            None => Ok(self.opened_index(source)?.is_empty()),
        }
    }

    /// Writes the bitmaps of the multi-pack-index with the checksum `id`, which is still at the
    /// temporary path `path`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the packs lack reachable objects, [`ErrorKind::Object`] if
    /// they cannot be read, or [`ErrorKind::Io`] if the file cannot be written.
    pub(super) fn write_bitmaps(
        &self,
        options: &BitmapOptions,
        path: &Path,
        id: ObjectId,
    ) -> Result<()> {
        let repository = self.repository;
        let work = bitmaps::BitmapContext::new(repository, self.watch)?;
        let tips = match &options.refs_snapshot {
            Some(path) => bitmaps::read_tips(repository, path)?,
            None => bitmaps::tips(repository)?,
        };
        let (kind, access) = (repository.object_hash(), work.store.options().access);
        let index = MultiIndex::open(path, kind, access).map_err(from_pack)?;
        let open = |number: usize| {
            let name = &index.pack_names()[number];
            let path = self.directory.join(name);
            let opened = PackIndex::open(&path, kind, access).map_err(from_pack)?;
            let pack =
                PackReader::open(path.with_extension("pack"), kind, access).map_err(from_pack)?;
            pack.check_index(&opened).map_err(from_pack)?;
            Ok(MidxPack {
                pack,
                index: opened,
            })
        };
        let objects = BitmapObjects::of_multi(&index, &open)?;
        let settings = bitmaps::settings(repository)?;
        let target = self.bitmap_path(&id);
        let written = work.write(&objects, &tips, &settings, id, &target);
        written.map_err(|error| match error.kind() {
            ErrorKind::Refused => {
                repository.notify(Notice::Ignored(error));
                Error::new(ErrorKind::Refused, "could not write multi-pack bitmap")
            }
            _ => error,
        })
    }
}
