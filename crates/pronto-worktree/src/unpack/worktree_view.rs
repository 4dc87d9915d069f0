//! The state before a plan: the index, the worktree, and the rules for comparing them.

use std::io;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{EntryRef, Index, Stat, StatRules, mode};
use pronto_io::dir::{Directory, Metadata};
use pronto_io::error::IoContext;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use rustix::io::Errno;

use crate::filter::ToGit;
use crate::hostile::Protect;
use crate::recorded::recorded;
use crate::sparse::Sparse;
use crate::status::{FileToDigest, Unconverted, digest_file};
use crate::{Error, ErrorKind, ObjectSource};

/// The index and the worktree, with the rules for comparing them.
#[derive(Clone, Copy)]
pub struct WorktreeView<'a> {
    /// The index.
    pub index: &'a Index,
    /// The source of trees.
    pub objects: &'a dyn ObjectSource,
    /// The top of the worktree.
    pub top: &'a Directory,
    /// The names that must never be written (`core.protectNTFS`, `core.protectHFS`).
    pub protect: Protect,
    /// The rules for comparing stat data (`core.trustCtime`, `core.checkStat`).
    pub rules: StatRules,
    /// Whether different stat data mean a modified file, without a comparison of the content.
    pub stat_decides: bool,
    /// Compare the executable bit of files (`core.fileMode`).
    pub file_mode: bool,
    /// Expect symbolic links as links (`core.symlinks`).
    pub symlinks: bool,
    /// A callback that creates converters, one for each thread, for files whose stat data differ from
    /// their entries.
    pub to_git: &'a (dyn Fn() -> ToGit + Sync),
    /// The sparse-checkout patterns; `None` if all paths are in the worktree.
    pub sparse: Option<&'a Sparse>,
    /// The number of threads that examine files.
    pub workers: Workers,
    /// The current directory of the user, which must not become a file.
    pub keep_directory: Option<&'a BString>,
    /// The interrupt that is checked between files.
    pub interrupt: &'a Interrupt,
}

/// The comparison of an entry with its file.
pub(super) enum EntryComparison {
    /// There is no file.
    Missing,
    /// A parent of the path is neither a directory nor a symbolic link.
    Obstructed,
    /// The file matches the entry and has these stat data.
    Same(Stat),
    /// The file differs from the entry.
    Modified,
}

/// Examines files, one after another. Consecutive files in the same directory are cheapest. Each thread
/// has its own value.
pub(super) struct Looker<'a> {
    view: WorktreeView<'a>,
    /// The directory that was opened last.
    open: Option<(BString, DirectoryOpening)>,
    /// A missing directory, below which no path need be examined. Paths are examined in order, so that
    /// one directory is sufficient.
    missing: Option<BString>,
    /// The existing directory in which a missing one was looked up last.
    present: BString,
    to_git: Option<ToGit>,
    content: Vec<u8>,
}

