//! Changes below a directory, told by `inotify`: a watch for each directory.

use crate::Journal;
use bstr::{BString, ByteSlice};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// Room for events that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Why changes may go unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The system gives no more watches.
    Limit,
    /// A directory is at two places, which a watch does not tell apart.
    TwoPlaces(BString),
    /// A directory cannot be watched.
    Failed(BString, String),
}

/// What a watch is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A directory of the worktree.
    Directory(BString),
    /// Where cookies are made.
    Cookies,
}

/// Watches the directories below one, except for `.git` there.
#[derive(Debug)]
pub struct Watcher {
    fd: OwnedFd,
    root: PathBuf,
    cookies: PathBuf,
    places: HashMap<i32, Place>,
    watches: BTreeMap<BString, i32>,
    seen_cookies: Vec<Vec<u8>>,
    doubt: Option<Doubt>,
    /// The worktree is gone, or the repository.
    has_ended: bool,
}

struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Vec<u8>,
}

impl Watcher {
    /// Watches `root`, and for cookies the directory `cookies`.
    ///
    /// # Errors
    /// The system has no `inotify` to give, or `root` cannot be watched.
    pub fn new(root: &Path, cookies: &Path, journal: &mut Journal) -> io::Result<Watcher> {
        let mut watcher = Watcher {
            fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            root: root.to_owned(),
            cookies: cookies.to_owned(),
            places: HashMap::new(),
            watches: BTreeMap::new(),
            seen_cookies: Vec::new(),
            doubt: None,
            has_ended: false,
        };
        watcher.watch_all(journal)?;
        Ok(watcher)
    }

    /// To wait for events.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Why changes may go unseen, if they may.
    pub fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// Whether there is nothing to watch any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// How many directories are watched.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// Whether no directory is watched.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Whether the cookie `name` was seen; it is forgotten then.
    pub fn take_cookie(&mut self, name: &[u8]) -> bool {
        let found = self.seen_cookies.iter().position(|seen| seen == name);
        found.map(|at| self.seen_cookies.swap_remove(at)).is_some()
    }

    /// Begins again: nothing that was known before counts.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn start_anew(&mut self, journal: &mut Journal) -> io::Result<()> {
        self.fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        self.places.clear();
        self.watches.clear();
        self.doubt = None;
        self.watch_all(journal)
    }

    fn watch_all(&mut self, journal: &mut Journal) -> io::Result<()> {
        let cookies = inotify::add_watch(&self.fd, &self.cookies, WANTED)?;
        self.places.insert(cookies, Place::Cookies);
        self.add_tree(BString::default(), None);
        journal.start_anew();
        if self.watches.is_empty() {
            self.has_ended = true;
        }
        Ok(())
    }

    /// Takes note of all that has happened, without waiting.
    ///
    /// # Errors
    /// Those of reading, and of beginning again after events were lost.
    pub fn drain(&mut self, journal: &mut Journal) -> io::Result<()> {
        loop {
            let events = self.read()?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                if event
                    .flags
                    .intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT)
                {
                    self.start_anew(journal)?;
                    break;
                }
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
        if !event.flags.contains(ReadFlags::ISDIR) {
            journal.add(path);
            return;
        }
        add_directory(&path, journal);
        let gone = ReadFlags::DELETE | ReadFlags::MOVED_FROM;
        if event.flags.intersects(gone) {
            self.remove_tree(&path);
        } else if event
            .flags
            .intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            || !self.watches.contains_key(&path)
        {
            // Whatever was watched there is somewhere else now.
            self.remove_tree(&path);
            self.add_tree(path, Some(journal));
        }
    }

    /// Watches `path` and all below; what is there is noted as changed.
    fn add_tree(&mut self, path: BString, mut journal: Option<&mut Journal>) {
        let mut todo = vec![path];
        while let Some(path) = todo.pop() {
            if !self.add(&path) {
                continue;
            }
            // Of another repository only what makes it one counts.
            let is_leaf = is_git(&path);
            let full = self.absolute(&path);
            let listed = std::fs::read_dir(full).into_iter().flatten();
            for entry in listed.filter_map(Result::ok) {
                let below = join(&path, entry.file_name().as_bytes());
                if below == ".git" || is_leaf {
                    continue;
                }
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
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
    }

    /// Watches one directory; `false` if it is not there, or cannot be read anyway.
    fn add(&mut self, path: &BString) -> bool {
        let full = self.absolute(path);
        let watch = match inotify::add_watch(&self.fd, &full, WANTED) {
            Ok(watch) => watch,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return false,
            Err(Errno::NOSPC) => {
                self.doubt.get_or_insert(Doubt::Limit);
                return false;
            }
            Err(error) => {
                let doubt = Doubt::Failed(path.clone(), error.to_string());
                self.doubt.get_or_insert(doubt);
                return false;
            }
        };
        match self.places.get(&watch) {
            Some(Place::Directory(other)) if other != path => {
                let other = other.clone();
                if self.is_same(&other, path) {
                    self.doubt.get_or_insert(Doubt::TwoPlaces(path.clone()));
                }
                self.watches.remove(&other);
            }
            Some(Place::Cookies) => {
                self.doubt.get_or_insert(Doubt::TwoPlaces(path.clone()));
                return false;
            }
            _ => {}
        }
        self.places.insert(watch, Place::Directory(path.clone()));
        self.watches.insert(path.clone(), watch);
        true
    }

    fn is_same(&self, one: &BString, two: &BString) -> bool {
        let number = |path| {
            let metadata = self.absolute(path).symlink_metadata().ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        let one = number(one);
        one.is_some() && one == number(two)
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

    fn absolute(&self, path: &BString) -> PathBuf {
        match path.is_empty() {
            true => self.root.clone(),
            false => self.root.join(OsStr::from_bytes(path)),
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
