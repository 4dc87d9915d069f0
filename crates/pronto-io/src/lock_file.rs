//! Creating the file that shuts other processes out (`NAME.lock`), with a bounded wait for the
//! process that holds it.
//!
//! A waiter looks again after pauses that grow, each of a random length, so that many waiters do
//! not look at the same moments. A lock file that is old when it is first seen was probably left
//! by a process that died: the wait for it is short.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for a lock where Git has no setting for it: longer than another process takes
/// to write an index or a configuration file, short enough for a user who waits at a terminal.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The first pause, and the longest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The age from which on a lock file counts as left behind, and the wait for such a one.
const OLD: Duration = Duration::from_secs(60);
const PATIENCE_WITH_OLD: Duration = Duration::from_millis(500);

/// Creates `path`, which must not exist, and waits up to `patience` for it to disappear.
///
/// Costs one system call where nobody holds the lock.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when the file is still there in the end; any other error of the
/// system at once.
pub fn create(path: &Path, patience: Duration) -> io::Result<File> {
    let mut wait: Option<Wait> = None;
    loop {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let wait = wait.get_or_insert_with(|| Wait::begin(path, patience));
                if !wait.pause() {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
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

    #[test]
    fn a_lock_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file.lock");
        let held = create(&path, Duration::ZERO).expect("nobody has it");
        let error = create(&path, Duration::ZERO).expect_err("it is held");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let waiter = std::thread::spawn({
            let path = path.clone();
            move || create(&path, Duration::MAX)
        });
        drop(held);
        std::fs::remove_file(&path).expect("it is there");
        waiter.join().expect("no panic").expect("it was given back");
        assert!(path.exists());
    }

    #[test]
    fn an_old_lock_is_not_waited_for_long() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file.lock");
        let file = create(&path, Duration::ZERO).expect("nobody has it");
        let long_ago = std::time::SystemTime::now() - 2 * OLD;
        file.set_modified(long_ago).expect("it is ours");
        let error = create(&path, Duration::MAX).expect_err("it is held");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
}
