//! The process id of a lock's holder, in the file `NAME~pid.lock` beside `NAME.lock`. The format is
//! that of git 2.55 (`core.lockfilePid`): `pid N`.
//!
//! The process id is read only for the message of a failed wait. The id is meaningless for other
//! hosts and containers that use the same files, and ids are reused. So no lock is taken over
//! because of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::{Error, ErrorKind, OLD};
use crate::cleanup::Guard;
use crate::untrusted::{self, SymlinkPolicy};

/// More than any such file has.
const LARGEST_BYTES: u64 = 64;

/// The process that the content of a `NAME~pid.lock` names; `None` if it is malformed.
pub fn recorded_process(content: &[u8]) -> Option<u64> {
    let digits = content.trim_ascii_end().strip_prefix(b"pid ")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let id = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (id > 0).then_some(id)
}

/// Removes the record of the killed process whose lock on `target` this process has taken over.
pub(super) fn remove_record(target: &Path) {
    let _ = std::fs::remove_file(path_of(target));
}

/// Records this process as the holder of the lock on `target`. The process must hold the lock: an
/// existing record was left by a killed process, and is replaced.
pub(super) fn record(target: &Path) -> Option<Guard> {
    remove_record(target);
    let path = path_of(target);
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = opened.ok()?;
    let guard = Guard::new(path);
    // A lock without a record is valid: on a failure, the guard removes the record.
    let written = file.write_all(format!("pid {}\n", std::process::id()).as_bytes());
    written.is_ok().then_some(guard)
}

/// Returns the error for a lock that is held beyond the timeout.
pub(super) fn held(target: &Path, path: &Path) -> Error {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let lock = absolute.display();
    let found = RecordedHolder::of(target);
    let is_old = |path| {
        found != RecordedHolder::Unknown || super::age_of(path).is_some_and(|age| age >= OLD)
    };
    let (holder, hint) = match found {
        RecordedHolder::Unknown => (
            "Another git process seems to be running in this repository, or the lock file may be stale"
                .to_owned(),
            format!("if no Git process is running here, remove '{lock}' and try again"),
        ),
        RecordedHolder::Malformed => (
            "Another git process seems to be running in this repository, or the lock file may be stale"
                .to_owned(),
            format!("malformed lock pid file '{}'", path_of(target).display()),
        ),
        RecordedHolder::Running(id) => (
            format!(
                "Lock may be held by process {id}; if no git process is running, \
                 the lock file may be stale (PIDs can be reused)"
            ),
            format!("wait for process {id} to end, or end it, and try again"),
        ),
        RecordedHolder::Dead(id) => (
            format!(
                "Lock was held by process {id}, which is no longer running; \
                 the lock file appears to be stale"
            ),
            format!(
                "if process {id} is not running on another host or in another container,\nremove \
                 '{lock}' and try again"
            ),
        ),
    };
    let message = format!("Unable to create '{lock}': File exists.\n\n{holder}");
    let error = Error::new(ErrorKind::Held, message);
    // A recent lock probably belongs to a running command, so the hint to remove the file is
    // omitted.
    match is_old(path) {
        true => error.with_hint(hint),
        false => error,
    }
}

/// The recorded holder of a lock.
#[derive(Debug, PartialEq, Eq)]
enum RecordedHolder {
    /// There is no record.
    Unknown,
    /// The record cannot be parsed.
    Malformed,
    /// A process with the recorded id is running.
    Running(u64),
    /// No process on this host has the recorded id.
    Dead(u64),
}

impl RecordedHolder {
    fn of(target: &Path) -> RecordedHolder {
        let Ok(content) = untrusted::read(&path_of(target), SymlinkPolicy::Refuse, LARGEST_BYTES)
        else {
            return RecordedHolder::Unknown;
        };
        let Some(id) = recorded_process(&content) else {
            return RecordedHolder::Malformed;
        };
        let Some(process) = i32::try_from(id).ok().and_then(Pid::from_raw) else {
            return RecordedHolder::Dead(id);
        };
        match test_kill_process(process) {
            Ok(()) | Err(Errno::PERM) => RecordedHolder::Running(id),
            Err(Errno::SRCH) => RecordedHolder::Dead(id),
            Err(_) => RecordedHolder::Unknown,
        }
    }
}

/// Returns the path `NAME~pid.lock`.
fn path_of(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push("~pid.lock");
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_git_reads_them() {
        for (content, expected) in [
            ("pid 99999\n", Some(99999)),
            ("pid 1", Some(1)),
            ("pid 0\n", None),
            ("pid -1\n", None),
            ("pid +1\n", None),
            ("pid 1 2\n", None),
            ("pid \n", None),
            ("pid", None),
            ("", None),
            ("pid 99999999999999999999999\n", None),
        ] {
            assert_eq!(
                recorded_process(content.as_bytes()),
                expected,
                "{content:?}"
            );
        }
        assert_eq!(recorded_process(b"pid \xff"), None);
    }

    #[test]
    fn the_holder_is_named_in_words_of_git() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("file");
        let path = directory.path().join("file.lock");
        let text = || held(&target, &path).message().to_owned();
        assert!(text().ends_with("or the lock file may be stale"));
        let own = std::process::id();
        std::fs::write(path_of(&target), format!("pid {own}")).expect("it is writable");
        assert!(text().contains(&format!("may be held by process {own};")));
        // Larger than any process id.
        for id in [(1u64 << 22) + 1, u64::MAX] {
            std::fs::write(path_of(&target), format!("pid {id}\n")).expect("it is writable");
            assert!(text().contains(&format!("held by process {id}, which is no longer running")));
        }
        std::fs::write(path_of(&target), "pid x").expect("it is writable");
        assert!(text().ends_with("or the lock file may be stale"));
    }
}
