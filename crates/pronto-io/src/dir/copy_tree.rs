//! Copies files and directories from one tree to another with several workers. Copies share blocks
//! with their originals (`FICLONE`) on file systems that support this.

mod content;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::fs::Mode;

use content::{CopiedFile, copy_link, is_incapable, times};

use super::{Directory, DirectoryListing, EntryKind, Metadata, file_metadata, is_missing};
use crate::interrupt::Interrupt;
use crate::pool::{self, Gather, Workers, ends_of_groups};
use crate::progress::Meter;
use crate::retry::retry;

/// The mode bits that are copied: the permissions, and the sticky bit of directories.
const KEPT_MODE: u32 = 0o1777;

/// Whether a copy shares its blocks with the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSharing {
    /// Share blocks, and fail if that is not possible.
    Always,
    /// Share blocks if that is possible, and copy the bytes otherwise.
    #[default]
    Auto,
    /// Copy the bytes of all files.
    Never,
}

/// Copies files and directories of one directory to the same paths in another directory.
pub struct TreeCopy<'a> {
    /// The directory to copy.
    pub source: &'a Directory,
    /// The destination. If `target` is inside of `source`, it is not copied into itself.
    pub target: &'a Directory,
    /// Whether copies share blocks with their originals.
    pub sharing: BlockSharing,
    /// The number of threads.
    pub workers: Workers,
    /// The progress meter, which counts files.
    pub meter: &'a Meter,
    /// The interrupt, which is checked between files.
    pub interrupt: &'a Interrupt,
    /// Returns whether a path must not be created in the target. The second argument is `true` for
    /// a directory.
    pub is_forbidden: &'a (dyn Fn(&[u8], bool) -> bool + Sync),
}

/// A path that was not copied, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The path, relative to the source directory.
    pub path: Vec<u8>,
    /// The reason for which the path was not copied.
    pub reason: SkipReason,
}

/// The reason for which a path was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// A socket, a FIFO or a device.
    Special,
    /// The path exists in the target, or `is_forbidden` rejected it.
    InTheWay,
    /// A directory with a file `.git`, such as a linked worktree. The file ties the directory to
    /// its path.
    Worktree,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SkipReason::Special => "it is not a file, directory or symbolic link",
            SkipReason::InTheWay => "the new worktree already has a file there",
            SkipReason::Worktree => "it is another worktree or a submodule",
        })
    }
}

/// The error that ended the copy early.
#[derive(Debug)]
pub struct CopyFailure {
    /// The path at which the error occurred.
    pub path: Vec<u8>,
    /// The error. Its kind is `Interrupted` after an interrupt.
    pub error: io::Error,
    /// Whether the error means that the file system cannot share blocks, as [`BlockSharing::Always`]
    /// requires.
    pub cannot_share: bool,
}

type Result<T> = std::result::Result<T, CopyFailure>;

impl TreeCopy<'_> {
    /// Copies each of `roots` (paths relative to `source`; a directory with all of its contents)
    /// and creates missing parent directories. Copies contents, permissions (without the
    /// set-user-ID and set-group-ID bits), modification times and the targets of symbolic links.
    /// Does not copy owners, extended attributes and hard links. Existing paths of the target stay
    /// unchanged, and symbolic links are not followed. A file that is removed during the copy is
    /// not an error.
    ///
    /// Returns the paths that were not copied, sorted. Costs about eight system calls for each
    /// file, ten for each directory, and memory for all paths.
    ///
    /// # Errors
    /// Returns the first failure. Files that were copied before it stay.
    pub fn run(&self, roots: &[Vec<u8>]) -> Result<Vec<Skipped>> {
        let own = self.target.own_metadata();
        let own = own.map_err(|error| failure(b"", error))?;
        let walk = CopyWalk {
            copy: self,
            own: (own.device, own.inode),
            copies: AtomicBool::new(self.sharing == BlockSharing::Never),
            skipped: Gather::default(),
            failure: Mutex::new(None),
        };
        let directories = walk.make_directories(roots)?;
        walk.copy_files(&directories)?;
        for directory in directories.iter().rev() {
            walk.finish(directory)?;
        }
        let mut skipped = walk.skipped.into_inner();
        skipped.sort();
        Ok(skipped)
    }
}

/// A directory of the source with its files.
struct SourceDirectory {
    path: Vec<u8>,
    files: Vec<Vec<u8>>,
    /// The metadata of the source directory, if this run created the directory in the target.
    made_as: Option<Metadata>,
}

struct CopyWalk<'a> {
    copy: &'a TreeCopy<'a>,
    /// The device and inode of the target directory.
    own: (u64, u64),
    /// Whether the bytes of files are copied instead of shared.
    copies: AtomicBool,
    skipped: Gather<Skipped>,
    failure: Mutex<Option<CopyFailure>>,
}

/// Directories that one worker has found.
#[derive(Default)]
struct WorkerListing {
    found: Vec<SourceDirectory>,
    below: Vec<Vec<u8>>,
}

