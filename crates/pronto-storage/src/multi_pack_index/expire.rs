//! Removes packs from which a multi-pack-index uses no object.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use bstr::{BStr, BString};
use pronto_io::watch::Watch;
use pronto_pack::idx::IndexPosition;
use pronto_repository::packs::from_pack;
use pronto_repository::{Repository, Result};

use super::{CHAIN, LAYER_ENDINGS, MidxContext, MidxWriteOptions};

/// Options for removing unused packs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpirePacksOptions {
    /// The object directory, if not the repository's own: one of its alternates (`--object-dir`).
    pub object_dir: Option<PathBuf>,
}

/// Writes a multi-pack-index without the packs of which it uses no object, and then removes
/// these packs. The index never names a missing pack.
///
/// # Errors
/// As [`write`](super::write()); or it is a chain.
pub fn expire(
    repository: &Repository,
    options: &ExpirePacksOptions,
    watch: &Watch<'_>,
) -> Result<()> {
    let work = MidxContext::new(repository, options.object_dir.as_ref(), watch)?;
    let Some(present) = work.present()? else {
        return Ok(());
    };
    let index = present.single("expire packs from")?;
    let mut used = vec![false; index.pack_names().len()];
    let meter = watch
        .progress()
        .begin("Counting referenced objects", Some(index.len().into()));
    for row in 0..index.len() {
        let (pack, _) = index.location_at(IndexPosition(row)).map_err(from_pack)?;
        used[pack.0 as usize] = true;
        meter.add(1);
    }
    meter.finish();
    let title = "Finding and deleting unreferenced packfiles";
    let meter = watch.progress().begin(title, Some(used.len() as u64));
    let mut dropped = BTreeSet::new();
    for (name, used) in index.pack_names().iter().zip(used) {
        meter.add(1);
        let path = work.directory.join(name);
        let beside = |extension: &str| path.with_extension(extension);
        let is_kept = beside("keep").exists() || beside("mtimes").exists();
        if !used && !is_kept && beside("pack").exists() {
            dropped.insert(BString::from(name.as_str()));
        }
    }
    meter.finish();
    if dropped.is_empty() {
        return Ok(());
    }
    work.write(&MidxWriteOptions::default(), &dropped)?;
    for name in &dropped {
        let path = work.directory.join(pronto_config::path::borrow(name));
        for extension in ["idx", "pack", "rev", "bitmap", "promisor"] {
            let _ = std::fs::remove_file(path.with_extension(extension));
        }
    }
    Ok(())
}

/// Removes the multi-pack-index if it names any of these packs, given by their indexes. The caller is
/// about to remove the packs.
///
/// # Errors
/// Fails with `ErrorKind::Object` or `ErrorKind::Io` if the multi-pack-index cannot be read.
pub(crate) fn forget(repository: &Repository, names: &HashSet<BString>) -> Result<()> {
    let watch = Watch::none();
    let work = MidxContext::new(repository, None, &watch)?;
    let Some(present) = work.open()? else {
        return Ok(());
    };
    let mut known = present.pack_names();
    if !known.any(|name| names.contains(BStr::new(name))) {
        return Ok(());
    }
    let chain = work.chain_directory();
    let _ = std::fs::remove_file(chain.join(CHAIN));
    let _ = std::fs::remove_file(work.path());
    work.clear(&chain, LAYER_ENDINGS, &[]);
    work.clear(&work.directory, &[".bitmap", ".rev"], &[]);
    Ok(())
}
