//! Compares trees, the index and files, path by path, like Git's plumbing (`diff-files`,
//! `diff-index`, `diff-tree`). Nothing is refreshed first, so that a file whose recorded stat data
//! are out of date differs, even if its content does not.

mod finish;
mod walk;

use crate::errors::{from_index, from_worktree};
use crate::status::Problem;
use crate::status::{IgnoreSubmodules, Pathspec, Renames, read_tree};
use crate::support::{self, Operation};
use crate::{Repository, Result};
use bstr::BString;
use pronto_hash::{ObjectId, oid};
use pronto_index::{Index, mode};
use pronto_io::watch::Watch;
use pronto_worktree::diff::{self as engine, IntentToAdd, tree_and_index};
use pronto_worktree::status::FileChange;
use std::collections::BTreeMap;

pub use finish::DiffFilter;
pub use pronto_diff::{Difference, DifferenceSide, MOST_SIMILAR, RenameOrigin};
pub use pronto_worktree::diff::TreeDiffDepth;

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The paths to compare.
    pub pathspec: Pathspec,
    /// The detection of renames and copies (`-M`, `-C`); `None` for no detection.
    pub renames: Option<Renames>,
    /// Swap the old and the new side (`-R`).
    pub reverse: bool,
    /// The changes of submodules to ignore (`--ignore-submodules`), instead of the configured ones.
    pub ignore_submodules: Option<IgnoreSubmodules>,
    /// The kinds of differences to return (`--diff-filter`).
    pub filter: Option<DiffFilter>,
    /// Restrict the result to this directory, which ends with a slash (`--relative`); empty for no
    /// restriction.
    pub below: BString,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct DiffResult {
    /// The differences, in order. The id of a file in the worktree is null unless it had to be
    /// computed.
    pub differences: Vec<Difference>,
    /// Paths that could not be examined.
    pub problems: Vec<Problem>,
}

/// The other side of a comparison with a tree: the index or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The index (`--cached`).
    Index,
    /// The files of the index entries. A missing file counts as deleted.
    Files,
    /// The files of the index entries. A missing file counts as unchanged in the index (`-m`).
    FilesThatAreThere,
}