impl CopyWalk<'_> {
    /// Creates all directories, level by level from the top, and collects the files.
    fn make_directories(&self, roots: &[Vec<u8>]) -> Result<Vec<SourceDirectory>> {
        let (mut found, mut level) = (Vec::new(), Vec::new());
        for root in roots {
            let (parent, name) = split(root);
            self.make_parents(parent)?;
            let metadata = self.copy.source.open_beneath(parent);
            match metadata.and_then(|parent| parent.metadata(name)) {
                Ok(metadata) if metadata.is_directory() => level.push(root.clone()),
                Ok(_) => found.push(SourceDirectory {
                    path: parent.to_vec(),
                    files: vec![name.to_vec()],
                    made_as: None,
                }),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(failure(root, error)),
            }
        }
        while !level.is_empty() {
            let gathered = Mutex::new(WorkerListing::default());
            let lock = || gathered.lock().unwrap_or_else(PoisonError::into_inner);
            pool::run(
                self.copy.workers,
                level.len(),
                WorkerListing::default,
                |own, range| {
                    let mut paths = level[range].iter();
                    self.note(paths.try_for_each(|path| self.visit(path, own)))
                },
                |own| {
                    let mut all = lock();
                    all.found.extend(own.found);
                    all.below.extend(own.below);
                },
            );
            self.failed()?;
            let gathered = gathered.into_inner();
            let gathered = gathered.unwrap_or_else(PoisonError::into_inner);
            found.extend(gathered.found);
            level = gathered.below;
        }
        Ok(found)
    }

    /// Creates the parent directories of a root.
    fn make_parents(&self, path: &[u8]) -> Result<()> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = ends.map(|(at, _)| at).chain([path.len()]);
        for end in ends.filter(|end| *end > 0) {
            let (parent, name) = split(&path[..end]);
            let parent = match self.copy.target.open_beneath(parent) {
                Ok(parent) => parent,
                // A file is in the way. The creation of the root reports it.
                Err(error) if is_missing(&error) => return Ok(()),
                Err(error) => return Err(failure(path, error)),
            };
            match parent.make_directory(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failure(path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates the directory `path` in the target and lists its entries in the source.
    fn visit(&self, path: &[u8], level: &mut WorkerListing) -> Result<()> {
        let failed = |error| failure(path, error);
        self.check(path)?;
        let from = match self.copy.source.open_readable_beneath(path) {
            Ok(from) => from,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let metadata = from.own_metadata().map_err(failed)?;
        if (metadata.device, metadata.inode) == self.own {
            return Ok(());
        }
        let mut listing = DirectoryListing::new();
        from.read_once(&mut listing).map_err(failed)?;
        let is_pointer = |(name, kind): (&[u8], EntryKind)| {
            name == b".git" && kind_of(&from, name, kind) != EntryKind::Directory
        };
        if listing.iter().any(is_pointer) {
            self.skip(path, SkipReason::Worktree);
            return Ok(());
        }
        let is_new = match self.make(path).map_err(failed)? {
            Some(is_new) => is_new,
            None => {
                self.skip(path, SkipReason::InTheWay);
                return Ok(());
            }
        };
        let mut files = Vec::new();
        for (name, kind) in listing.iter() {
            match kind_of(&from, name, kind) {
                EntryKind::Directory => level.below.push(join(path, name)),
                EntryKind::Other => self.skip(&join(path, name), SkipReason::Special),
                _ => files.push(name.to_vec()),
            }
        }
        level.found.push(SourceDirectory {
            path: path.to_vec(),
            files,
            made_as: is_new.then_some(metadata),
        });
        Ok(())
    }

    /// Creates the directory in the target. Returns whether the directory is new, or `None` if a
    /// file is in the way.
    fn make(&self, path: &[u8]) -> io::Result<Option<bool>> {
        if (self.copy.is_forbidden)(path, true) {
            return Ok(None);
        }
        let (parent, name) = split(path);
        let parent = match self.copy.target.open_beneath(parent) {
            Err(error) if is_missing(&error) => return Ok(None),
            parent => parent?,
        };
        match parent.make_directory(name) {
            Ok(()) => Ok(Some(true)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_directory = parent.metadata(name)?.is_directory();
                Ok(is_directory.then_some(false))
            }
            Err(error) => Err(error),
        }
    }

    fn copy_files(&self, directories: &[SourceDirectory]) -> Result<()> {
        let with_their_directory = |(at, found): (usize, &SourceDirectory)| {
            let count = found.files.len();
            (0..count).map(move |file| (at, file)).collect::<Vec<_>>()
        };
        let each = directories.iter().enumerate();
        let items: Vec<(usize, usize)> = each.flat_map(with_their_directory).collect();
        let ends = ends_of_groups(&items, |one, other| one.0 == other.0);
        self.copy.meter.set_total(items.len() as u64);
        pool::run_groups(
            self.copy.workers,
            &ends,
            CopyWorker::default,
            |worker: &mut CopyWorker, range| {
                let count = range.len();
                let mut items = items[range].iter();
                let copied = items.try_for_each(|&(at, file)| {
                    let directory = &directories[at];
                    let name = directory.files[file].as_slice();
                    self.check(&directory.path)?;
                    worker
                        .enter(self.copy, at, directory)
                        .and_then(|()| self.copy_one(worker, &directory.path, name))
                        .map_err(|error| CopyFailure {
                            cannot_share: !self.copies.load(Relaxed) && is_incapable(&error),
                            ..failure(&join(&directory.path, name), error)
                        })
                });
                self.copy.meter.add(count as u64);
                self.note(copied)
            },
            |_| {},
        );
        self.failed()
    }

    fn copy_one(&self, worker: &mut CopyWorker, directory: &[u8], name: &[u8]) -> io::Result<()> {
        let (Some((from, to)), piece) = (&worker.opened, &mut worker.piece) else {
            return Ok(());
        };
        let skip = |reason| self.skip(&join(directory, name), reason);
        if (self.copy.is_forbidden)(&join(directory, name), false) {
            skip(SkipReason::InTheWay);
            return Ok(());
        }
        let copied = match from.open_file(name) {
            Ok(file) => {
                let metadata = file_metadata(&file)?;
                if !metadata.is_file() {
                    skip(SkipReason::Special);
                    return Ok(());
                }
                self.copy_file(&CopiedFile { file, metadata }, to, name, piece)
            }
            Err(error) => match from.metadata(name) {
                Ok(metadata) if metadata.is_symlink() => copy_link(from, to, name, &metadata),
                // `open` fails for a socket.
                Ok(metadata) if !metadata.is_file() => {
                    skip(SkipReason::Special);
                    return Ok(());
                }
                Err(gone) if is_missing(&gone) => return Ok(()),
                _ => Err(error),
            },
        };
        match copied {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                skip(SkipReason::InTheWay);
                Ok(())
            }
            copied => copied,
        }
    }

    /// Sets the permissions and the modification time of a created directory to those of the
    /// original.
    fn finish(&self, directory: &SourceDirectory) -> Result<()> {
        let Some(metadata) = &directory.made_as else {
            return Ok(());
        };
        let finish = || -> io::Result<()> {
            let made = self.copy.target.open_readable_beneath(&directory.path)?;
            let mode = metadata.mode & KEPT_MODE;
            if made.own_metadata()?.mode & KEPT_MODE != mode {
                retry(|| rustix::fs::fchmod(&made, Mode::from_bits_truncate(mode as _)))?;
            }
            Ok(retry(|| rustix::fs::futimens(&made, &times(metadata)))?)
        };
        finish().map_err(|error| failure(&directory.path, error))
    }

    fn check(&self, path: &[u8]) -> Result<()> {
        match self.copy.interrupt.is_triggered() {
            true => Err(failure(path, io::ErrorKind::Interrupted.into())),
            false => Ok(()),
        }
    }

    fn skip(&self, path: &[u8], reason: SkipReason) {
        let path = path.to_vec();
        self.skipped.add(vec![Skipped { path, reason }]);
    }

    /// Records the first failure, which stops all workers.
    fn note(&self, done: Result<()>) -> ControlFlow<()> {
        let Err(failed) = done else {
            return ControlFlow::Continue(());
        };
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failed);
        ControlFlow::Break(())
    }

    fn failed(&self) -> Result<()> {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.take().map_or(Ok(()), Err)
    }
}

/// The state of one worker: its open directories and its buffer.
#[derive(Default)]
struct CopyWorker {
    at: Option<usize>,
    opened: Option<(Directory, Directory)>,
    piece: Vec<u8>,
}

impl CopyWorker {
    fn enter(
        &mut self,
        copy: &TreeCopy<'_>,
        at: usize,
        directory: &SourceDirectory,
    ) -> io::Result<()> {
        if self.at == Some(at) {
            return Ok(());
        }
        let open = |top: &Directory| match top.open_beneath(&directory.path) {
            Err(error) if is_missing(&error) => Ok(None),
            opened => opened.map(Some),
        };
        self.opened = open(copy.source)?.zip(open(copy.target)?);
        self.at = Some(at);
        Ok(())
    }
}

/// Returns the type of `name` in `directory`. Makes a system call if the listing has no type.
fn kind_of(directory: &Directory, name: &[u8], listed: EntryKind) -> EntryKind {
    match listed {
        EntryKind::Unknown => directory
            .metadata(name)
            .map_or(EntryKind::Unknown, |metadata| metadata.kind()),
        kind => kind,
    }
}

fn failure(path: &[u8], error: io::Error) -> CopyFailure {
    CopyFailure {
        path: path.to_vec(),
        error,
        cannot_share: false,
    }
}

/// Splits a path into its directory and its last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory.is_empty() {
        true => name.to_vec(),
        false => [directory, b"/", name].concat(),
    }
}
