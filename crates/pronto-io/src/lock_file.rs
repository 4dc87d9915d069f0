//! Creates lock files (`NAME.lock`), with a bounded wait for the process that holds the lock.
//!
//! A waiter retries after pauses that grow and have a random part, so that many waiters do not
//! retry at the same moments. A lock file that is already old when it is first seen is probably
//! stale: its process has died. The wait for such a lock file is short.
//!
//! On file systems with unnamed files (`O_TMPFILE`) a lock file is *marked*: it has the sticky bit,
//! and its holder has an advisory lock (`flock`) on it for as long as the file has its name. The
//! kernel releases the advisory lock when the holder dies. So a marked file without an advisory
//! lock has no holder, and a waiter takes it over. Lock files of Git are never marked.

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
use crate::lock_wait::ReportedWait;
use crate::sync::SyncMethod;

mod holder;

pub use holder::recorded_process;

/// The mode bit that marks a lock file: the sticky bit, which has no meaning on regular files.
const MARK: u32 = 0o1000;

/// The timeout for a lock for which Git has no setting: longer than another process takes to write
/// an index or a configuration file, and short enough for a user at a terminal.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The total timeout for a lock that is held by different processes in turn. [`PATIENCE`] is the
/// timeout for each holder.
const PATIENCE_WITH_MANY: Duration = Duration::from_secs(120);

/// The first pause and the longest pause between two attempts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The age from which on a lock file counts as stale, and the timeout for a stale lock file.
const OLD: Duration = Duration::from_secs(60);
const PATIENCE_WITH_OLD: Duration = Duration::from_millis(500);

/// The kind of a lock error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process holds the lock, or has left a stale lock file.
    Held,
    /// The directory of the target does not exist.
    NoDirectory,
    /// The lock file cannot be created or written.
    Io,
}

/// The error of a lock.
pub type Error = crate::error::Error<ErrorKind>;

/// The maximum number of symbolic links that [`follow`] follows.
const LONGEST_CHAIN: usize = 5;

/// Follows the symbolic links at `path` and returns their target, which need not exist. Git locks
/// and replaces the target of a symbolic link, and keeps the link.
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

/// The exclusive right to replace one file, the target. Dropping the lock file, or the end of the
/// process by a signal, releases the lock and leaves the target unchanged.
#[derive(Debug)]
pub struct LockFile {
    target: PathBuf,
    path: PathBuf,
    sync: SyncMethod,
    is_written: bool,
    // The fields are dropped in this order. The file with the process id must be removed before the
    // lock is free, and a marked file must have an open descriptor until it is removed, else
    // another process takes it over.
    process: Option<Guard>,
    guard: Guard,
    created: Option<HeldLockFile>,
}

impl LockFile {
    /// Locks `target`: creates `target.lock`, which must not exist, and waits up to `patience`
    /// until another holder removes its lock file. A marked lock file of a dead process is taken
    /// over.
    ///
    /// Costs one system call for a free lock, and three for a marked one.
    ///
    /// # Errors
    /// - Fails with [`ErrorKind::Held`] if another process holds the lock until the timeout. The
    ///   message is Git's and names the recorded process of the holder.
    /// - Fails with [`ErrorKind::NoDirectory`] if the directory of `target` does not exist.
    /// - Fails with [`ErrorKind::Io`] if the lock file cannot be created. The source is the error
    ///   of the system.
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

    /// Records this process as the lock holder in `NAME~pid.lock` (`core.lockfilePid`). Costs four
    /// system calls.
    pub fn record_process(&mut self) {
        self.process = holder::record(&self.target);
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the path of the lock file, `target.lock`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the method with which the content of [`write`](Self::write) is flushed to disk
    /// (`core.fsyncMethod`).
    pub fn set_sync_method(&mut self, sync: SyncMethod) {
        self.sync = sync;
    }

    /// Returns the open lock file for partial writes, or `None` after [`close`](Self::close).
    pub fn file(&self) -> Option<&File> {
        let created = self.created.as_ref().filter(|_| !self.is_written);
        created.map(|created| &created.file)
    }

    /// Appends `bytes` to the lock file and flushes the file. Does nothing after
    /// [`close`](Self::close).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the bytes cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(mut file) = self.file() else {
            return Ok(());
        };
        let written = file.write_all(bytes);
        let written = written.and_then(|()| self.sync.apply(file));
        written.context(ErrorKind::Io, "unable to write", &self.path)
    }

    /// Ends the writing and keeps the lock. An unmarked file is closed, so that a process can hold
    /// many locks.
    pub fn close(&mut self) {
        self.is_written = true;
        self.created.take_if(|created| !created.is_marked);
    }

    /// Renames the lock file to `place`, which is the target or another path on the same file
    /// system. Releases the lock, even if the rename fails.
    ///
    /// The mark is removed after the rename. A process that is killed between these two steps
    /// leaves no lock that blocks other processes, but only the sticky bit at `place`, which has no
    /// meaning there.
    ///
    /// # Errors
    /// Fails with the errors of the system.
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

