//! Watches a directory tree with `inotify`: one watch for each directory.
//!
//! Watching a directory takes five system calls (open, watch, two for the listing, close). An event
//! needs none, unless it concerns a directory.
//!
//! Events are in order, but a directory may have moved again by the time its event is read. So
//! every event only means that a name must be examined again: the watches below the name are
//! removed, and the current directories at the name are watched and reported.

use super::{Doubt, Drained, WatchState, add_directory, as_directory, is_git, join};
use crate::Journal;
use bstr::BString;
use pronto_io::dir::Directory;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The watched events. Writes through a memory map are reported when the map and the file are
/// closed; other writes are reported at once.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The events after which a name refers to another file, or to none.
const OTHER: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// The size of the buffer for events.
const CHUNK_BYTES: usize = 64 * 1024;

/// The purpose of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WatchPurpose {
    /// Watches a directory of the worktree.
    Directory(BString),
    /// Watches the directory for cookies.
    Cookies,
}

/// An inotify instance with a watch for each directory.
#[derive(Debug)]
pub(super) struct Inotify {
    fd: OwnedFd,
    places: HashMap<i32, WatchPurpose>,
    watches: BTreeMap<BString, i32>,
}

struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Vec<u8>,
}

impl Inotify {
    /// # Errors
    /// Fails if the kernel provides no inotify instance.
    pub(super) fn new() -> io::Result<Inotify> {
        Ok(Inotify {
            fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            places: HashMap::new(),
            watches: BTreeMap::new(),
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Watches all directories below the top. Costs five system calls and some hundred bytes for
    /// each directory, and about a kilobyte in the kernel.
    pub(super) fn start(&mut self, common: &mut WatchState) -> io::Result<()> {
        self.watches.clear();
        let before = std::mem::take(&mut self.places);
        // A second watch of a watched directory has the same number.
        let cookies = match inotify::add_watch(&self.fd, &common.cookies, WANTED) {
            Ok(cookies) => cookies,
            Err(error) => {
                common.has_ended |= error == Errno::NOENT;
                return Err(error.into());
            }
        };
        self.places.insert(cookies, WatchPurpose::Cookies);
        self.add_tree(BString::default(), common, None);
        for (watch, _) in before {
            if !self.places.contains_key(&watch) {
                // The kernel removes the watch of a removed directory.
                let _ = inotify::remove_watch(&self.fd, watch);
            }
        }
        match self.watches.is_empty() {
            true => Err(io::Error::other(
                "cannot watch the top directory of the worktree",
            )),
            false => Ok(()),
        }
    }

    /// Processes all pending events. Returns whether some were lost.
    pub(super) fn drain(
        &mut self,
        common: &mut WatchState,
        journal: &mut Journal,
    ) -> io::Result<Drained> {
        loop {
            let events = self.read()?;
            if events.is_empty() {
                return Ok(Drained::All);
            }
            let lost = ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT;
            if events.iter().any(|event| event.flags.intersects(lost)) {
                return Ok(Drained::Lost);
            }
            for event in events {
                self.note(&event, common, journal);
            }
        }
    }

    fn read(&self) -> io::Result<Vec<Event>> {
        let mut space = vec![MaybeUninit::uninit(); CHUNK_BYTES];
        let mut reader = inotify::Reader::new(&self.fd, &mut space);
        let mut events = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => events.push(Event {
                    watch: event.wd(),
                    flags: event.events(),
                    name: event
                        .file_name()
                        .map(|name| name.to_bytes().to_vec())
                        .unwrap_or_default(),
                }),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(events),
                Err(error) => return Err(error.into()),
            }
            if reader.is_buffer_empty() {
                return Ok(events);
            }
        }
    }

    fn note(&mut self, event: &Event, common: &mut WatchState, journal: &mut Journal) {
        let Some(place) = self.places.get(&event.watch) else {
            return;
        };
        let directory = match place {
            WatchPurpose::Cookies => {
                common.has_ended |= event.flags.contains(ReadFlags::IGNORED);
                if event.flags.contains(ReadFlags::CREATE) {
                    common.seen_cookies.push(event.name.clone());
                }
                return;
            }
            WatchPurpose::Directory(path) => path.clone(),
        };
        if event.flags.contains(ReadFlags::IGNORED) {
            self.places.remove(&event.watch);
            if self.watches.get(&directory) == Some(&event.watch) {
                self.watches.remove(&directory);
            }
            common.has_ended |= directory.is_empty();
            return;
        }
        if event.name.is_empty() {
            // For any other directory, the event of its parent is sufficient.
            let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            common.has_ended |= directory.is_empty() && event.flags.intersects(gone);
            if directory.is_empty() && event.flags.contains(ReadFlags::ATTRIB) {
                journal.restart();
            }
            return;
        }
        self.note_name(&directory, event, common, journal);
    }

    fn note_name(
        &mut self,
        directory: &BString,
        event: &Event,
        common: &mut WatchState,
        journal: &mut Journal,
    ) {
        let path = join(directory, &event.name);
        if path == ".git" {
            return;
        }
        if is_git(directory) {
            journal.add(directory.clone());
            return;
        }
        let is_directory = event.flags.contains(ReadFlags::ISDIR);
        if is_directory {
            add_directory(&path, journal);
        } else {
            journal.add(path.clone());
        }
        let is_watched = self.watches.contains_key(&path);
        let is_other = event.flags.intersects(OTHER) && (is_directory || is_watched);
        if is_other || (is_directory && !is_watched) {
            // The directory that was watched here was moved, and another one may already have its
            // path. If two directories are exchanged, both watches are removed before both are
            // added.
            self.remove_tree(&path);
            self.add_tree(path, common, Some(journal));
        }
    }

    /// Watches `path` and all directories below it, and records their entries as changed.
    fn add_tree(&mut self, path: BString, common: &mut WatchState, journal: Option<&mut Journal>) {
        common.walk(path, journal, |common, path, directory| {
            // In a nested repository, only the entries of its `.git` itself are relevant.
            Ok(self.add(path, directory, common)? && !is_git(path))
        });
    }

    /// Watches one directory. Returns `false` if its subdirectories need not be watched.
    fn add(
        &mut self,
        path: &BString,
        directory: &Directory,
        common: &mut WatchState,
    ) -> io::Result<bool> {
        let here = directory.open_path().join(".");
        let watch = inotify::add_watch(&self.fd, here, WANTED)?;
        match self.places.get(&watch) {
            Some(WatchPurpose::Directory(other)) if other != path => {
                let other = other.clone();
                if common.is_same(&other, directory) {
                    common.doubt(Doubt::TwoPlaces(path.clone()));
                }
                self.watches.remove(&other);
            }
            Some(WatchPurpose::Cookies) => {
                common.doubt(Doubt::TwoPlaces(path.clone()));
                return Ok(false);
            }
            _ => {}
        }
        self.places
            .insert(watch, WatchPurpose::Directory(path.clone()));
        self.watches.insert(path.clone(), watch);
        Ok(true)
    }

    /// Removes the watches of `path` and of all directories below it.
    fn remove_tree(&mut self, path: &BString) {
        let prefix = as_directory(path);
        let below = self.watches.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let mut gone: Vec<BString> = below.map(|(path, _)| path.clone()).collect();
        gone.push(path.clone());
        for path in gone {
            if let Some(watch) = self.watches.remove(&path) {
                self.places.remove(&watch);
                // The kernel removes the watch of a removed directory.
                let _ = inotify::remove_watch(&self.fd, watch);
            }
        }
    }
}

#[cfg(test)]
mod tests;