/// Compares files with the index, like `git diff-files`. An unmerged path results in a difference
/// that marks the conflict, and in a difference between the file and `stage` (0 for none). Costs at
/// most one `lstat` for each entry.
///
/// # Errors
/// Fails with [`Interrupted`](crate::ErrorKind::Interrupted) if the operation is interrupted, with
/// `ErrorKind::NoWorkTree` if there is no worktree, and with `ErrorKind::Worktree` or
/// `ErrorKind::Io` if the index cannot be read.
pub fn files(
    repository: &Repository,
    stage: u8,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<DiffResult> {
    support::require(repository, Operation::ReadAttributes)?;
    let index = repository.index_for_looking()?;
    let null = repository.object_hash().null();
    let files = walk::changed(repository, &index, options, watch)?;
    let mut differences = Vec::new();
    for file in &files.changed {
        let entry = index.entry(file.position);
        let recorded = DifferenceSide {
            mode: entry.mode,
            id: entry.id.to_owned(),
        };
        let now = (file.mode != 0).then(|| walk::file_side(file, &recorded));
        let path = entry.path;
        let mut push = |old, new, unmerged| {
            differences.push(difference(path.to_owned(), old, new, unmerged));
        };
        match file.change {
            Some(FileChange::Added) => push(None, now, false),
            Some(_) => push(Some(recorded), now, false),
            None => {
                let side = |mode| DifferenceSide { mode, id: null };
                let now = (file.mode != 0).then(|| side(file.mode));
                push(None, now, true);
                let stages = index.stages(path).map(|at| index.entry(at));
                let wanted =
                    |entry: &pronto_index::EntryRef<'_>| stage != 0 && entry.stage() == stage;
                if let Some(entry) = stages.clone().find(wanted) {
                    let id = entry.id.to_owned();
                    let mode = entry.mode;
                    push(Some(DifferenceSide { mode, id }), now, false);
                }
            }
        }
    }
    index.intact().map_err(from_index)?;
    finish::finish(repository, differences, files.problems, options, watch)
}

/// Compares the index, or the files of its entries, with `tree`, like `git diff-index`. Reads the
/// trees of directories that differ from the cached trees of the index. With files, costs at most
/// one `lstat` for each entry.
///
/// # Errors
/// The same as for [`files`]. Also fails if a tree cannot be read.
pub fn index(
    repository: &Repository,
    tree: ObjectId,
    against: Against,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<DiffResult> {
    support::require(repository, Operation::ReadAttributes)?;
    let index = repository.index_for_looking()?;
    let staged = staged(repository, tree, &index, options)?;
    if against == Against::Index {
        index.intact().map_err(from_index)?;
        return finish::finish(repository, staged, Vec::new(), options, watch);
    }
    let files = walk::changed(repository, &index, options, watch)?;
    let mut paths: BTreeMap<BString, Difference> = staged
        .into_iter()
        .map(|difference| (difference.path.clone(), difference))
        .collect();
    for file in &files.changed {
        let entry = index.entry(file.position);
        let recorded = DifferenceSide {
            mode: entry.mode,
            id: entry.id.to_owned(),
        };
        let staged = paths.remove(entry.path);
        let old = staged.map_or(Some(recorded), |staged| staged.old);
        let new = match (file.mode, against) {
            (0, Against::FilesThatAreThere) => Some(recorded),
            (0, _) => None,
            _ => Some(walk::file_side(file, &recorded)),
        };
        let is_dirty = !file.submodule.is_clean();
        if old != new || is_dirty {
            let path = entry.path.to_owned();
            paths.insert(path.clone(), difference(path, old, new, false));
        }
    }
    // With files only, a conflict does not matter.
    for difference in paths.values_mut() {
        difference.unmerged = false;
    }
    index.intact().map_err(from_index)?;
    let differences = paths.into_values().collect();
    finish::finish(repository, differences, files.problems, options, watch)
}

/// Compares the tree `new` with `old` (`None` for the empty tree), like `git diff-tree`. Reads the
/// trees that differ.
///
/// # Errors
/// Fails if a tree cannot be read.
pub fn trees(
    repository: &Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    depth: TreeDiffDepth,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<DiffResult> {
    support::require(repository, Operation::ReadAttributes)?;
    let store = repository.objects()?;
    let found = engine::trees(store, old, new, depth, &options.pathspec, watch.interrupt());
    let found = found.map_err(from_worktree)?;
    finish::finish(repository, found, Vec::new(), options, watch)
}

fn staged(
    repository: &Repository,
    tree: ObjectId,
    index: &Index,
    options: &Options,
) -> Result<Vec<Difference>> {
    let store = repository.objects()?;
    let cached = index.cached_tree();
    let mut read = |id: &oid, content: &mut Vec<u8>| read_tree(store, id, content);
    tree_and_index(
        Some(&tree),
        index,
        cached.as_ref(),
        &options.pathspec,
        IntentToAdd::Empty,
        &mut read,
    )
    .map(|found| found.differences)
    .map_err(from_worktree)
}

fn difference(
    path: BString,
    old: Option<DifferenceSide>,
    new: Option<DifferenceSide>,
    unmerged: bool,
) -> Difference {
    Difference {
        path,
        old,
        new,
        origin: None,
        unmerged,
    }
}

/// Whether each side is a submodule or missing.
fn is_submodule(difference: &Difference) -> bool {
    let is_link =
        |side: &Option<DifferenceSide>| side.is_none_or(|side| side.mode == mode::GITLINK);
    is_link(&difference.old) && is_link(&difference.new) && !difference.unmerged
}
