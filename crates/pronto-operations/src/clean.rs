//! Removes untracked files: `git clean`.
//!
//! A walk selects paths, directory by directory, before anything is removed. Every system call is
//! relative to a directory handle and follows no symbolic link. Paths in the index, at any stage,
//! are never selected, and nested repositories only on request.

use std::io;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Index, mode};
use pronto_io::dir::{Directory, EntryKind};
use pronto_io::error::{IoContext, OsReason};
use pronto_io::watch::Watch;
use pronto_worktree::ignore::{IgnoreStack, Patterns};
use pronto_worktree::pathspec::{DirectoryRelation as Relation, Pathspec};

use crate::status::{ignore_patterns, read_ignore_file};
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::Notice;

mod remove;

/// The kind of untracked files to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleanSelection {
    /// Untracked files that are not ignored.
    #[default]
    Untracked,
    /// Only ignored files (`-X`).
    Ignored,
    /// Untracked and ignored files (`-x`), except those that match the patterns of `-e`.
    All,
}

/// Options of `git clean`. The default is `git clean --force`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The kind of files to remove (`-x`, `-X`).
    pub what: CleanSelection,
    /// Remove untracked directories, too (`-d`).
    pub directories: bool,
    /// Remove untracked nested repositories, too (`-f -f`).
    pub repositories: bool,
    /// Additional ignore patterns (`--exclude`).
    pub patterns: Vec<BString>,
    /// The paths to clean.
    pub pathspec: Pathspec,
    /// Only report what would be removed (`--dry-run`).
    pub dry_run: bool,
}

/// A path relative to the top of the worktree. The path ends with a slash if it is a directory that
/// is removed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanPath {
    /// The path.
    pub path: BString,
    /// The length of the leading directory that is removed as a whole, if there is one.
    pub root: usize,
}

/// An event of `git clean`, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The path was removed, or would be with `dry_run`.
    Removed(CleanPath),
    /// A nested repository was skipped.
    Repository(CleanPath),
    /// The current directory was not removed.
    Here,
    /// The path could not be removed.
    Failed(CleanPath, io::Error),
}

/// Removes untracked files, and returns the events.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be read, with [`ErrorKind::Interrupted`] if
/// the operation is interrupted, with [`ErrorKind::Unsupported`] if `core.ignoreCase` is set, with
/// [`ErrorKind::NoWorkTree`] if there is no worktree, and with [`ErrorKind::Worktree`] if the index
/// cannot be read. Paths that cannot be removed are no error: see [`Event`].
pub fn clean(repository: &Repository, options: &Options, watch: &Watch<'_>) -> Result<Vec<Event>> {
    let path = repository.require_work_tree()?;
    if repository.ignores_case()? {
        // The file system could spell tracked paths differently.
        let message = "'clean' with core.ignoreCase is not implemented natively";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let top = Directory::open(path).context(ErrorKind::Io, "cannot open", path)?;
    // The files of a sparse directory entry are not in the worktree.
    let index = repository.index_for_looking()?;
    let mut patterns = match options.what {
        CleanSelection::All => Patterns::new(repository.ignores_case()?),
        _ => ignore_patterns(repository)?,
    };
    for pattern in &options.patterns {
        patterns.add_pattern(pattern);
    }
    let objects = repository.objects()?;
    let read =
        |directory: &BStr| read_ignore_file(&top, b".gitignore", &index, Some(objects), directory);
    let mut walk = CleanWalk {
        repository,
        top: &top,
        index: &index,
        options,
        watch,
        stack: match options.what {
            CleanSelection::All => IgnoreStack::new(&patterns, None),
            _ => IgnoreStack::new(&patterns, Some(&read)),
        },
        found: Vec::new(),
    };
    walk.run()?;
    let mut found = walk.found;
    found.sort();
    remove::remove(repository, &top, &found, options, watch)
}

/// Whether the directory at `path` of the worktree is the top of a nested repository.
fn is_nested_repository(repository: &Repository, path: &BStr) -> bool {
    let Some(top) = repository.work_tree() else {
        return false;
    };
    let git = top.join(crate::path::borrow(path)).join(".git");
    if git.symlink_metadata().is_err() {
        return false;
    }
    // A directory that cannot be read is not removed.
    let found = Repository::resolve_git_dir(crate::path::as_bytes(&git), repository.environment());
    found.map_or_else(
        |error| error.kind() == ErrorKind::Io,
        |found| found.is_some(),
    )
}

/// The kinds of files in an untracked directory.
#[derive(Clone, Copy, Debug, Default)]
struct Holds {
    ignored: bool,
    untracked: bool,
}

impl Holds {
    fn add(&mut self, other: Holds) {
        self.ignored |= other.ignored;
        self.untracked |= other.untracked;
    }
}

struct CleanWalk<'a> {
    repository: &'a Repository,
    top: &'a Directory,
    index: &'a Index,
    options: &'a Options,
    watch: &'a Watch<'a>,
    stack: IgnoreStack<'a>,
    /// The paths to remove; directories have a final slash.
    found: Vec<BString>,
}

