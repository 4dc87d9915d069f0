//! Watches a directory tree for changes that the kernel reports.
//!
//! All paths are resolved from an open handle of the top directory. So renaming a parent directory,
//! or replacing one by a symbolic link, has no effect.
//!
//! - `fanotify`: one mark for each file system, if permitted.
//! - `inotify`: otherwise, one watch for each directory.

mod doubt;
pub mod events;
mod fanotify;
mod inotify;

use crate::Journal;
use bstr::{BString, ByteSlice};
use fanotify::Fanotify;
use inotify::Inotify;
use pronto_io::dir::{Directory, DirectoryListing, EntryKind};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

pub use doubt::Doubt;

/// The source of change events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceChoice {
    /// `fanotify` if it is permitted and supports all file systems of the worktree, otherwise
    /// `inotify`.
    #[default]
    Any,
    /// Only `inotify(7)`.
    Inotify,
    /// Only `fanotify(7)`, which needs privileges.
    Fanotify,
}

/// The directories to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchedPaths<'a> {
    /// The top directory: the worktree.
    pub root: &'a Path,
    /// The directory for cookies.
    pub cookies: &'a Path,
    /// The mount points below the top.
    pub mounts: &'a [PathBuf],
}

/// Watches all directories below a top directory, except its `.git`. `Send`; used by one thread at
/// a time.
#[derive(Debug)]
pub struct Watcher {
    common: WatchState,
    event_source: EventSource,
}

#[derive(Debug)]
enum EventSource {
    Inotify(Inotify),
    Fanotify(Fanotify),
}

/// The state that is independent of the source of events.
#[derive(Debug)]
struct WatchState {
    root: Directory,
    cookies: PathBuf,
    mounts: Vec<PathBuf>,
    seen_cookies: Vec<Vec<u8>>,
    doubt: Option<Doubt>,
    /// Whether the worktree or the repository was removed.
    has_ended: bool,
    listing: DirectoryListing,
}

/// The result of reading events.
enum Drained {
    All,
    /// Some events were lost.
    Lost,
}

impl Watcher {
    /// Starts to watch `places`. Costs some system calls with `fanotify`, and five for each
    /// directory with `inotify`.
    ///
    /// # Errors
    /// Fails if the system supports no source, or if the top or the directory for cookies cannot be
    /// watched. A directory below the top that cannot be watched is a [`doubt`](Self::doubt)
    /// instead.
    pub fn new(
        places: WatchedPaths<'_>,
        source: SourceChoice,
        journal: &mut Journal,
    ) -> io::Result<Watcher> {
        let with = |event_source: EventSource, journal: &mut Journal| {
            let mut watcher = Watcher {
                common: WatchState {
                    root: Directory::open(places.root)?,
                    cookies: places.cookies.to_owned(),
                    mounts: places.mounts.to_vec(),
                    seen_cookies: Vec::new(),
                    doubt: None,
                    has_ended: false,
                    listing: DirectoryListing::new(),
                },
                event_source,
            };
            watcher.restart(journal)?;
            Ok(watcher)
        };
        if source != SourceChoice::Inotify {
            let event_source = Fanotify::new().map(EventSource::Fanotify);
            let watcher = event_source.and_then(|event_source| with(event_source, journal));
            if watcher.is_ok() || source == SourceChoice::Fanotify {
                return watcher;
            }
        }
        with(EventSource::Inotify(Inotify::new()?), journal)
    }

