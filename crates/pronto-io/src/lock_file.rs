//! Creating the file that shuts other processes out (`NAME.lock`), with a bounded wait for the
//! process that holds it.
//!
//! A waiter looks again after pauses that grow, each of a random length, so that many waiters do
//! not look at the same moments. A lock file that is old when it is first seen was probably left
//! by a process that died: the wait for it is short.
//!
//! Where the file system can make nameless files, a lock file is *marked*: it has the sticky bit,
//! and its holder has an advisory lock (`flock`) on it from before it gets its name until after it
//! loses that name. The kernel gives the advisory lock back when the holder dies, so that a marked
//! file without one was left behind for certain, and a waiter takes it over. Git's lock files are
//! never marked.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// The bit that marks a lock file: it means nothing on regular files.
const MARK: u32 = 0o1000;

/// How long to wait for a lock where Git has no setting for it: longer than another process takes
/// to write an index or a configuration file, short enough for a user who waits at a terminal.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The first pause, and the longest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The age from which on a lock file counts as left behind, and the wait for such a one.
const OLD: Duration = Duration::from_secs(60);
const PATIENCE_WITH_OLD: Duration = Duration::from_millis(500);

/// A lock file that this process holds.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    is_marked: bool,
}

impl LockFile {
    /// The open file. A marked one must stay open for as long as it has its name.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the file tells others that its holder lives, which ends when it is closed.
    pub fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Takes the mark away, so that the file can be closed or get its final name. Costs two system
    /// calls if there is a mark.
    ///
    /// # Errors
    /// The system refuses.
    pub fn unmark(&mut self) -> io::Result<()> {
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

/// Creates `path`, which must not exist, and waits up to `patience` for it to disappear. A marked
/// one whose holder is dead is taken over.
///
/// Costs one system call where nobody holds the lock, three for a marked one.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when the file is still there in the end; any other error of the
/// system at once.
pub fn create(path: &Path, marking: Marking, patience: Duration) -> io::Result<LockFile> {
    let mut wait: Option<Wait> = None;
    loop {
        let created = match marking {
            Marking::Marked => create_marked(path),
            Marking::Plain => create_plain(path),
        };
        match created {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if let Some(file) = take_over(path) {
                    return Ok(file);
                }
                let wait = wait.get_or_insert_with(|| Wait::begin(path, patience));
                if !wait.pause() {
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

fn create_plain(path: &Path) -> io::Result<LockFile> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(LockFile {
        file,
        is_marked: false,
    })
}

/// Makes a nameless file, locks it, and gives it its name. Falls back to a plain one.
fn create_marked(path: &Path) -> io::Result<LockFile> {
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
        Ok(()) => Ok(LockFile {
            file,
            is_marked: true,
        }),
        Err(Errno::EXIST) => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => create_plain(path),
    }
}

/// Becomes the holder of the marked lock file at `path` if its holder is dead.
fn take_over(path: &Path) -> Option<LockFile> {
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
    // The holder may have given it back, or used it, before its advisory lock was free. The mark is
    // looked at again, for a holder that goes on without the advisory lock takes it away first.
    let found = file.metadata().ok()?;
    let named = path.symlink_metadata().ok()?;
    let is_same = (found.dev(), found.ino()) == (named.dev(), named.ino());
    if !is_same || found.mode() & MARK == 0 {
        return None;
    }
    file.set_len(0).ok()?;
    Some(LockFile {
        file,
        is_marked: true,
    })
}

/// A wait for a lock: pauses that grow until the time is over.
struct Wait {
    deadline: Option<Instant>,
    pause: Duration,
    random: RandomState,
}

impl Wait {
    fn begin(path: &Path, patience: Duration) -> Wait {
        let age = path
            .symlink_metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|modified| modified.elapsed().ok());
        let patience = match age {
            Some(age) if age >= OLD => patience.min(PATIENCE_WITH_OLD),
            _ => patience,
        };
        Wait {
            deadline: Instant::now().checked_add(patience),
            pause: SHORTEST_PAUSE,
            random: RandomState::new(),
        }
    }

    /// Sleeps for a while; `false` when the time is over.
    fn pause(&mut self) -> bool {
        let now = Instant::now();
        let left = self.deadline.map_or(LONGEST_PAUSE, |deadline| {
            deadline.saturating_duration_since(now)
        });
        if left.is_zero() {
            return false;
        }
        // Between a half and one and a half of the pause.
        let share = self.random.hash_one(now) % 1024;
        let pause = self.pause.mul_f64(0.5 + share as f64 / 1024.0);
        std::thread::sleep(pause.min(left));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn held(path: &Path) -> bool {
        let error = create(path, Marking::Marked, Duration::ZERO).map(|_| ());
        error.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    }

    #[test]
    fn a_lock_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file.lock");
        for marking in [Marking::Marked, Marking::Plain] {
            let first = create(&path, marking, Duration::ZERO).expect("nobody has it");
            assert!(held(&path));
            let waiter = std::thread::spawn({
                let path = path.clone();
                move || create(&path, marking, Duration::MAX)
            });
            std::fs::remove_file(&path).expect("it is there");
            drop(first);
            waiter.join().expect("no panic").expect("it was given back");
            assert!(path.exists());
            std::fs::remove_file(&path).expect("it is there");
        }
    }

    #[test]
    fn an_old_lock_is_not_waited_for_long() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file.lock");
        let lock = create(&path, Marking::Plain, Duration::ZERO).expect("nobody has it");
        let long_ago = std::time::SystemTime::now() - 2 * OLD;
        lock.file().set_modified(long_ago).expect("it is ours");
        let error = create(&path, Marking::Marked, Duration::MAX).expect_err("it is held");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn the_lock_of_a_dead_holder_is_taken_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file.lock");
        let lock = create(&path, Marking::Marked, Duration::ZERO).expect("nobody has it");
        if !lock.is_marked() {
            println!("SKIPPED: the file system of temporary files makes no nameless ones");
            assert!(std::env::var_os("CI").is_none(), "CI may not skip");
            return;
        }
        (&lock.file)
            .write_all(b"half of it")
            .expect("it can be written");
        assert!(held(&path));
        assert!(is_held(&path));
        // What the kernel does when the holder dies.
        drop(lock);
        assert!(!is_held(&path));
        let mut next = create(&path, Marking::Plain, Duration::ZERO).expect("its holder is dead");
        assert_eq!(next.file().metadata().expect("it is open").len(), 0);
        assert!(held(&path));
        next.unmark().expect("it can be");
        drop(next);
        assert!(held(&path), "without a mark nobody knows");
        assert!(is_held(&path));
        assert!(!is_held(&path.with_extension("other")));
    }
}
