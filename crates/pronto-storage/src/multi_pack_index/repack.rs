//! Combines the objects of many packs into one pack.

use std::path::PathBuf;

use pronto_io::watch::Watch;
use pronto_odb::packing::{PackContents, PackCounts, PackMember};
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::packs::writer_options;
use pronto_repository::{Repository, Result};

use super::{MidxContext, MidxWriteOptions, modified};
use crate::pack_objects::packing_options;

/// Options for combining packs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepackOptions {
    /// The object directory, if not the repository's own: one of its alternates (`--object-dir`).
    pub object_dir: Option<PathBuf>,
    /// The total size in bytes of the packs to combine (`--batch-size`). Zero combines all packs.
    pub batch_bytes: u64,
}

/// Combines the objects of the multi-pack-index into a new pack, and writes the index again. The
/// old packs stay, without use, until [`expire`](super::expire()). Packs are combined from old to
/// young until their total size reaches [`batch_bytes`](RepackOptions::batch_bytes); a pack that
/// has this size alone is skipped. Zero combines all packs. Kept packs (`.keep`, without
/// `repack.packKeptObjects`) and cruft packs are skipped. Returns `None` if there are fewer than
/// two packs to combine.
///
/// # Errors
/// Fails with `ErrorKind::Object` if an object cannot be read, `ErrorKind::Io` if a file cannot be
/// written, `ErrorKind::Locked` if another process writes the index, or `ErrorKind::InvalidInput` if
/// the index is a chain.
pub fn repack(
    repository: &Repository,
    options: &RepackOptions,
    watch: &Watch<'_>,
) -> Result<Option<PackCounts>> {
    let work = MidxContext::new(repository, options.object_dir.as_ref(), watch)?;
    let Some(present) = work.present()? else {
        return Ok(None);
    };
    let index = present.single("repack")?;
    let included = work.included(index, options.batch_bytes)?;
    if included.iter().filter(|included| **included).count() < 2 {
        return Ok(None);
    }
    let mut members = Vec::new();
    for row in 0..index.len() {
        let position = IndexPosition(row);
        let (pack, _) = index.location_at(position).map_err(from_pack)?;
        if included[pack.0 as usize] {
            let id = index.id_at(position).map_err(from_pack)?;
            members.push(PackMember { id, name_hash: 0 });
        }
    }
    let config = repository.config();
    let mut options = packing_options(repository)?;
    options.offset_deltas = config.bool_or("repack.usedeltabaseoffset", true)?;
    let files = writer_options(config, repository.object_hash())?;
    let contents = PackContents {
        members: &members,
        ..PackContents::default()
    };
    let directory = work.directory.as_path();
    let store = repository.objects()?;
    let made = store.pack_into(&contents, &options, directory, files, watch);
    let (_, counts) = made.map_err(from_odb)?;
    drop(present);
    work.write(&MidxWriteOptions::default(), &Default::default())?;
    Ok(Some(counts))
}

impl MidxContext<'_> {
    /// Returns, for each pack of `index`, whether it is combined into the new pack.
    fn included(&self, index: &MultiIndex, batch_bytes: u64) -> Result<Vec<bool>> {
        let config = self.repository.config();
        let takes_kept = config.bool_or("repack.packkeptobjects", false)?;
        let names = index.pack_names();
        let mut packs = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            packs.extend(self.pack(number, name, takes_kept)?);
        }
        let mut included = vec![false; names.len()];
        if batch_bytes == 0 {
            for pack in packs {
                included[pack.number] = true;
            }
            return Ok(included);
        }
        let mut used = vec![0u32; names.len()];
        for row in 0..index.len() {
            let (pack, _) = index.location_at(IndexPosition(row)).map_err(from_pack)?;
            used[pack.0 as usize] += 1;
        }
        packs.sort_by_key(|pack| pack.modified);
        let mut total = 0u64;
        for pack in packs {
            if total >= batch_bytes {
                break;
            }
            let used = u128::from(used[pack.number]);
            // The expected size of the used objects in the new pack, if all objects have the same size.
            let expected = u128::from(pack.bytes) * used / u128::from(pack.objects);
            let expected = u64::try_from(expected).unwrap_or(u64::MAX);
            if expected < batch_bytes {
                total = total.saturating_add(expected);
                included[pack.number] = true;
            }
        }
        Ok(included)
    }

    /// Returns the pack, if it may be combined.
    fn pack(&self, number: usize, name: &str, takes_kept: bool) -> Result<Option<RepackCandidate>> {
        let path = self.directory.join(name);
        let beside = |extension: &str| path.with_extension(extension);
        let is_kept = beside("keep").exists() && !takes_kept;
        let Ok(metadata) = beside("pack").metadata() else {
            return Ok(None);
        };
        if is_kept || beside("mtimes").exists() {
            return Ok(None);
        }
        let objects = self.index(&path)?.map_or(0, |index: PackIndex| index.len());
        Ok((objects > 0).then(|| RepackCandidate {
            number,
            modified: modified(&beside("pack")).unwrap_or(0),
            bytes: metadata.len(),
            objects,
        }))
    }
}

/// A pack that may be combined with others.
struct RepackCandidate {
    /// The number of the pack in the multi-pack-index.
    number: usize,
    /// The modification time of the pack, in seconds since 1970.
    modified: u64,
    bytes: u64,
    objects: u32,
}
