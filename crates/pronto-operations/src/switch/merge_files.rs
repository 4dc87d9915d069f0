//! Merges local changes of files with those of the target commit, as text.
//!
//! Git merges whole trees; this module merges file by file, with the same result as long as each
//! file exists on all three sides. All other cases are left to Git: a missing file may have been
//! renamed.

use std::io::Read;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_index::{Entry, EntryRef, Flags, Stat, mode};
use pronto_io::dir::file_metadata;
use pronto_io::error::IoContext;
use pronto_io::interrupt::Interrupt;
use pronto_worktree::checkout::Plan;
use pronto_worktree::filter::ToGit;
use pronto_worktree::unpack::{Checker, IndexChange, Refusals, Side, Unpacked};

use super::Destination;
use super::left_behind;
use super::move_files;
use crate::errors::from_worktree;
use crate::hash_object::staged_blob;
use crate::merge::{Style, Texts, is_file, lacking};
use crate::objects::from_odb;
use crate::session::WorktreeSession;
use crate::{Error, ErrorKind, Repository, Result};

/// Larger files are left to Git: four of them are held at a time.
const MERGED_BYTES: u64 = 64 << 20;

/// The files that are merged, in the order of their paths.
pub(super) struct Merging(Vec<File>);

struct File {
    path: BString,
    /// Of the commit that is left, of the one to go to, and what was here.
    sides: [Side; 3],
    merged: Side,
    has_conflicts: bool,
}

/// The paths of files to merge, if nothing else is in the way of leaving commit `old`.
///
/// # Errors
/// [`InvalidInput`](ErrorKind::InvalidInput) where something is staged,
/// [`Unsupported`](ErrorKind::Unsupported) where it takes more than merging texts.
pub(super) fn to_merge(
    repository: &Repository,
    prepared: &WorktreeSession<'_>,
    refusals: &Refusals,
    old: ObjectId,
) -> Result<Vec<BString>> {
    let staged = move_files::staged_against(repository, old)?;
    if !staged.is_empty() {
        let paths = staged.iter().map(|difference| difference.path.as_bstr());
        let paths = bstr::join(" ", paths);
        let head = "cannot continue with staged changes in the following files:";
        let message = format!("{head}\n{}", paths.as_bstr());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let modified = Refusals {
        modified: refusals.modified.clone(),
        ..Refusals::default()
    };
    match *refusals == modified && prepared.sparse.is_none() {
        true => Ok(modified.modified),
        false => Err(lacking("merging local changes with other than files")),
    }
}

/// What conflicts call the side to go to, the one that is left, and what was here.
pub(super) fn names_of_sides(
    repository: &Repository,
    to: &Destination,
    old: ObjectId,
) -> Result<[BString; 3]> {
    let left = match repository.head()?.branch() {
        Some(branch) => branch.to_owned(),
        None => left_behind::short_id(repository, old)?,
    };
    Ok([to.name.clone(), left, "local".into()])
}

impl WorktreeSession<'_> {
    /// Checks that all changed files are present. A file that was removed locally conflicts with
    /// its changes, under whatever name.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if one is not.
    pub(super) fn require_present(&self, plan: &Plan, interrupt: &Interrupt) -> Result<()> {
        let written = plan.write.iter().filter(|item| item.replaces);
        let written = written.map(|item| item.path.as_bstr());
        let removed = plan.remove.iter().map(|removal| removal.path.as_bstr());
        self.with_situation(interrupt, |situation| {
            let mut checker = Checker::new(situation);
            for path in written.chain(removed) {
                if !checker.is_there(path).map_err(from_worktree)? {
                    return Err(lacking("merging with what is gone here"));
                }
            }
            Ok(())
        })
    }
}

impl Merging {
    /// Merges the files that are given up, and has `unpacked` write the results.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where one is no text on some side; a file cannot be
    /// read, or an object read or written. Nothing but objects has been written then.
    pub(super) fn new(
        prepared: &WorktreeSession<'_>,
        style: Style,
        names: &[BString; 3],
        unpacked: &mut Unpacked,
    ) -> Result<Merging> {
        let texts = Texts::new(prepared, style)?;
        let mut to_git = prepared.to_git();
        let mut files = Vec::with_capacity(prepared.given_up.len());
        for path in &prepared.given_up {
            let change = change_of(unpacked, path);
            let written = change.and_then(|change| Some((change.entry.as_ref()?, change.item?)));
            let Some((entry, item)) = written else {
                return Err(lacking("merging local changes of what is gone there"));
            };
            let Ok(at) = prepared.index.find(path.as_bstr(), 0) else {
                return Err(lacking("merging files that are new on both sides"));
            };
            let (old, new) = (side_of(&prepared.index.entry(at)), side_of(&entry.as_ref()));
            let local = read(prepared, &mut to_git, path.as_bstr(), old)?;
            let sides = [old, new, local];
            if !sides.iter().all(|side| is_file(*side)) {
                return Err(lacking("merging other than files"));
            }
            let file = File::merge(path, sides, (&texts, names))?;
            let item = &mut unpacked.plan.write[item as usize];
            (item.id, item.mode) = (file.merged.id, file.merged.mode);
            files.push(file);
        }
        Ok(Merging(files))
    }