/// An entry of a directory.
struct DirectoryEntry {
    path: BString,
    is_directory: bool,
    is_excluded: bool,
    /// Whether the index has an entry of this name. A directory at its path is kept then.
    is_known: bool,
}

/// A directory that is being walked: one level of the stack of the walk. The stack is on the heap,
/// because directories can be nested more deeply than a thread's stack permits.
struct OpenDirectory {
    children: std::vec::IntoIter<DirectoryEntry>,
    /// The state for a directory without tracked files.
    untracked: Option<CleanedDirectory>,
}

/// A directory without tracked files.
struct CleanedDirectory {
    child: DirectoryEntry,
    /// The number of paths that were selected before this directory.
    mark: usize,
    /// The kinds of files that were found in the directory so far.
    holds: Holds,
}

/// A directory without tracked files, and whether it must be walked.
enum UntrackedSubtree {
    Known(Holds),
    Below(OpenDirectory),
}

impl CleanWalk<'_> {
    fn run(&mut self) -> Result<()> {
        let mut levels = vec![self.level("".into())?];
        while let Some(level) = levels.last_mut() {
            let below = match (level.children.next(), &mut level.untracked) {
                (Some(child), None) => self.beside_tracked(child)?,
                (Some(child), Some(directory)) if child.is_directory => {
                    match self.child_directory(child)? {
                        UntrackedSubtree::Known(holds) => {
                            directory.holds.add(holds);
                            None
                        }
                        UntrackedSubtree::Below(below) => Some(below),
                    }
                }
                (Some(child), Some(directory)) => {
                    directory.holds.add(Holds {
                        ignored: child.is_excluded,
                        untracked: !child.is_excluded,
                    });
                    self.file(&child);
                    None
                }
                (None, _) => {
                    let ended = levels.pop().and_then(|level| level.untracked);
                    let holds = ended.map(|directory| self.end(&directory));
                    let above = levels.last_mut().and_then(|above| above.untracked.as_mut());
                    if let (Some(above), Some(holds)) = (above, holds) {
                        above.holds.add(holds);
                    }
                    None
                }
            };
            levels.extend(below);
        }
        Ok(())
    }

    /// Opens a directory with tracked files, or the top.
    fn level(&mut self, directory: &BStr) -> Result<OpenDirectory> {
        Ok(OpenDirectory {
            children: self.children(directory)?.into_iter(),
            untracked: None,
        })
    }

    fn children(&mut self, directory: &BStr) -> Result<Vec<DirectoryEntry>> {
        let stopped = |_| Error::new(ErrorKind::Interrupted, "interrupted");
        self.watch.interrupt().check().map_err(stopped)?;
        let opened = match directory.is_empty() {
            true => self.top.entries(),
            false => {
                let opened = self.top.open_beneath(directory);
                opened.and_then(|opened| opened.entries())
            }
        };
        let entries = match opened {
            Ok(entries) => entries,
            // The directory was removed or replaced in the meantime.
            Err(error) if pronto_io::dir::is_missing(&error) => return Ok(Vec::new()),
            Err(error) => {
                let message = format!("could not open directory '{directory}/'");
                let error = Error::new(ErrorKind::Io, message).because(OsReason(error));
                self.repository.notify(Notice::Ignored(error));
                return Ok(Vec::new());
            }
        };
        self.stack.enter(directory);
        let all_excluded = self.stack.is_directory_ignored();
        let mut children = Vec::with_capacity(entries.len());
        for (name, kind) in entries {
            // Neither a repository nor a special file is ever selected.
            if name == b".git" || kind == EntryKind::Other {
                continue;
            }
            let mut path = directory.to_owned();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            let is_directory = match kind {
                EntryKind::Unknown => self.is_directory(path.as_bstr()),
                kind => kind == EntryKind::Directory,
            };
            let is_excluded = all_excluded || self.stack.is_ignored(path.as_bstr(), is_directory);
            children.push(DirectoryEntry {
                path,
                is_directory,
                is_excluded,
                is_known: false,
            });
        }
        children.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(children)
    }

    fn is_directory(&self, path: &BStr) -> bool {
        let (directory, name) = crate::path::split(path);
        let opened = self.top.open_beneath(directory);
        let metadata = opened.and_then(|opened| opened.metadata(name));
        metadata.is_ok_and(|metadata| metadata.is_directory())
    }

    /// Handles an entry of a directory with tracked files. Returns the directory to walk.
    fn beside_tracked(&mut self, mut child: DirectoryEntry) -> Result<Option<OpenDirectory>> {
        let path = child.path.as_bstr();
        let mut stages = self.index.stages(path);
        child.is_known = !stages.is_empty();
        if !child.is_directory {
            if stages.is_empty() {
                self.file(&child);
            }
            return Ok(None);
        }
        if stages.any(|at| self.index.entry(at).mode == mode::GITLINK) {
            return Ok(None);
        }
        if self.options.pathspec.directory(path) == Relation::Outside {
            return Ok(None);
        }
        if !self.index.below(path).is_empty() {
            return self.level(path).map(Some);
        }
        Ok(match self.child_directory(child)? {
            UntrackedSubtree::Known(_) => None,
            UntrackedSubtree::Below(below) => Some(below),
        })
    }

    /// Selects an untracked file if it is to be removed.
    fn file(&mut self, child: &DirectoryEntry) {
        let goes = child.is_excluded == (self.options.what == CleanSelection::Ignored);
        if goes && self.options.pathspec.matches(child.path.as_bstr(), false) {
            self.found.push(child.path.clone());
        }
    }

    /// Handles a directory without tracked files.
    fn child_directory(&mut self, child: DirectoryEntry) -> Result<UntrackedSubtree> {
        let path = child.path.as_bstr();
        let only_ignored = self.options.what == CleanSelection::Ignored;
        let relation = self.options.pathspec.directory(path);
        if !(self.options.directories || only_ignored) || relation == Relation::Outside {
            return Ok(UntrackedSubtree::Known(Holds {
                untracked: true,
                ignored: child.is_excluded,
            }));
        }
        let takes_whole = self.options.pathspec.takes_whole(path);
        if is_nested_repository(self.repository, path) {
            if !self.options.repositories {
                return Ok(UntrackedSubtree::Known(Holds::default()));
            }
            if takes_whole && !child.is_known && child.is_excluded == only_ignored {
                self.note(path);
            }
            return Ok(UntrackedSubtree::Known(Holds {
                ignored: child.is_excluded,
                untracked: !child.is_excluded,
            }));
        }
        if child.is_excluded && !only_ignored {
            return Ok(UntrackedSubtree::Known(Holds {
                ignored: true,
                untracked: false,
            }));
        }
        Ok(UntrackedSubtree::Below(OpenDirectory {
            children: self.children(path)?.into_iter(),
            untracked: Some(CleanedDirectory {
                child,
                mark: self.found.len(),
                holds: Holds::default(),
            }),
        }))
    }

    /// Selects the directory as a whole if that is allowed. Returns the kinds of its content.
    fn end(&mut self, directory: &CleanedDirectory) -> Holds {
        let (child, holds) = (&directory.child, directory.holds);
        let path = child.path.as_bstr();
        let only_ignored = self.options.what == CleanSelection::Ignored;
        let whole = match only_ignored {
            true => child.is_excluded || (holds.ignored && !holds.untracked),
            false => !holds.ignored,
        };
        if whole && self.options.pathspec.takes_whole(path) {
            self.found.truncate(directory.mark);
            if !child.is_known {
                self.note(path);
            }
        }
        match child.is_excluded {
            true => Holds {
                ignored: true,
                untracked: false,
            },
            // An empty directory counts as untracked unless it is ignored.
            false => Holds {
                untracked: holds.untracked || !holds.ignored,
                ..holds
            },
        }
    }

    fn note(&mut self, directory: &BStr) {
        if self.options.directories {
            self.found
                .push([directory.as_bytes(), b"/"].concat().into());
        }
    }
}