    /// Returns the descriptor that becomes readable when there are events. The descriptor never
    /// changes.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.event_source {
            EventSource::Inotify(inotify) => inotify.descriptor(),
            EventSource::Fanotify(fanotify) => fanotify.descriptor(),
        }
    }

    /// Returns the reason for which changes may be missed, until the next
    /// [`restart`](Self::restart).
    pub fn doubt(&self) -> Option<&Doubt> {
        self.common.doubt.as_ref()
    }

    /// Sets the reason for which changes may be missed.
    pub fn set_doubt(&mut self, doubt: Doubt) {
        self.common.doubt(doubt);
    }

    /// Sets the mount points below the top, for the next [`restart`](Self::restart).
    pub fn set_mounts(&mut self, mounts: Vec<PathBuf>) {
        self.common.mounts = mounts;
    }

    /// Returns the handle of the top directory.
    pub fn root(&self) -> &Directory {
        &self.common.root
    }

    /// Returns whether the worktree or the repository was removed. Costs one or two system calls,
    /// because no event reports the removal of an open directory.
    pub fn has_ended(&self) -> bool {
        let source_ended = || match &self.event_source {
            EventSource::Inotify(_) => false,
            EventSource::Fanotify(fanotify) => fanotify.has_ended(),
        };
        self.common.has_ended || is_gone(&self.common.root) || source_ended()
    }

    /// Returns whether the cookie `name` was seen, and clears all seen cookies.
    pub fn take_cookie(&mut self, name: &[u8]) -> bool {
        let seen = &mut self.common.seen_cookies;
        let found = seen.iter().any(|seen| seen == name);
        if found {
            seen.clear();
        }
        found
    }

    /// Discards all state and starts to watch again. Costs as much as [`new`](Self::new).
    ///
    /// # Errors
    /// Fails with the errors of [`new`](Self::new). On an error there is also a
    /// [`doubt`](Self::doubt).
    pub fn restart(&mut self, journal: &mut Journal) -> io::Result<()> {
        // Reset the journal first: if a later step fails, no client must get the answer that
        // nothing has changed.
        journal.restart();
        let common = &mut self.common;
        common.doubt = None;
        common.seen_cookies.clear();
        let result = match &mut self.event_source {
            EventSource::Inotify(inotify) => inotify.start(common),
            EventSource::Fanotify(fanotify) => fanotify.start(common),
        };
        journal.restart();
        if let Err(error) = &result {
            common.doubt(Doubt::Failed(BString::default(), error.to_string()));
        }
        result
    }

    /// Processes all pending events without waiting. Costs linear time in the events, and after
    /// lost events as much as [`new`](Self::new).
    ///
    /// # Errors
    /// Fails with the errors of reading events, and of starting again after lost events.
    pub fn drain(&mut self, journal: &mut Journal) -> io::Result<()> {
        loop {
            let common = &mut self.common;
            let drained = match &mut self.event_source {
                EventSource::Inotify(inotify) => inotify.drain(common, journal)?,
                EventSource::Fanotify(fanotify) => fanotify.drain(common, journal)?,
            };
            match drained {
                Drained::All => return Ok(()),
                // All events that were read are older than the restart.
                Drained::Lost => self.restart(journal)?,
            }
        }
    }
}

impl WatchState {
    fn doubt(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    /// Traverses the directory `path` and all directories below it that `enter` accepts, and
    /// records their entries as changed.
    fn walk(
        &mut self,
        path: BString,
        mut journal: Option<&mut Journal>,
        mut enter: impl FnMut(&mut WatchState, &BString, &Directory) -> io::Result<bool>,
    ) {
        let mut todo = vec![path];
        let mut listing = std::mem::take(&mut self.listing);
        while let Some(path) = todo.pop() {
            let opened = self.root.open_readable_beneath(&path);
            let added = opened.and_then(|directory| {
                let lists = enter(self, &path, &directory)?;
                if lists {
                    directory.read_once(&mut listing)?;
                }
                Ok((directory, lists))
            });
            let directory = match added {
                Ok((directory, true)) => directory,
                Ok((_, false)) => continue,
                Err(error) => {
                    self.doubt_path(path, &error);
                    continue;
                }
            };
            for (name, kind) in listing.iter() {
                let below = join(&path, name);
                if below == ".git" {
                    continue;
                }
                let is_directory = match kind {
                    EntryKind::Unknown => directory
                        .metadata(name)
                        .is_ok_and(|metadata| metadata.is_directory()),
                    kind => kind == EntryKind::Directory,
                };
                if let Some(journal) = &mut journal {
                    match is_directory {
                        true => add_directory(&below, journal),
                        false => journal.add(below.clone()),
                    }
                }
                if is_directory {
                    todo.push(below);
                }
            }
        }
        self.listing = listing;
    }

    /// Returns whether `path` names the same directory as `directory`.
    fn is_same(&self, path: &BString, directory: &Directory) -> bool {
        let number = |directory: &Directory| {
            let stat = rustix::fs::fstat(directory).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        let other = self.root.open_beneath(path);
        other.is_ok_and(|other| number(&other).is_some_and(|it| Some(it) == number(directory)))
    }
}

/// Returns whether an open directory was removed.
fn is_gone(directory: &Directory) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|stat| stat.st_nlink == 0)
}

fn join(directory: &BString, name: &[u8]) -> BString {
    let mut path = directory.clone();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Records that a directory was replaced. For Git, the path of the directory is only a change in
/// its parent. A path inside of the directory also invalidates the cached state of the directory
/// itself.
fn add_directory(path: &BString, journal: &mut Journal) {
    let within = as_directory(path);
    journal.add(join(path, b"."));
    journal.add(within);
}

fn as_directory(path: &BString) -> BString {
    let mut path = path.clone();
    path.push(b'/');
    path
}

fn is_git(path: &BString) -> bool {
    path.ends_with_str("/.git")
}

#[cfg(test)]
mod tests;