fn is_at_or_below(path: &BStr, directory: &BStr) -> bool {
    let rest = path.strip_prefix(directory.as_bytes());
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

/// The result of opening a directory.
enum DirectoryOpening {
    Yes(Directory),
    Missing,
    /// The path, or a parent of it, is not a directory.
    Obstructed,
}

/// The kind of file at a path.
pub(super) enum PathKind {
    Nothing,
    /// A parent of the path is not a directory.
    Obstructed,
    There(Metadata),
}

impl<'a> Looker<'a> {
    pub(super) fn new(view: &WorktreeView<'a>) -> Self {
        Looker {
            view: *view,
            open: None,
            missing: None,
            present: BString::default(),
            to_git: None,
            content: Vec::new(),
        }
    }

    /// Returns the kind of file at `path`.
    pub(super) fn look(&mut self, path: &BStr) -> Result<PathKind, Error> {
        let (directory, name) = split(path);
        let directory = match self.directory(directory)? {
            Ok(directory) => directory,
            Err(look) => return Ok(look),
        };
        match directory.metadata(name) {
            Ok(metadata) => Ok(PathKind::There(metadata)),
            Err(error) if is_absence(&error) => Ok(PathKind::Nothing),
            Err(error) => Err(error).context(ErrorKind::Io, "cannot stat", path.to_string()),
        }
    }

    /// Returns the topmost leading path of `path` that is not a directory, or `path` itself.
    pub(super) fn obstacle<'p>(&mut self, path: &'p BStr) -> Result<&'p BStr, Error> {
        for slash in path.find_iter("/") {
            let above = path[..slash].as_bstr();
            if let PathKind::There(metadata) = self.look(above)?
                && !metadata.is_directory()
            {
                return Ok(above);
            }
        }
        Ok(path)
    }

    /// Opens the directory at `path`. If that is not possible, returns the result for everything in it.
    fn directory(&mut self, path: &BStr) -> Result<Result<&Directory, PathKind>, Error> {
        if path.is_empty() {
            return Ok(Ok(self.view.top));
        }
        let missing = self.missing.as_ref();
        if missing.is_some_and(|missing| is_at_or_below(path, missing.as_bstr())) {
            return Ok(Err(PathKind::Nothing));
        }
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            let opened = match self.view.top.open_beneath(path) {
                Ok(directory) => DirectoryOpening::Yes(directory),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.missing = Some(self.uppermost_missing(path).to_owned());
                    DirectoryOpening::Missing
                }
                Err(error) if is_absence(&error) => DirectoryOpening::Obstructed,
                Err(error) => {
                    return Err(error).context(
                        ErrorKind::Io,
                        "cannot open directory",
                        path.to_string(),
                    );
                }
            };
            self.open = Some((path.to_owned(), opened));
        }
        Ok(match &self.open {
            Some((_, DirectoryOpening::Yes(directory))) => Ok(directory),
            Some((_, DirectoryOpening::Obstructed)) => Err(PathKind::Obstructed),
            _ => Err(PathKind::Nothing),
        })
    }

    /// Returns the topmost missing parent of `path`, which is missing itself. Costs one call for each
    /// missing directory, and one for their parent unless it was looked up before.
    fn uppermost_missing<'p>(&mut self, path: &'p BStr) -> &'p BStr {
        let mut missing = path;
        loop {
            let above = split(missing).0;
            if above.is_empty() || self.present == above {
                return missing;
            }
            match self.view.top.open_beneath(above) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing = above,
                _ => {
                    self.present = above.to_owned();
                    return missing;
                }
            }
        }
    }

    /// Compares the file of `entry` with the entry: by stat data, or by content if these are not
    /// conclusive.
    pub(super) fn compare(&mut self, entry: &EntryRef<'_>) -> Result<EntryComparison, Error> {
        let metadata = match self.look(entry.path)? {
            PathKind::There(metadata) => metadata,
            PathKind::Nothing => return Ok(EntryComparison::Missing),
            PathKind::Obstructed => {
                let obstacle = self.obstacle(entry.path)?;
                return Ok(match self.look(obstacle)? {
                    PathKind::There(metadata) if !metadata.is_symlink() => {
                        EntryComparison::Obstructed
                    }
                    _ => EntryComparison::Missing,
                });
            }
        };
        let now = recorded(&metadata);
        if entry.mode == mode::GITLINK {
            // A submodule may be at any commit, and the recorded stat data are kept.
            return Ok(if metadata.is_directory() {
                EntryComparison::Same(entry.stat)
            } else {
                EntryComparison::Modified
            });
        }
        if !self.has_kind(entry.mode, &metadata) {
            return Ok(EntryComparison::Modified);
        }
        let recorded = &entry.stat;
        if recorded.matches(&now, self.view.rules) && !self.is_racy(recorded) {
            return Ok(EntryComparison::Same(now));
        }
        let differs = || !recorded.matches(&now.without_nanoseconds(), self.view.rules);
        if self.view.stat_decides && differs() {
            return Ok(EntryComparison::Modified);
        }
        let id = self.digest(entry, &metadata)?;
        Ok(if id.as_ref() == entry.id {
            EntryComparison::Same(now)
        } else {
            EntryComparison::Modified
        })
    }

    /// Returns whether matching stat data are not conclusive (racy). With `stat_decides`, as in Git,
    /// whole seconds are compared: scripts change attributes, reset within the second of the checkout,
    /// and expect files to be converted again.
    fn is_racy(&self, recorded: &Stat) -> bool {
        let index_time = self.view.index.timestamp();
        if self.view.stat_decides {
            recorded.is_racy_by_second(index_time)
        } else {
            recorded.is_racy(index_time)
        }
    }

    fn has_kind(&self, entry_mode: u32, metadata: &Metadata) -> bool {
        match entry_mode {
            mode::SYMLINK => metadata.is_symlink() || (!self.view.symlinks && metadata.is_file()),
            mode::FILE | mode::EXECUTABLE => {
                let executable = entry_mode == mode::EXECUTABLE;
                metadata.is_file()
                    && (!self.view.file_mode || metadata.is_executable() == executable)
            }
            _ => false,
        }
    }

    fn digest(&mut self, entry: &EntryRef<'_>, metadata: &Metadata) -> Result<ObjectId, Error> {
        let path = entry.path;
        let kind = entry.id.kind();
        let (directory, name) = split(path);
        let unreadable = || path.to_string();
        let to_git = self.to_git.get_or_insert_with(self.view.to_git);
        let keeps = to_git.keeps(path)?;
        self.content.clear();
        let mut content = std::mem::take(&mut self.content);
        let Ok(directory) = self.directory(directory)? else {
            return Ok(kind.null());
        };
        if metadata.is_symlink() {
            let target =
                directory
                    .read_link(name)
                    .context(ErrorKind::Io, "readlink", unreadable())?;
            return blob_id(kind, &target);
        }
        if keeps {
            let file = FileToDigest {
                directory,
                name,
                metadata,
                path,
                staged: entry.id,
            };
            let digested = digest_file(&file, &Unconverted, kind);
            self.content = content;
            return match digested {
                // The file changed after it was examined, so it does not match the entry.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(kind.null()),
                digested => digested.context(ErrorKind::Io, "cannot read", unreadable()),
            };
        }
        let read = directory
            .open_file(name)
            .and_then(|mut file| io::Read::read_to_end(&mut file, &mut content));
        read.context(ErrorKind::Io, "cannot read", unreadable())?;
        let to_git = self.to_git.get_or_insert_with(self.view.to_git);
        let objects = self.view.objects;
        let blob = to_git.convert(path, &content, &mut |buffer| {
            crate::objects::blob(objects, entry.id, buffer).map(|()| true)
        })?;
        let id = blob_id(kind, &blob);
        drop(blob);
        self.content = content;
        id
    }
}

