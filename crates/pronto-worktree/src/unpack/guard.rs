//! Checks all paths of a plan for content that would be lost.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{EntryRef, Flags, Stat, mode};
use pronto_io::dir::EntryKind;
use pronto_io::error::IoContext;
use pronto_io::pool::{self, Gather};

use super::refusal::Refusals;
use super::worktree_view::{EntryComparison, Looker, PathKind, WorktreeView, is_absence};
use crate::{Error, ErrorKind};

/// The result of comparing files with entries: unchanged files with their current stat data, obstructed
/// entries, and modified files.
#[derive(Default)]
pub(super) struct ComparedEntry {
    pub(super) same: Vec<(usize, Stat)>,
    pub(super) missing: Vec<usize>,
    /// The entries with a parent that is not a directory.
    pub(super) obstructed: Vec<usize>,
    pub(super) modified: Vec<usize>,
}

/// Compares the files of the entries at `positions`, which are sorted, with the entries.
pub(super) fn compare(
    view: &WorktreeView<'_>,
    positions: &[usize],
) -> Result<ComparedEntry, Error> {
    let _region = pronto_io::region!("checkout", "verify");
    let gathered = std::array::from_fn(|_| Gather::default());
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    pool::run(
        view.workers,
        positions.len(),
        || (Looker::new(view), [const { Vec::new() }; 4]),
        |(looker, found), range: Range<usize>| {
            if view.interrupt.is_triggered() {
                return ControlFlow::Break(());
            }
            for &position in &positions[range] {
                match looker.compare(&view.index.entry(position)) {
                    Ok(EntryComparison::Same(stat)) => found[0].push((position, stat)),
                    Ok(EntryComparison::Missing) => found[1].push((position, Stat::default())),
                    Ok(EntryComparison::Obstructed) => found[3].push((position, Stat::default())),
                    Ok(EntryComparison::Modified) => found[2].push((position, Stat::default())),
                    Err(error) => {
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        },
        |(_, found): (_, [Vec<(usize, Stat)>; 4])| {
            for (all, found) in gathered.iter().zip(found) {
                all.add(found);
            }
        },
    );
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    crate::error::check(view.interrupt)?;
    let [same, missing, modified, obstructed]: [Vec<(usize, Stat)>; 4] =
        gathered.map(Gather::into_inner);
    let sorted = |found: Vec<(usize, Stat)>| {
        let mut positions: Vec<usize> = found.into_iter().map(|(position, _)| position).collect();
        positions.sort_unstable();
        positions
    };
    Ok(ComparedEntry {
        same,
        missing: sorted(missing),
        obstructed: sorted(obstructed),
        modified: sorted(modified),
    })
}

/// Returns whether the entry is assume-unchanged or skip-worktree, so that its file is not examined.
/// The file may have unknown content, which is the only content that a reset does not overwrite.
pub(super) fn is_unseen(entry: &EntryRef<'_>) -> bool {
    entry.flags.contains(Flags::ASSUME_VALID) || entry.flags.contains(Flags::SKIP_WORKTREE)
}

/// Refuses modified files of the entries at `positions`, which are sorted. Submodules may be at any
/// commit.
pub(super) fn refuse_modified(
    view: &WorktreeView<'_>,
    positions: &[usize],
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let index = view.index;
    let compared = compare(view, positions)?;
    let lost = compared.modified.into_iter().chain(compared.obstructed);
    let files = lost.map(|at| index.entry(at));
    let files = files.filter(|entry| entry.mode != mode::GITLINK);
    refusals
        .modified
        .extend(files.map(|entry| entry.path.to_owned()));
    Ok(())
}

/// Handles removed files in whose place a directory exists. As in Git, such a directory is refused only
/// if it contains files that would be lost. `goes` returns whether a modified file is removed by the
/// plan.
pub(super) fn report_directories(
    view: &WorktreeView<'_>,
    goes: &dyn Fn(&BStr) -> bool,
    is_expendable: &mut IsExpendable<'_>,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let mut looker = Looker::new(view);
    for path in std::mem::take(&mut refusals.modified) {
        let is_directory = goes(path.as_bstr())
            && matches!(looker.look(path.as_bstr())?, PathKind::There(it) if it.is_directory());
        let kept =
            !is_directory || all_expendable(view, path.as_bstr(), &HashSet::new(), is_expendable)?;
        if kept {
            refusals.modified.push(path);
        } else {
            refusals.directories.push(path);
        }
    }
    Ok(())
}

/// Refuses to write or remove a file at `path` if it is the current directory of the user or a parent
/// of it.
pub(super) fn refuse_current_directory(
    view: &WorktreeView<'_>,
    path: &BStr,
    refusals: &mut Refusals,
) {
    if view.keep_directory.is_some_and(|here| here == path) {
        refusals.current_directory.push(path.to_owned());
    }
}

/// Returns the entries of `positions` at whose paths a file or directory exists.
pub(super) fn occupied_entries(
    view: &WorktreeView<'_>,
    positions: &[usize],
) -> Result<Vec<(usize, PathKind)>, Error> {
    let free = |position: &usize| UntrackedPath {
        path: view.index.path(*position),
        mode: None,
    };
    let free: Vec<UntrackedPath<'_>> = positions.iter().map(free).collect();
    let found = occupied(view, &free)?.into_iter();
    Ok(found.map(|(at, look)| (positions[at], look)).collect())
}

/// A path that the plan writes or removes and that has no index entry.
pub(super) struct UntrackedPath<'a> {
    pub(super) path: &'a BStr,
    /// The new mode; `None` if the path must not exist.
    pub(super) mode: Option<u32>,
}

/// A callback that returns whether an untracked path is ignored, so that it may be overwritten. The
/// second argument is whether the path is a directory.
pub type IsExpendable<'a> = dyn FnMut(&BStr, bool) -> Result<bool, Error> + 'a;

/// Refuses untracked files at the paths of `free`, which are sorted. `leaving` are the tracked paths
/// that the plan removes.
pub(super) fn refuse_untracked(
    view: &WorktreeView<'_>,
    free: &[UntrackedPath<'_>],
    leaving: &HashSet<&BStr>,
    is_expendable: &mut IsExpendable<'_>,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let mut looker = Looker::new(view);
    for (at, look) in occupied(view, free)? {
        let free = &free[at];
        let refused = match look {
            PathKind::Nothing => None,
            PathKind::Obstructed => obstacle(&mut looker, free.path, leaving, is_expendable)?,
            PathKind::There(metadata) if metadata.is_directory() => {
                refuse_directory(view, free, leaving, is_expendable, refusals)?;
                None
            }
            PathKind::There(_) if leaving.contains(free.path) => None,
            PathKind::There(_) if is_expendable(free.path, false)? => None,
            PathKind::There(_) => {
                // As in Git, files below are not examined then.
                if free.mode.is_some() {
                    refusals.forget_below(free.path);
                }
                Some(free.path.to_owned())
            }
        };
        match free.mode {
            Some(_) => refusals.overwritten.extend(refused),
            None => refusals.removed.extend(refused),
        }
    }
    Ok(())
}

/// Returns those of `free` whose paths exist. Several threads examine them.
fn occupied(
    view: &WorktreeView<'_>,
    free: &[UntrackedPath<'_>],
) -> Result<Vec<(usize, PathKind)>, Error> {
    let found = Gather::default();
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    pool::run(
        view.workers,
        free.len(),
        || (Looker::new(view), Vec::new()),
        |(looker, found), range: Range<usize>| {
            if view.interrupt.is_triggered() {
                return ControlFlow::Break(());
            }
            for at in range {
                match looker.look(free[at].path) {
                    Ok(PathKind::Nothing) => {}
                    Ok(look) => found.push((at, look)),
                    Err(error) => {
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        },
        |(_, all)| found.add(all),
    );
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    crate::error::check(view.interrupt)?;
    let mut found = found.into_inner();
    found.sort_unstable_by_key(|(at, _)| *at);
    Ok(found)
}

/// Returns the first component above `path` that is not a directory, if it may not be removed.
fn obstacle(
    looker: &mut Looker<'_>,
    path: &BStr,
    leaving: &HashSet<&BStr>,
    is_expendable: &mut IsExpendable<'_>,
) -> Result<Option<BString>, Error> {
    for slash in path.find_iter("/") {
        let above = path[..slash].as_bstr();
        if let PathKind::There(metadata) = looker.look(above)?
            && !metadata.is_directory()
        {
            let goes = leaving.contains(above) || is_expendable(above, false)?;
            return Ok((!goes).then(|| above.to_owned()));
        }
    }
    Ok(None)
}

/// Checks a directory in place of a file: everything in it must be removed by the plan or be ignored.
fn refuse_directory(
    view: &WorktreeView<'_>,
    free: &UntrackedPath<'_>,
    leaving: &HashSet<&BStr>,
    is_expendable: &mut IsExpendable<'_>,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    // A submodule may already exist, and nothing is removed if nothing is written.
    if free.mode.is_none_or(|mode| mode == mode::GITLINK) || leaving.contains(free.path) {
        return Ok(());
    }
    let known = refusals.current_directory.len();
    refuse_current_directory(view, free.path, refusals);
    if refusals.current_directory.len() > known {
        return Ok(());
    }
    if refusals.keep_one_below(free.path) {
        return Ok(());
    }
    if !all_expendable(view, free.path, leaving, is_expendable)? {
        refusals.directories.push(free.path.to_owned());
    }
    Ok(())
}

fn all_expendable(
    view: &WorktreeView<'_>,
    top: &BStr,
    leaving: &HashSet<&BStr>,
    is_expendable: &mut IsExpendable<'_>,
) -> Result<bool, Error> {
    let mut todo = vec![top.to_owned()];
    while let Some(path) = todo.pop() {
        let directory = match view.top.open_beneath(&path) {
            Ok(directory) => directory,
            Err(error) if is_absence(&error) => continue,
            failed => failed.context(ErrorKind::Io, "cannot open directory", path.to_string())?,
        };
        let entries = directory.entries();
        let entries = entries.context(ErrorKind::Io, "cannot read directory", path.to_string())?;
        // A nested repository is never removed.
        if entries.iter().any(|(name, _)| name == b".git") {
            return Ok(false);
        }
        for (name, kind) in entries {
            let mut below = path.clone();
            below.push(b'/');
            below.extend_from_slice(&name);
            let is_directory = match kind {
                EntryKind::Unknown => directory.metadata(&name).is_ok_and(|it| it.is_directory()),
                kind => kind == EntryKind::Directory,
            };
            if leaving.contains(below.as_bstr()) || is_expendable(below.as_bstr(), is_directory)? {
                continue;
            }
            if !is_directory {
                return Ok(false);
            }
            todo.push(below);
        }
    }
    Ok(true)
}
