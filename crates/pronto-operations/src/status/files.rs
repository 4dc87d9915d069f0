//! The queries of `git ls-files`: entries that are missing or differ, and untracked files.

use super::conversion::Converter;
use super::settings::walk_options;
use super::submodules::is_checked_out;
use super::{Ignored, Untracked};
use crate::errors::from_worktree;
use crate::{ErrorKind, Repository, Result, path};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{Entry, EntryRef, Flags, Index, Stat, mode};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_worktree::ignore::{IgnoreStack, Patterns};
use pronto_worktree::pathspec::{self, Pathspec};
use pronto_worktree::status::{self as walk, FileChange, StatusJob, SubmoduleState, Submodules};
use pronto_worktree::unpack;
use std::collections::{HashMap, HashSet};

/// The scope of a search for untracked files.
#[derive(Debug)]
pub struct UntrackedSearch<'a> {
    /// The ignore patterns for all directories (`--exclude`, `--exclude-from`).
    pub patterns: &'a Patterns,
    /// The name of the ignore file in each directory, if there is one (`--exclude-per-directory`).
    pub ignore_file: Option<BString>,
    /// The paths to search.
    pub pathspec: &'a Pathspec,
    /// Return ignored files instead of those that are not ignored (`--ignored`).
    pub ignored: bool,
    /// Return directories without tracked files instead of the files in them (`--directory`).
    pub directories: bool,
    /// With `directories`, return empty directories, too. False means `--no-empty-directory`.
    pub empty_directories: bool,
}

/// The difference between an entry and its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Whether the file is deleted.
    pub deleted: bool,
    /// Whether the file is deleted or differs from the entry.
    pub modified: bool,
}

impl FileState {
    const GONE: FileState = FileState {
        deleted: true,
        modified: true,
    };
    const DIFFERS: FileState = FileState {
        deleted: false,
        modified: true,
    };
}

/// Returns the untracked (or ignored) files and directories selected by `search`, in order.
/// Opens each directory once and examines no tracked file.
///
/// # Errors
/// The same as for [`status`](crate::status::status).
pub fn untracked_files(
    repository: &Repository,
    index: &Index,
    search: &UntrackedSearch<'_>,
    watch: &Watch<'_>,
) -> Result<Vec<BString>> {
    let store = repository.objects()?;
    let top = repository.require_work_tree()?;
    let root = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
    let name = search.ignore_file.as_ref();
    let read = |directory: &BStr| {
        crate::ignores::read_ignore_file(&root, name?, index, Some(store), directory)
    };
    let mut options = walk_options(repository)?;
    options.tracked = false;
    options.untracked = if search.directories {
        Untracked::Normal
    } else {
        Untracked::All
    };
    options.ignored = if search.ignored {
        Ignored::Traditional
    } else {
        Ignored::No
    };
    options.show_empty_directories = search.empty_directories;
    let outcome = walk::walk(&StatusJob {
        work_tree: top,
        git_dir: repository.git_dir(),
        index,
        pathspec: search.pathspec,
        patterns: search.patterns,
        ignore_files: Some(&read),
        conversion: &walk::Unconverted,
        submodules: &(),
        interrupt: watch.interrupt(),
        remembered: None,
        monitored: None,
        options,
    })
    .map_err(from_worktree)?;
    Ok(if search.ignored {
        outcome.ignored
    } else {
        outcome.untracked
    })
}

/// Returns the entries of `tree` that are missing from `index`, as stage 1 entries in order: those
/// whose paths match and have no entry at stage 0 (`--with-tree`).
///
/// # Errors
/// Fails if a tree cannot be read.
pub fn entries_of_tree(
    repository: &Repository,
    index: &Index,
    tree: ObjectId,
    pathspec: &Pathspec,
) -> Result<Vec<Entry>> {
    let (objects, protect) = (repository.objects()?, repository.protection()?);
    let mut entries = Vec::new();
    let mut enter = |path: &BStr| pathspec.directory(path) != pathspec::DirectoryRelation::Outside;
    unpack::files(tree, objects, protect, &mut enter, &mut |path, side| {
        if pathspec.matches(path, false) && index.find(path, 0).is_err() {
            entries.push(Entry {
                path: path.to_owned(),
                id: side.id,
                mode: side.mode,
                flags: Flags::default().with_stage(1),
                stat: Stat::default(),
            });
        }
    })
    .map_err(from_worktree)?;
    Ok(entries)
}

/// Returns the positions of entries whose paths are ignored although they are tracked.
///
/// # Errors
/// Fails if the object store cannot be opened.
pub fn ignored_entries(
    repository: &Repository,
    index: &Index,
    patterns: &Patterns,
    ignore_file: Option<&BString>,
) -> Result<HashSet<usize>> {
    let store = repository.objects()?;
    let root = repository
        .work_tree()
        .and_then(|top| Directory::open(top).ok());
    let read = |directory: &BStr| {
        let (root, name) = (root.as_ref()?, ignore_file?);
        crate::ignores::read_ignore_file(root, name, index, Some(store), directory)
    };
    let mut stack = IgnoreStack::new(patterns, Some(&read));
    let mut ignored = HashSet::new();
    for (position, entry) in index.iter().enumerate() {
        stack.enter(path::split(entry.path).0.as_bstr());
        let is_directory = entry.mode & mode::TYPE == mode::GITLINK;
        if stack.is_ignored(entry.path, is_directory) {
            ignored.insert(position);
        }
    }
    Ok(ignored)
}