/// Finds files that were modified without a difference in their stat data.
pub struct ContentChecker<'a>(Looker<'a>);

impl<'a> ContentChecker<'a> {
    /// Creates a checker. No file is examined yet.
    pub fn new(view: &WorktreeView<'a>) -> Self {
        ContentChecker(Looker::new(view))
    }

    /// Returns whether the stat data of the file match `entry` although its content differs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read.
    pub fn is_quietly_modified(&mut self, entry: &EntryRef<'_>) -> Result<bool, Error> {
        let PathKind::There(metadata) = self.0.look(entry.path)? else {
            return Ok(false);
        };
        // Whole seconds are compared: a Git without nanoseconds must not treat the file as unchanged
        // later.
        let is_same = entry
            .stat
            .without_nanoseconds()
            .matches(&recorded(&metadata), self.0.view.rules)
            && self.0.has_kind(entry.mode, &metadata);
        Ok(is_same && self.0.digest(entry, &metadata)?.as_ref() != entry.id)
    }

    /// Returns whether a file exists at `path`, without following symbolic links.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the path cannot be examined.
    pub fn is_there(&mut self, path: &BStr) -> Result<bool, Error> {
        Ok(matches!(self.0.look(path)?, PathKind::There(_)))
    }

    /// Returns whether a file with the recorded stat data exists. If the stat data are not conclusive,
    /// the content is compared.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read.
    pub fn has_facts_of(&mut self, entry: &EntryRef<'_>) -> Result<bool, Error> {
        let PathKind::There(metadata) = self.0.look(entry.path)? else {
            return Ok(false);
        };
        if entry.mode == mode::GITLINK {
            return Ok(metadata.is_directory());
        }
        let view = self.0.view;
        if !entry.stat.matches(&recorded(&metadata), view.rules)
            || !self.0.has_kind(entry.mode, &metadata)
        {
            return Ok(false);
        }
        let is_racy = entry.stat.is_racy(view.index.timestamp());
        Ok(!is_racy || self.0.digest(entry, &metadata)?.as_ref() == entry.id)
    }

    /// Returns the current stat data of the file if it matches `entry`, by stat data or by content.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read.
    pub fn facts_if_unchanged(&mut self, entry: &EntryRef<'_>) -> Result<Option<Stat>, Error> {
        Ok(match self.0.compare(entry)? {
            EntryComparison::Same(stat) => Some(stat),
            _ => None,
        })
    }
}

impl std::fmt::Debug for ContentChecker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checker").finish_non_exhaustive()
    }
}

fn blob_id(kind: pronto_hash::Kind, content: &[u8]) -> Result<ObjectId, Error> {
    let header = format!("blob {}\0", content.len());
    pronto_hash::digest(kind, &[header.as_bytes(), content])
        .map_err(|collision| Error::new(ErrorKind::CorruptObject, collision.to_string()))
}

/// Splits a path into its directory and its last component.
pub(super) fn split(path: &BStr) -> (&BStr, &BStr) {
    match path.rfind_byte(b'/') {
        Some(slash) => (path[..slash].as_bstr(), path[slash + 1..].as_bstr()),
        None => (b"".as_bstr(), path),
    }
}

/// Returns whether the error means that no file exists at the path, or that a parent is not a
/// directory.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}
