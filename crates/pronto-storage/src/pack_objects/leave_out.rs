//! Omission of objects that another pack contains.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bstr::BString;
use pronto_config::path;
use pronto_hash::{ObjectId, oid};
use pronto_pack::idx::PackIndex;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::SelectedObjects;

/// Options that omit objects from a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaveOut {
    /// Omit objects in any pack (`--incremental`).
    pub packed: bool,
    /// Omit objects of alternates (`--local`).
    pub elsewhere: bool,
    /// Omit objects in packs of this repository with a `.keep` file (`--honor-pack-keep`).
    pub kept: bool,
    /// Omit objects in packs of this repository with these names, `pack-….pack` (`--keep-pack`).
    pub packs: Vec<BString>,
}

/// A pack of the repository or of an alternate.
pub(crate) struct ExistingPack {
    /// The path of the `.pack` file.
    pub(crate) path: PathBuf,
    /// Whether the pack is in the object directory of the repository.
    pub(crate) is_own: bool,
    /// Whether the pack has a `.keep` file.
    pub(crate) is_kept: bool,
    pub(crate) index: PackIndex,
}

impl ExistingPack {
    /// Returns the name of the pack: `pack-….pack`.
    pub(crate) fn name(&self) -> BString {
        let name = self.path.file_name().unwrap_or_default();
        path::as_bytes(Path::new(name)).into()
    }
}

/// Removes objects from `selection` according to `what`. Returns whether any object was removed.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a directory or a pack index cannot be read.
pub fn leave_out(
    repository: &Repository,
    selection: &mut SelectedObjects,
    what: &LeaveOut,
) -> Result<bool> {
    if *what == LeaveOut::default() {
        return Ok(false);
    }
    let ids: Vec<ObjectId> = selection.members.iter().map(|member| member.id).collect();
    let mut marks = vec![false; ids.len()];
    for pack in known_packs(repository)? {
        let is_meant = match pack.is_own {
            true => what.kept && pack.is_kept || what.packs.contains(&pack.name()),
            false => what.elsewhere,
        };
        if is_meant || what.packed {
            mark(&pack.index, &ids, &mut marks)?;
        }
    }
    if what.elsewhere {
        for objects in repository.objects()?.alternates() {
            let loose: HashSet<ObjectId> = loose_objects(objects)?.into_iter().collect();
            for (id, mark) in ids.iter().zip(&mut marks) {
                *mark |= loose.contains(id);
            }
        }
    }
    let before = selection.members.len();
    let mut marks = marks.into_iter();
    selection.members.retain(|_| !marks.next().unwrap_or(false));
    Ok(selection.members.len() < before)
}

/// Returns, for each of `ids`, whether a pack contains the object.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a directory or a pack index cannot be read.
pub(crate) fn packed(repository: &Repository, ids: &[ObjectId]) -> Result<Vec<bool>> {
    let mut marks = vec![false; ids.len()];
    for pack in known_packs(repository)? {
        mark(&pack.index, ids, &mut marks)?;
    }
    Ok(marks)
}

/// Returns all packs of the repository and its alternates.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a directory or a pack index cannot be read.
pub(crate) fn known_packs(repository: &Repository) -> Result<Vec<ExistingPack>> {
    let store = repository.objects()?;
    let (kind, access) = (repository.object_hash(), store.options().access);
    let own = std::iter::once(store.path());
    let others = store.alternates().iter().map(PathBuf::as_path);
    let mut packs = Vec::new();
    for (number, objects) in own.chain(others).enumerate() {
        let directory = objects.join("pack");
        for name in names(&directory)? {
            let path = directory.join(&name);
            let beside = |extension: &str| path.with_extension(extension);
            let is_index = path.extension().is_some_and(|ending| ending == "idx");
            if !is_index || !beside("pack").exists() {
                continue;
            }
            let index = match PackIndex::open(&path, kind, access) {
                // Another process has removed the pack.
                Err(_) if !path.exists() => continue,
                index => index.map_err(from_pack)?,
            };
            packs.push(ExistingPack {
                path: beside("pack"),
                is_own: number == 0,
                is_kept: beside("keep").exists(),
                index,
            });
        }
    }
    packs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(packs)
}

/// Marks the ids that `index` lists.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
pub(crate) fn mark(index: &PackIndex, ids: &[ObjectId], marks: &mut [bool]) -> Result<()> {
    let each = ids.iter().map(|id| -> &oid { id });
    let marked = index.find_many(each, |place, _| marks[place] = true);
    marked.map_err(from_pack)
}

/// Returns the loose objects in the object directory `objects`, sorted.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be read.
pub fn loose_objects(objects: &Path) -> Result<Vec<ObjectId>> {
    let mut ids = Vec::new();
    for byte in 0..=u8::MAX {
        let fanout = format!("{byte:02x}");
        for name in names(&objects.join(&fanout))? {
            let hex = name.to_str().map(|rest| format!("{fanout}{rest}"));
            let id = hex.and_then(|hex| pronto_hash::parse_hex(hex.as_bytes()).ok());
            ids.extend(id);
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Returns the names in a directory; an empty list if the directory does not exist.
pub(crate) fn names(directory: &Path) -> Result<Vec<std::ffi::OsString>> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot list '{}'", directory.display());
        Error::new(ErrorKind::Io, message).because(error)
    };
    match std::fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}
