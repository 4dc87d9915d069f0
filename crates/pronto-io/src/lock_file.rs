//! Creates lock files (`NAME.lock`), with a bounded wait for the process that holds the lock.
//!
//! A waiter tries again after pauses that grow and have a random part, so that many waiters do not
//! try at the same moments. A lock file that is old when it is first seen was probably left by a
//! dead process: the wait for it is short.
//!
//! On file systems with nameless files a lock file is *marked*: it has the sticky bit, and its
//! holder has an advisory lock (`flock`) on it from before it gets its name until after it loses
//! that name. The kernel releases the advisory lock when the holder dies. So a marked file without
//! one has no owner, and a waiter takes it over. Git's lock files are never marked.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind as Io, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::cleanup::Guard;
use crate::error::IoContext;
use crate::sync::SyncMethod;

mod holder;

pub use holder::recorded_process;

/// The bit that marks a lock file: it means nothing on regular files.
const MARK: u32 = 0o1000;

/// The time to wait for a lock for which Git has no setting: longer than another process takes to
/// write an index or a configuration file, short enough for a user who waits at a terminal.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The time to wait in all for a lock that passes between holders. [`PATIENCE`] is the limit for
/// each holder.
const PATIENCE_WITH_MANY: Duration = Duration::from_secs(120);

/// The first pause, and the longest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The age from which on a lock file counts as left behind, and the wait for such a one.
const OLD: Duration = Duration::from_secs(60);
const PATIENCE_WITH_OLD: Duration = Duration::from_millis(500);

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process holds the lock, or has left its file behind.
    Held,
    /// The directory of the target is not there.
    NoDirectory,
    /// The system refuses.
    Io,
}

/// The error of a lock.
pub type Error = crate::error::Error<ErrorKind>;

/// The longest chain of symbolic links that [`follow`] follows.
const LONGEST_CHAIN: usize = 5;

/// Returns the file that `path` leads to, which need not exist: Git locks and replaces the target of a symbolic
/// link, and leaves the link.
pub fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        let Ok(target) = std::fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// The exclusive right to replace one file, the target. Dropping it gives the right back and leaves
/// the target as it was; so does the end of the process on a signal.
#[derive(Debug)]
pub struct LockFile {
    target: PathBuf,
    path: PathBuf,
    sync: SyncMethod,
    is_written: bool,
    // The fields are dropped in this order: no process may be named as the holder of a free lock,
    // and a marked file without an open descriptor would be taken over.
    process: Option<Guard>,
    guard: Guard,
    created: Option<Created>,
}

impl LockFile {
    /// Takes the lock on `target`: creates `target.lock`, which must not exist, and waits up to
    /// `patience` for it to disappear. A marked one whose holder is dead is taken over.
    ///
    /// Costs one system call for a free lock, and three for a marked one.
    ///
    /// # Errors
    /// [`ErrorKind::Held`] if it is held for longer, in Git's words and with the recorded process
    /// of its holder; [`ErrorKind::NoDirectory`] or [`ErrorKind::Io`], with the error of the system
    /// as its source, if the file cannot be created.
    pub fn acquire(
        target: impl Into<PathBuf>,
        marking: Marking,
        patience: Duration,
    ) -> Result<LockFile, Error> {
        let target = target.into();
        let mut path = target.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let created = match create(&path, marking, patience) {
            Ok(created) => created,
            Err(error) if error.kind() == Io::AlreadyExists => {
                return Err(holder::held(&target, &path));
            }
            Err(error) => {
                let absolute = std::path::absolute(&path).unwrap_or(path);
                let kind = match error.kind() {
                    Io::NotFound => ErrorKind::NoDirectory,
                    _ => ErrorKind::Io,
                };
                return Err(error).context(kind, "Unable to create", &absolute);
            }
        };
        let guard = Guard::new(&path);
        if created.is_taken_over {
            holder::remove_record(&target);
        }
        Ok(LockFile {
            target,
            path,
            sync: SyncMethod::No,
            is_written: false,
            process: None,
            guard,
            created: Some(created),
        })
    }

    /// Names this process as the holder in `NAME~pid.lock` (`core.lockfilePid`). Costs four system calls.
    pub fn record_process(&mut self) {
        self.process = holder::record(&self.target);
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The file that is written, `target.lock`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how files written by [`write`](Self::write) are flushed.
    pub fn wait_for(&mut self, sync: SyncMethod) {
        self.sync = sync;
    }

    /// The open file, for writing bit by bit; `None` once the writing has ended.
    pub fn file(&self) -> Option<&File> {
        let created = self.created.as_ref().filter(|_| !self.is_written);
        created.map(|created| &created.file)
    }

    /// Writes `bytes` at the end of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: they cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(mut file) = self.file() else {
            return Ok(());
        };
        let written = file.write_all(bytes);
        let written = written.and_then(|()| self.sync.apply(file));
        written.context(ErrorKind::Io, "unable to write", &self.path)
    }

    /// Ends the writing; the lock stays. A file that is not marked is closed, for a process that
    /// holds many locks.
    pub fn close(&mut self) {
        self.is_written = true;
        self.created.take_if(|created| !created.is_marked);
    }

    /// Moves what was written to `place`, which is the target or on the same file system. The lock is
    /// given back, even if it cannot be moved.
    ///
    /// The mark is taken away after the move: a process that is killed between the two leaves no lock
    /// that stops others, but a bit at `place` that means nothing there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn commit_to(mut self, place: &Path) -> io::Result<()> {
        drop(self.process.take());
        std::fs::rename(&self.path, place)?;
        self.guard.keep();
        match &mut self.created {
            Some(created) => created.unmark(),
            None => Ok(()),
        }
    }
}