/// Returns the entries whose files are missing or differ, by position (`--modified`). Racy files
/// are compared by content, and each stage of an unmerged path is compared by itself.
///
/// # Errors
/// The same as for [`status`](crate::status::status).
pub fn changed_files(
    repository: &Repository,
    index: &Index,
    pathspec: &Pathspec,
    watch: &Watch<'_>,
) -> Result<HashMap<usize, FileState>> {
    find_changed_files(repository, index, pathspec, true, watch)
}

/// Returns the entries whose files are missing, by position (`--deleted`). Reads no file.
///
/// # Errors
/// The same as for [`status`](crate::status::status).
pub fn deleted_files(
    repository: &Repository,
    index: &Index,
    pathspec: &Pathspec,
    watch: &Watch<'_>,
) -> Result<HashMap<usize, FileState>> {
    let mut states = find_changed_files(repository, index, pathspec, false, watch)?;
    states.retain(|_, state| state.deleted);
    Ok(states)
}

fn find_changed_files(
    repository: &Repository,
    index: &Index,
    pathspec: &Pathspec,
    by_content: bool,
    watch: &Watch<'_>,
) -> Result<HashMap<usize, FileState>> {
    let store = repository.objects()?;
    let top = repository.require_work_tree()?;
    let root = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
    let converter = Converter::new(repository, store);
    let mut options = walk_options(repository)?;
    options.untracked = Untracked::No;
    options.stat_decides = !by_content;
    let job = StatusJob {
        work_tree: top,
        git_dir: repository.git_dir(),
        index,
        pathspec,
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
        options,
    };
    let outcome = converter.walk(&job, None)?;
    let mut states = HashMap::new();
    for changed in outcome.changed {
        let entry = index.entry(changed.position);
        match changed.change {
            // `lstat` succeeds if a directory has replaced the file.
            Some(FileChange::Deleted) if !exists(&root, entry.path) => {
                states.insert(changed.position, FileState::GONE);
            }
            Some(_) => {
                states.insert(changed.position, FileState::DIFFERS);
            }
            None => {
                // Each stage of an unmerged path is compared by content.
                let is_there = !by_content && exists(&root, entry.path);
                for at in index.stages(entry.path).filter(|_| !is_there) {
                    let state = stage_state(&root, &converter, &index.entry(at));
                    states.insert(at, state);
                }
            }
        }
    }
    // Files with the assume-unchanged bit can still be missing.
    for (position, entry) in index.iter().enumerate() {
        if entry.flags.contains(Flags::ASSUME_VALID)
            && pathspec.matches(entry.path, false)
            && !exists(&root, entry.path)
        {
            states.insert(position, FileState::GONE);
        }
    }
    Ok(states)
}

fn exists(root: &Directory, path: &BStr) -> bool {
    let (directory, name) = path::split(path);
    root.open_beneath(directory)
        .and_then(|directory| directory.metadata(name))
        .is_ok()
}

/// Compares the file of an unmerged path with one of its stages.
fn stage_state(root: &Directory, converter: &Converter<'_>, entry: &EntryRef<'_>) -> FileState {
    let (directory, name) = path::split(entry.path);
    let found = root.open_beneath(directory).and_then(|directory| {
        directory
            .metadata(name)
            .map(|metadata| (directory, metadata))
    });
    let Ok((directory, metadata)) = found else {
        return FileState::GONE;
    };
    let same_type = match entry.mode & mode::TYPE {
        mode::SYMLINK => metadata.is_symlink(),
        _ => metadata.is_file() && metadata.is_executable() == (entry.mode == mode::EXECUTABLE),
    };
    let file = walk::FileToDigest {
        directory: &directory,
        name,
        metadata: &metadata,
        path: entry.path,
        staged: entry.id,
    };
    let id = walk::digest_file(&file, converter, entry.id.kind());
    let same = same_type && id.is_ok_and(|id| *id == *entry.id);
    FileState {
        deleted: false,
        modified: !same,
    }
}

/// Compares only the checked out commits of submodules.
pub(crate) struct SubmoduleHeads<'a> {
    pub(crate) repository: &'a Repository,
    /// Whether a submodule with a broken repository is an error, as for the commands that examine
    /// changes in submodules.
    pub(crate) refuses_broken: bool,
}

impl Submodules for SubmoduleHeads<'_> {
    fn inspect(
        &self,
        at: &BStr,
        staged: &oid,
    ) -> std::result::Result<SubmoduleState, pronto_worktree::Error> {
        let top = self
            .repository
            .work_tree()
            .unwrap_or(self.repository.git_dir());
        if self.refuses_broken {
            is_checked_out(self.repository, top, at)?;
        }
        let environment = crate::Environment::empty(top);
        let git = top.join(path::borrow(at)).join(".git");
        let head = Repository::open(git, &environment).and_then(|inner| inner.head());
        let new_commits = head
            .ok()
            .and_then(|head| head.id())
            .is_some_and(|id| *id != *staged);
        Ok(SubmoduleState {
            new_commits,
            ..SubmoduleState::default()
        })
    }
}
