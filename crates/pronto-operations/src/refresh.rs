//! Refreshes the stat data of files in the index: `git update-index --refresh`,
//! `git add --refresh`.

use bstr::{BStr, BString, ByteSlice};
use pronto_diff::ChangeKind;
use pronto_index::{EntryRef, Flags, IndexEdit, Stat, mode};
use pronto_io::watch::Watch;
use pronto_worktree::ignore::Patterns;
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::status::{FileChange, StatusJob, Untracked};

use crate::errors::from_index;
use crate::session::WorktreeSession;
use crate::status::{Converter, SubmoduleHeads, walk_options};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// Options of a refresh.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The paths to refresh.
    pub pathspec: Pathspec,
    /// Skip submodules (`--ignore-submodules`).
    pub ignore_submodules: bool,
    /// Skip missing files (`--ignore-missing`).
    pub ignore_missing: bool,
    /// Also examine files with the assume-unchanged bit, and clear the bit of those that differ
    /// (`--really-refresh`).
    pub really: bool,
}

/// An entry that differs from its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// The path of the entry.
    pub path: BString,
    /// The change from the entry to the file; [`Added`](ChangeKind::Added) for an entry with intent to add.
    pub kind: ChangeKind,
}

/// The result of a refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The entries that differ from their files, in order.
    pub outdated: Vec<Outdated>,
    /// The first pathspec that matches no entry. In that case nothing was written.
    pub unmatched: Option<BString>,
}

