//! State that the workers of a checkout share: the open directories into which files are written, which
//! are created if they are missing, and the in-place writer.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::{Directory, Overwriter};
use rustix::io::Errno;

use super::split;

/// The state of the directories of one checkout, shared by all workers.
pub(super) struct SharedDirectories<'a> {
    top: &'a Directory,
    /// The directories that are known to exist, and whether this checkout has created them.
    known: Mutex<HashMap<BString, bool>>,
    /// Whether the worktree was empty at the start, so that unknown paths do not exist. Otherwise
    /// obstructions of a directory may be removed.
    fresh: bool,
    /// The writer that overwrites files in place, if that is permitted.
    pub(super) in_place: Option<Overwriter>,
    /// The lock that the worker with a large content in memory holds.
    large: Mutex<()>,
}

impl<'a> SharedDirectories<'a> {
    pub(super) fn new(top: &'a Directory, fresh: bool, in_place: Option<Overwriter>) -> Self {
        SharedDirectories {
            top,
            known: Mutex::default(),
            fresh,
            in_place,
            large: Mutex::new(()),
        }
    }

    /// Waits until no worker has a large content in memory, and excludes other workers until the guard
    /// is dropped.
    pub(super) fn one_large_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether `path` may exist. An unknown path does not exist if its nearest known parent was
    /// created by this checkout: a lookup would cost a system call for each directory of a new tree.
    fn may_be_there(&self, path: &BStr) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(path) {
            return true;
        }
        let mut above = path;
        while !above.is_empty() {
            above = split(above).0;
            if let Some(made) = known.get(above) {
                return !made;
            }
        }
        !self.fresh
    }

    fn learn(&self, path: &BStr, made: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(path.to_owned()).or_default() |= made;
    }
}

/// The number of directories that a worker keeps open.
const KEPT: usize = 12;

/// The directories that one worker has open, the most recently used last.
pub(super) struct OpenDirectories<'a> {
    shared: &'a SharedDirectories<'a>,
    kept: Vec<(BString, Directory)>,
}

impl<'a> OpenDirectories<'a> {
    pub(super) fn new(shared: &'a SharedDirectories<'a>) -> Self {
        OpenDirectories {
            shared,
            kept: Vec::with_capacity(KEPT),
        }
    }

    /// Opens the directory `path`, and creates it if it is missing.
    pub(super) fn open(&mut self, path: &BStr) -> io::Result<&Directory> {
        let mut there = path;
        while !self.find(there)? {
            there = split(there).0;
        }
        while there.len() < path.len() {
            let name_start = there.len() + usize::from(!there.is_empty());
            let rest = &path[name_start..];
            let name = &rest[..rest.find_byte(b'/').unwrap_or(rest.len())];
            let (directory, made) = self.shared.make(self.found(there), name.as_bstr())?;
            there = path[..name_start + name.len()].as_bstr();
            self.shared.learn(there, made);
            self.keep(there, directory);
        }
        Ok(self.found(path))
    }

    /// Returns the directory `path`, which was just opened or created.
    fn found(&self, path: &BStr) -> &Directory {
        let last = self.kept.last().filter(|_| !path.is_empty());
        last.map_or(self.shared.top, |(_, directory)| directory)
    }

    fn keep(&mut self, path: &BStr, directory: Directory) {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push((path.to_owned(), directory));
    }

    /// Returns whether the directory `path` exists. An existing directory, except the top, becomes the
    /// last of the kept directories.
    fn find(&mut self, path: &BStr) -> io::Result<bool> {
        if path.is_empty() {
            return Ok(true);
        }
        if let Some(at) = self.kept.iter().rposition(|(kept, _)| kept == path) {
            // The last directory is used next.
            if at + 1 != self.kept.len() {
                let entry = self.kept.remove(at);
                self.kept.push(entry);
            }
            return Ok(true);
        }
        if !self.shared.may_be_there(path) {
            return Ok(false);
        }
        match self.shared.top.open_beneath(path) {
            Ok(directory) => {
                self.keep(path, directory);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if !self.shared.fresh && is_obstructed(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl SharedDirectories<'_> {
    /// Creates the directory. Returns it, and whether it did not exist before.
    fn make(&self, parent: &Directory, name: &BStr) -> io::Result<(Directory, bool)> {
        for _ in 0..4 {
            let made = match parent.make_directory(name) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) => return Err(error),
            };
            match parent.open_beneath(name) {
                Err(error) if !self.fresh && is_obstructed(&error) => {
                    // Another worker may have created the directory in the meantime.
                    let removed = parent.remove_file(name);
                    let is_there = || parent.metadata(name).is_ok_and(|it| it.is_directory());
                    match removed {
                        Err(error) if error.kind() != io::ErrorKind::NotFound && !is_there() => {
                            return Err(error);
                        }
                        _ => {}
                    }
                }
                // Another process has removed the directory in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => return done.map(|directory| (directory, made)),
            }
        }
        Err(Errno::BUSY.into())
    }
}

/// Returns whether a directory cannot be opened because its path, or a part of it, is not a directory.
pub(super) fn is_obstructed(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOTDIR | Errno::LOOP)
    )
}