    /// Has the index say what was merged: nothing of it is staged, and conflicts have their sides.
    pub(super) fn record(&self, unpacked: &mut Unpacked) {
        for file in &self.0 {
            let Some(at) = position(unpacked, &file.path) else {
                continue;
            };
            if !file.has_conflicts {
                let is_new = file.merged == file.sides[1];
                let entry = unpacked.changes[at].entry.as_mut();
                if let Some(entry) = entry.filter(|_| !is_new) {
                    (entry.stat, entry.flags) = (Stat::default(), Flags::default());
                }
                continue;
            }
            let stages = file.sides.iter().zip(1..).map(|(side, stage)| IndexChange {
                path: file.path.clone(),
                entry: Some(Entry {
                    path: file.path.clone(),
                    id: side.id,
                    mode: side.mode,
                    flags: Flags::default().with_stage(stage),
                    stat: Stat::default(),
                }),
                item: None,
            });
            unpacked.changes.splice(at..=at, stages);
            if let Some(tree) = &mut unpacked.cached_tree {
                tree.invalidate(file.path.as_bstr());
            }
        }
    }
}

impl File {
    fn merge(
        path: &BString,
        sides: [Side; 3],
        (texts, names): (&Texts<'_>, &[BString; 3]),
    ) -> Result<File> {
        let [old, new, local] = sides;
        let mode = if new.mode == old.mode {
            local.mode
        } else {
            new.mode
        };
        let (id, has_conflicts) = if local.id == old.id || local.id == new.id {
            (new.id, false)
        } else if new.id == old.id {
            (local.id, false)
        } else {
            let names = [&names[0], &names[1], &names[2]].map(|name| name.as_bstr());
            let ids = [new.id, old.id, local.id].map(Some);
            let merged = texts.merge(path.as_bstr(), ids, names)?;
            (merged.id, merged.has_conflicts)
        };
        Ok(File {
            path: path.clone(),
            sides,
            merged: Side { id, mode },
            has_conflicts,
        })
    }
}

/// The file at `path` as a blob, which is added to the repository. `old` is what it was.
fn read(
    prepared: &WorktreeSession<'_>,
    to_git: &mut ToGit,
    path: &BStr,
    old: Side,
) -> Result<Side> {
    const VERB: &str = "cannot read";
    let file = match prepared.top.open_file_beneath(path) {
        Err(error) if pronto_io::dir::is_missing(&error) => {
            return Err(lacking("merging with what is gone here"));
        }
        opened => opened.context(ErrorKind::Io, VERB, path.to_string())?,
    };
    let metadata = file_metadata(&file).context(ErrorKind::Io, VERB, path.to_string())?;
    if !metadata.is_file() || metadata.size_bytes > MERGED_BYTES {
        return Err(lacking("merging with other than files of moderate size"));
    }
    let mut content = Vec::new();
    let read = file.take(MERGED_BYTES + 1).read_to_end(&mut content);
    let read = read.context(ErrorKind::Io, VERB, path.to_string())?;
    // It may grow meanwhile, and a part of it must not take the place of all.
    if read as u64 > MERGED_BYTES {
        return Err(lacking("merging with other than files of moderate size"));
    }
    let mut in_index =
        |out: &mut Vec<u8>| Ok(staged_blob((&prepared.index, prepared.objects), path, out));
    let blob = to_git
        .convert(path, &content, &mut in_index)
        .map_err(from_worktree)?;
    let id = prepared
        .objects
        .write(Kind::Blob, &blob)
        .map_err(from_odb)?;
    let trusts_mode = prepared.repository.trusts_file_mode()?;
    let mode = match (trusts_mode, metadata.is_executable()) {
        (false, _) => old.mode,
        (true, true) => mode::EXECUTABLE,
        (true, false) => mode::FILE,
    };
    Ok(Side { id, mode })
}

fn side_of(entry: &EntryRef<'_>) -> Side {
    Side {
        id: entry.id.to_owned(),
        mode: entry.mode,
    }
}

/// What happens to the entry of `path`.
fn position(unpacked: &Unpacked, path: &BString) -> Option<usize> {
    let found = unpacked.changes.binary_search_by(|it| it.path.cmp(path));
    found.ok()
}

fn change_of<'a>(unpacked: &'a Unpacked, path: &BString) -> Option<&'a IndexChange> {
    Some(&unpacked.changes[position(unpacked, path)?])
}