/// A lock file that this process has created or taken over.
#[derive(Debug)]
struct HeldLockFile {
    file: File,
    is_marked: bool,
    is_taken_over: bool,
}

impl HeldLockFile {
    /// Removes the mark, so that the file can be closed or renamed. Costs two system calls if there
    /// is a mark.
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

/// Whether lock files are marked. A marked lock file keeps its descriptor open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Mark the lock file if the file system supports unnamed files.
    Marked,
    /// Never mark the lock file: for a process that holds many locks.
    Plain,
}

/// Creates the lock file `path`, or takes it over. Returns `AlreadyExists` if the lock file still
/// exists at the timeout. Any other error of the system is returned at once.
fn create(path: &Path, marking: Marking, patience: Duration) -> io::Result<HeldLockFile> {
    let mut wait: Option<LockWait> = None;
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
                let wait = wait.get_or_insert_with(|| LockWait::begin(path, patience));
                if !wait.pause(path) {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

/// Returns whether the lock file at `path` exists and does not belong to a dead process. For
/// callers that skip work while the lock is held. The answer may be outdated at once.
///
/// Costs one system call if there is no lock file, four for a marked one.
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
    // A shared lock, so that several concurrent callers do not take each other for the holder.
    !is_marked || rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

fn create_plain(path: &Path) -> io::Result<HeldLockFile> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(HeldLockFile {
        file,
        is_marked: false,
        is_taken_over: false,
    })
}

/// Creates an unnamed file, locks it, and links it to its name. Falls back to an unmarked file.
fn create_marked(path: &Path) -> io::Result<HeldLockFile> {
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
        Ok(()) => Ok(HeldLockFile {
            file,
            is_marked: true,
            is_taken_over: false,
        }),
        Err(Errno::EXIST) => Err(Io::AlreadyExists.into()),
        Err(_) => create_plain(path),
    }
}

/// Takes over the marked lock file at `path` if its holder is dead.
fn take_over(path: &Path) -> Option<HeldLockFile> {
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
    // The holder may have removed or renamed the file before this process got the advisory lock.
    let found = file.metadata().ok()?;
    let named = path.symlink_metadata().ok()?;
    let is_same = (found.dev(), found.ino()) == (named.dev(), named.ino());
    if !is_same || found.mode() & MARK == 0 {
        return None;
    }
    file.set_len(0).ok()?;
    Some(HeldLockFile {
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

/// A wait for a lock, with pauses that grow until the deadline.
struct LockWait {
    deadline: Option<Instant>,
    /// The deadline for a lock that is held by different processes in turn, and the lock file that
    /// was last seen.
    latest: Instant,
    seen: Option<LockFileIdentity>,
    pause: Duration,
    random: RandomState,
    report: ReportedWait,
}

/// The identity of a lock file, which distinguishes successive files with the same name.
#[derive(PartialEq, Eq)]
struct LockFileIdentity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl LockFileIdentity {
    fn of(path: &Path) -> Option<LockFileIdentity> {
        let metadata = path.symlink_metadata().ok()?;
        Some(LockFileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

impl LockWait {
    fn begin(path: &Path, patience: Duration) -> LockWait {
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
        LockWait {
            deadline: now.checked_add(patience),
            latest: now + latest,
            seen: LockFileIdentity::of(path),
            pause: SHORTEST_PAUSE,
            random: RandomState::new(),
            report: ReportedWait::default(),
        }
    }

    /// Sleeps for a while. Returns `false` after the deadline.
    fn pause(&mut self, path: &Path) -> bool {
        let now = Instant::now();
        let is_over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if is_over(self.deadline) {
            // The lock file has changed: other processes are using the lock, so it is not stale.
            let found = LockFileIdentity::of(path);
            if self.latest <= now || found == self.seen {
                return false;
            }
            self.seen = found;
            self.deadline = now.checked_add(PATIENCE).map(|next| next.min(self.latest));
        }
        let left = self.deadline.map_or(LONGEST_PAUSE, |deadline| {
            deadline.saturating_duration_since(now)
        });
        self.report.look(path);
        // Between half and one and a half times the pause.
        let share = self.random.hash_one(now) % 1024;
        let pause = self.pause.mul_f64(0.5 + share as f64 / 1024.0);
        std::thread::sleep(pause.min(left));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests;