/// The file of a lock that this process holds.
#[derive(Debug)]
struct Created {
    file: File,
    is_marked: bool,
    is_taken_over: bool,
}

impl Created {
    /// Takes the mark away, so that the file can be closed or get its final name. Costs two system
    /// calls if there is a mark.
    fn unmark(&mut self) -> io::Result<()> {
        if self.is_marked {
            let mode = self.file.metadata()?.mode();
            let mode = Permissions::from_mode(mode & 0o777);
            self.file.set_permissions(mode)?;
            self.is_marked = false;
        }
        Ok(())
    }
}

/// Whether a lock file is to be marked: each marked one keeps a descriptor open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Marked where the file system can do that.
    Marked,
    /// Never marked: for a process that holds many locks.
    Plain,
}

/// Creates the lock file `path`, or takes it over. Fails with "it exists" when it is still there in
/// the end, and with any other error of the system at once.
fn create(path: &Path, marking: Marking, patience: Duration) -> io::Result<Created> {
    let mut wait: Option<Wait> = None;
    loop {
        let created = match marking {
            Marking::Marked => create_marked(path),
            Marking::Plain => create_plain(path),
        };
        match created {
            Err(error) if error.kind() == Io::AlreadyExists => {
                if let Some(file) = take_over(path) {
                    return Ok(file);
                }
                let wait = wait.get_or_insert_with(|| Wait::begin(path, patience));
                if !wait.pause(path) {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

/// Whether the lock file at `path` is there and not known to be that of a dead holder. For those
/// who do not want the lock then; by the time they hear it may be free.
///
/// Costs one system call where there is none, four for a marked one.
pub fn is_held(path: &Path) -> bool {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let Ok(file) = file else {
        return path.symlink_metadata().is_ok();
    };
    let is_marked = file.metadata().is_ok_and(|found| found.mode() & MARK != 0);
    // A shared lock, so that several who ask do not take each other for the holder.
    !is_marked || rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

fn create_plain(path: &Path) -> io::Result<Created> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(Created {
        file,
        is_marked: false,
        is_taken_over: false,
    })
}

/// Makes a nameless file, locks it, and gives it its name. Falls back to a plain one.
fn create_marked(path: &Path) -> io::Result<Created> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(directory, flags, Mode::from_raw_mode(MARK | 0o666)) else {
        return create_plain(path);
    };
    let file = File::from(file);
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return create_plain(path);
    }
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(Created {
            file,
            is_marked: true,
            is_taken_over: false,
        }),
        Err(Errno::EXIST) => Err(Io::AlreadyExists.into()),
        Err(_) => create_plain(path),
    }
}

/// Becomes the holder of the marked lock file at `path` if its holder is dead.
fn take_over(path: &Path) -> Option<Created> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(i32::try_from(flags.bits()).ok()?)
        .open(path)
        .ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.mode() & MARK == 0 {
        return None;
    }
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // The holder may have given it back, or used it, before its advisory lock was free.
    let found = file.metadata().ok()?;
    let named = path.symlink_metadata().ok()?;
    let is_same = (found.dev(), found.ino()) == (named.dev(), named.ino());
    if !is_same || found.mode() & MARK == 0 {
        return None;
    }
    file.set_len(0).ok()?;
    Some(Created {
        file,
        is_marked: true,
        is_taken_over: true,
    })
}

/// Returns the time since the last change of the lock file at `path`.
fn age_of(path: &Path) -> Option<Duration> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    modified.elapsed().ok()
}

/// A wait for a lock: pauses that grow until the time is over.
struct Wait {
    deadline: Option<Instant>,
    /// The end of the wait for a lock that is given on, and the lock file that was seen last.
    latest: Instant,
    seen: Option<Identity>,
    pause: Duration,
    random: RandomState,
}

/// The identity of a lock file, which distinguishes files under the same name.
#[derive(PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        let metadata = path.symlink_metadata().ok()?;
        Some(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

impl Wait {
    fn begin(path: &Path, patience: Duration) -> Wait {
        let age = age_of(path);
        let is_shared = patience == PATIENCE;
        let patience = match age {
            Some(age) if age >= OLD => patience.min(PATIENCE_WITH_OLD),
            _ => patience,
        };
        let now = Instant::now();
        let latest = match is_shared {
            true => PATIENCE_WITH_MANY,
            false => Duration::ZERO,
        };
        Wait {
            deadline: now.checked_add(patience),
            latest: now + latest,
            seen: Identity::of(path),
            pause: SHORTEST_PAUSE,
            random: RandomState::new(),
        }
    }

    /// Sleeps for a while; `false` when the time is over.
    fn pause(&mut self, path: &Path) -> bool {
        let now = Instant::now();
        let is_over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if is_over(self.deadline) {
            // A lock that others get meanwhile is in use: it was not left behind.
            let found = Identity::of(path);
            if self.latest <= now || found == self.seen {
                return false;
            }
            self.seen = found;
            self.deadline = now.checked_add(PATIENCE).map(|next| next.min(self.latest));
        }
        let left = self.deadline.map_or(LONGEST_PAUSE, |deadline| {
            deadline.saturating_duration_since(now)
        });
        // Between a half and one and a half of the pause.
        let share = self.random.hash_one(now) % 1024;
        let pause = self.pause.mul_f64(0.5 + share as f64 / 1024.0);
        std::thread::sleep(pause.min(left));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests;
