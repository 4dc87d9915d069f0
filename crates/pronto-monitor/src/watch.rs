//! Changes below a directory, told by `inotify`: a watch for each directory.
//!
//! Everything is reached from the open top, so that neither a directory above it that is renamed
//! nor a link that is put in its place leads elsewhere. Per directory, when it is first watched:
//! five system calls (open, watch, two for the names, close). Per event: none, unless it is about
//! a directory.
//!
//! The queue is in the order in which things happened, but a directory may have moved on by the
//! time that an event about it is read. So no event is taken for more than "look at this name
//! again": what was watched there is let go, and what is there now is watched and named.

mod doubt;

use crate::Journal;
use bstr::{BString, ByteSlice};
use pronto_io::dir::{Directory, EntryKind, Listing};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

pub use doubt::Doubt;

/// Who writes through a memory map is heard of when the map and the file are closed, and not
/// before; all others with each write.
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

/// Events after which a name stands for something else, or for nothing.
const OTHER: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// Room for events that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// What a watch is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A directory of the worktree.
    Directory(BString),
    /// Where cookies are made.
    Cookies,
}

/// Watches the directories below one, except for `.git` there. `Send`; one thread at a time.
#[derive(Debug)]
pub struct Watcher {
    fd: OwnedFd,
    root: Directory,
    cookies: PathBuf,
    places: HashMap<i32, Place>,
    watches: BTreeMap<BString, i32>,
    seen_cookies: Vec<Vec<u8>>,
    doubt: Option<Doubt>,
    /// The worktree is gone, or the repository.
    has_ended: bool,
    listing: Listing,
}

struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Vec<u8>,
}

impl Watcher {
    /// Watches `root`, and for cookies the directory `cookies`. Five system calls and some
    /// hundred bytes for each directory; the system keeps about a kilobyte for each.
    ///
    /// # Errors
    /// The system has no `inotify` to give, or `root` or `cookies` cannot be watched at all. What
    /// cannot be watched below is a [`doubt`](Self::doubt).
    pub fn new(root: &Path, cookies: &Path, journal: &mut Journal) -> io::Result<Watcher> {
        let mut watcher = Watcher {
            fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            root: Directory::open(root)?,
            cookies: cookies.to_owned(),
            places: HashMap::new(),
            watches: BTreeMap::new(),
            seen_cookies: Vec::new(),
            doubt: None,
            has_ended: false,
            listing: Listing::new(),
        };
        watcher.start_anew(journal)?;
        Ok(watcher)
    }

    /// To wait for events. It stays the same one.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Why changes may go unseen, if they may: until it is [begun again](Self::start_anew).
    pub fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// Declares that changes may go unseen.
    pub fn set_doubt(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    /// The top.
    pub fn root(&self) -> &Directory {
        &self.root
    }

    /// Whether there is nothing to watch any more. One system call, because nobody tells of the
    /// end of a directory that is open.
    pub fn has_ended(&self) -> bool {
        let is_gone = || rustix::fs::fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0);
        self.has_ended || is_gone()
    }

    /// How many directories are watched.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// Whether no directory is watched.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Whether the cookie `name` was seen; it is forgotten then, with all others.
    pub fn take_cookie(&mut self, name: &[u8]) -> bool {
        let found = self.seen_cookies.iter().any(|seen| seen == name);
        if found {
            self.seen_cookies.clear();
        }
        found
    }

    /// Begins again: nothing that was known before counts. Costs as much as
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// As for [`new`](Self::new); then there is a [`doubt`](Self::doubt), too.
    pub fn start_anew(&mut self, journal: &mut Journal) -> io::Result<()> {
        // Whatever fails from here on, nobody is told that nothing has changed.
        journal.start_anew();
        self.doubt = None;
        let result = self.watch_all();
        journal.start_anew();
        if let Err(error) = &result {
            self.set_doubt(Doubt::Failed(BString::default(), error.to_string()));
        }
        result
    }

    fn watch_all(&mut self) -> io::Result<()> {
        self.seen_cookies.clear();
        self.watches.clear();
        let before = std::mem::take(&mut self.places);
        // A directory that is watched already keeps its watch.
        let cookies = match inotify::add_watch(&self.fd, &self.cookies, WANTED) {
            Ok(cookies) => cookies,
            Err(error) => {
                self.has_ended |= error == Errno::NOENT;
                return Err(error.into());
            }
        };
        self.places.insert(cookies, Place::Cookies);
        self.add_tree(BString::default(), None);
        for (watch, _) in before {
            if !self.places.contains_key(&watch) {
                // It may have gone with its directory.
                let _ = inotify::remove_watch(&self.fd, watch);
            }
        }
        match self.watches.is_empty() {
            true => Err(io::Error::other("the top cannot be watched")),
            false => Ok(()),
        }
    }