/// Refreshes the stat data in the index of files whose content is unchanged.
///
/// # Errors
/// Fails with [`Interrupted`](ErrorKind::Interrupted) if the operation is interrupted, with
/// [`Unsupported`](ErrorKind::Unsupported) for pathspecs in a sparse checkout, with
/// [`ErrorKind::Locked`] if the index is locked, with [`ErrorKind::NoWorkTree`] if there is no
/// worktree, and with [`ErrorKind::Worktree`] or [`ErrorKind::Io`] if the index cannot be read or
/// written.
pub fn refresh_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Refreshed> {
    support::require(repository, Operation::WriteIndex)?;
    let (prepared, lock) = WorktreeSession::with_sparse_index(repository)?;
    let pathspec = &options.pathspec;
    let mut entries = prepared.index.iter();
    let is_sparse = !pathspec.is_empty()
        && (prepared.sparse.is_some()
            || entries.any(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)));
    if is_sparse {
        let message = "'add --refresh' in a sparse checkout is not implemented natively";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut seen = vec![false; pathspec.len()];
    for entry in prepared.index.iter() {
        pathspec.mark(entry.path, &mut seen);
    }
    let mut edit = IndexEdit::new(&prepared.index);
    let outdated = refresh(repository, &prepared, &mut edit, options, watch)?;
    let unmatched = seen.iter().position(|seen| !seen);
    if unmatched.is_none() && !edit.is_empty() {
        let bytes = prepared.encode(edit.content(), watch)?;
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(Refreshed {
        outdated,
        unmatched: unmatched.map(|at| pathspec.original(at).to_owned()),
    })
}

/// Records new stat data in `edit` for files with unchanged content, and returns the entries whose
/// files differ, in order.
///
/// # Errors
/// Fails if the worktree cannot be read, or the operation is interrupted.
pub(crate) fn refresh(
    repository: &Repository,
    prepared: &WorktreeSession<'_>,
    edit: &mut IndexEdit<'_>,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Outdated>> {
    let index = &prepared.index;
    let converter = Converter::new(repository, prepared.objects);
    let walk_options = walk_options_for(repository, options)?;
    let job = StatusJob {
        work_tree: repository.require_work_tree()?,
        git_dir: repository.git_dir(),
        index,
        pathspec: &options.pathspec,
        patterns: &Patterns::default(),
        ignore_files: None,
        conversion: &converter,
        submodules: &SubmoduleHeads {
            repository,
            refuses_broken: false,
        },
        interrupt: watch.interrupt(),
        remembered: None,
        monitored: None,
        options: walk_options,
    };
    let outcome = converter.walk(&job, None)?;
    let is_settled = |edit: &IndexEdit<'_>, entry: &EntryRef<'_>| {
        let now = edit.get(entry.path, entry.stage());
        now.is_none_or(|now| now.id != entry.id || now.stat != entry.stat)
    };
    let mut outdated = Vec::new();
    for changed in &outcome.changed {
        let entry = index.entry(changed.position);
        let is_link = entry.mode & mode::TYPE == mode::GITLINK;
        if (is_link && options.ignore_submodules) || is_settled(edit, &entry) {
            continue;
        }
        let is_intent_to_add = entry.flags.contains(Flags::INTENT_TO_ADD);
        let kind = match changed.change {
            None => ChangeKind::Unmerged,
            Some(FileChange::Deleted) => match find(prepared, &entry) {
                PathOccupant::Nothing if options.ignore_missing => continue,
                found => found.kind(is_intent_to_add),
            },
            Some(_) if is_intent_to_add => ChangeKind::Added,
            Some(FileChange::TypeChanged) => ChangeKind::TypeChanged,
            Some(FileChange::Modified | FileChange::Added) => ChangeKind::Modified,
        };
        if options.really
            && entry.flags.contains(Flags::ASSUME_VALID)
            && !matches!(kind, ChangeKind::Deleted | ChangeKind::Unmerged)
        {
            let flags = entry.flags.without(Flags::ASSUME_VALID);
            edit.refresh(changed.position, entry.stat, flags);
        }
        outdated.push(Outdated {
            path: entry.path.to_owned(),
            kind,
        });
    }
    for (position, stat) in outcome.refreshed {
        let entry = index.entry(position);
        if !is_mark(&stat, &entry.stat) && !is_settled(edit, &entry) {
            edit.refresh(position, stat, entry.flags.with(Flags::UP_TO_DATE));
        }
    }
    Ok(outdated)
}

/// Returns the options of the walk, which ignores untracked files.
fn walk_options_for(
    repository: &Repository,
    options: &Options,
) -> Result<pronto_worktree::status::Options> {
    let mut walk_options = walk_options(repository)?;
    walk_options.untracked = Untracked::No;
    walk_options.looks_at_assumed = options.really;
    Ok(walk_options)
}

/// Returns whether a recorded size of zero marks a smudged (racy) entry that differs. The next
/// writer of the index handles the entry.
fn is_mark(now: &Stat, before: &Stat) -> bool {
    now.size_bytes == 0 && before.size_bytes != 0
}

/// The kind of the file system entry at the path of a missing file.
enum PathOccupant {
    Nothing,
    /// A leading directory of the path is a file.
    BelowFile,
    /// The path is a directory or a special file.
    Other,
}

impl PathOccupant {
    fn kind(self, is_intent_to_add: bool) -> ChangeKind {
        match self {
            PathOccupant::Other => ChangeKind::TypeChanged,
            PathOccupant::BelowFile if is_intent_to_add => ChangeKind::Added,
            PathOccupant::BelowFile => ChangeKind::Modified,
            PathOccupant::Nothing => ChangeKind::Deleted,
        }
    }
}

fn find(prepared: &WorktreeSession<'_>, entry: &EntryRef<'_>) -> PathOccupant {
    let (directory, name) = crate::path::split(entry.path);
    let opened = prepared.top.open_beneath(directory);
    match opened.and_then(|directory| directory.metadata(name)) {
        Ok(_) => PathOccupant::Other,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            match is_below_link(prepared, directory.as_bstr()) {
                true => PathOccupant::Nothing,
                false => PathOccupant::BelowFile,
            }
        }
        Err(_) => PathOccupant::Nothing,
    }
}

/// Whether the first component of `directory` that is not a directory is a symbolic link. As in
/// Git, nothing exists beyond a symbolic link, wherever the link points.
fn is_below_link(prepared: &WorktreeSession<'_>, directory: &BStr) -> bool {
    let slashes = directory.find_iter("/").chain([directory.len()]);
    let mut on_the_way = slashes.map(|end| crate::path::split(directory[..end].as_bstr()));
    on_the_way
        .find_map(|(above, name)| {
            let found = prepared.top.open_beneath(above).ok()?.metadata(name).ok()?;
            (!found.is_directory()).then(|| found.is_symlink())
        })
        .unwrap_or(false)
}