    /// Takes note of all that has happened, without waiting. Linear in the events; after some
    /// were lost it costs as much as [`new`](Self::new).
    ///
    /// # Errors
    /// Those of reading, and of beginning again after events were lost.
    pub fn drain(&mut self, journal: &mut Journal) -> io::Result<()> {
        loop {
            let events = self.read()?;
            if events.is_empty() {
                return Ok(());
            }
            let lost = ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT;
            if events.iter().any(|event| event.flags.intersects(lost)) {
                // All that was read happened before.
                self.start_anew(journal)?;
                continue;
            }
            for event in events {
                self.note(&event, journal);
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

    fn note(&mut self, event: &Event, journal: &mut Journal) {
        let Some(place) = self.places.get(&event.watch) else {
            return;
        };
        let directory = match place {
            Place::Cookies => {
                self.has_ended |= event.flags.contains(ReadFlags::IGNORED);
                if event.flags.contains(ReadFlags::CREATE) {
                    self.seen_cookies.push(event.name.clone());
                }
                return;
            }
            Place::Directory(path) => path.clone(),
        };
        if event.flags.contains(ReadFlags::IGNORED) {
            self.places.remove(&event.watch);
            if self.watches.get(&directory) == Some(&event.watch) {
                self.watches.remove(&directory);
            }
            self.has_ended |= directory.is_empty();
            return;
        }
        if event.name.is_empty() {
            // The parent of any other directory tells.
            let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            self.has_ended |= directory.is_empty() && event.flags.intersects(gone);
            if directory.is_empty() && event.flags.contains(ReadFlags::ATTRIB) {
                journal.start_anew();
            }
            return;
        }
        self.note_name(&directory, event, journal);
    }

    fn note_name(&mut self, directory: &BString, event: &Event, journal: &mut Journal) {
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
            // Whatever was watched there is somewhere else now, and another one may be there
            // already: two that change places are both taken away before both are there.
            self.remove_tree(&path);
            self.add_tree(path, Some(journal));
        }
    }

    /// Watches `path` and all below; what is there is noted as changed.
    fn add_tree(&mut self, path: BString, mut journal: Option<&mut Journal>) {
        let mut todo = vec![path];
        let mut listing = std::mem::take(&mut self.listing);
        while let Some(path) = todo.pop() {
            let opened = self.root.open_readable_beneath(&path);
            let added = opened.and_then(|directory| {
                // Of another repository only what makes it one counts.
                let lists = self.add(&path, &directory)? && !is_git(&path);
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

    /// Watches one directory; `false` if it need not be looked into.
    fn add(&mut self, path: &BString, directory: &Directory) -> io::Result<bool> {
        let here = format!("/proc/self/fd/{}/.", directory.as_fd().as_raw_fd());
        let watch = inotify::add_watch(&self.fd, here, WANTED)?;
        match self.places.get(&watch) {
            Some(Place::Directory(other)) if other != path => {
                let other = other.clone();
                if self.is_same(&other, directory) {
                    self.set_doubt(Doubt::TwoPlaces(path.clone()));
                }
                self.watches.remove(&other);
            }
            Some(Place::Cookies) => {
                self.set_doubt(Doubt::TwoPlaces(path.clone()));
                return Ok(false);
            }
            _ => {}
        }
        self.places.insert(watch, Place::Directory(path.clone()));
        self.watches.insert(path.clone(), watch);
        Ok(true)
    }

    /// Whether `path` leads to `directory`.
    fn is_same(&self, path: &BString, directory: &Directory) -> bool {
        let number = |directory: &Directory| {
            let stat = rustix::fs::fstat(directory).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        let other = self.root.open_beneath(path);
        other.is_ok_and(|other| number(&other).is_some_and(|it| Some(it) == number(directory)))
    }

    /// Stops to watch `path` and all below.
    fn remove_tree(&mut self, path: &BString) {
        let prefix = as_directory(path);
        let below = self.watches.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let mut gone: Vec<BString> = below.map(|(path, _)| path.clone()).collect();
        gone.push(path.clone());
        for path in gone {
            if let Some(watch) = self.watches.remove(&path) {
                self.places.remove(&watch);
                // It may have gone with its directory.
                let _ = inotify::remove_watch(&self.fd, watch);
            }
        }
    }
}

fn join(directory: &BString, name: &[u8]) -> BString {
    let mut path = directory.clone();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Notes that a directory is another one now. Git takes its name for a change of its parent alone:
/// a name within tells that what was known of the directory itself is gone.
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
