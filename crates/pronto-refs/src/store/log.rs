//! Reflogs: the former values of refs, with times and messages.

use std::fs::{DirEntry, File, OpenOptions};
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::{RefNameRef, References};
use pronto_config::lock::MAX_RACES;
use pronto_config::{Error, ErrorKind, Result, path};

/// One entry of a reflog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The value of the ref before the change.
    pub old: ObjectId,
    /// The value of the ref after the change.
    pub new: ObjectId,
    /// The name and the mail address of the committer.
    pub who: &'a BStr,
    /// The time of the change in seconds since 1970.
    pub seconds: i64,
    /// The time zone, as it is written in the reflog: `+0100`.
    pub zone: &'a BStr,
    /// The message of the entry.
    pub message: &'a BStr,
}

impl<'a> LogLine<'a> {
    /// Parses one line; `None` if the line is malformed.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(3, |&byte| byte == b' ');
        let old = pronto_hash::parse_hex(parts.next()?).ok()?;
        let new = pronto_hash::parse_hex(parts.next()?).ok()?;
        let rest = parts.next()?;
        let end = rest.find(b"> ")? + 1;
        let (who, tail) = rest.split_at(end);
        let (time, message) = match tail[1..].split_once_str(b"\t") {
            Some(parts) => parts,
            None => (&tail[1..], &b""[..]),
        };
        let (seconds, zone) = time.split_once_str(b" ")?;
        Some(LogLine {
            old,
            new,
            who: who.as_bstr(),
            seconds: seconds.to_str().ok()?.parse().ok()?,
            zone: zone.as_bstr(),
            message: message.as_bstr(),
        })
    }
}

/// A reflog that was read into memory. Malformed lines are skipped.
#[derive(Clone, Debug, Default)]
pub struct ReflogContent(Vec<u8>);

impl ReflogContent {
    /// Returns the reflog with the contents of a reflog file.
    pub(super) fn of(content: Vec<u8>) -> ReflogContent {
        ReflogContent(content)
    }

    /// Returns the bytes of the reflog file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Iterates over the entries, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = LogLine<'_>> {
        let lines: Vec<&[u8]> = self.0.lines().collect();
        lines.into_iter().rev().filter_map(LogLine::parse)
    }

    /// Iterates over the entries, oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = LogLine<'_>> {
        self.0.lines().filter_map(LogLine::parse)
    }
}

impl References {
    /// Returns the path of the reflog file of `name`, whether it exists or not.
    pub fn log_path(&self, name: RefNameRef<'_>) -> PathBuf {
        let (base, rest) = self.base_of(name);
        base.join("logs").join(path::borrow(rest))
    }

    /// Returns the path of a file of the repository as messages show it.
    pub(super) fn display_file(&self, path: &Path) -> PathBuf {
        for (directory, display_path) in [
            (&self.git_dir, &self.display_git_dir),
            (&self.common_dir, &self.display_common_dir),
        ] {
            if let Ok(rest) = path.strip_prefix(directory) {
                return match display_path.as_path() == Path::new(".") {
                    true => rest.to_owned(),
                    false => display_path.join(rest),
                };
            }
        }
        path.to_owned()
    }

    /// Returns whether `name` has a reflog. Costs one system call.
    pub fn has_log(&self, name: impl AsRef<[u8]>) -> bool {
        RefNameRef::existing(name.as_ref().as_bstr()).is_ok_and(|name| match self.tables() {
            Some(tables) => self.has_log_in_tables(tables, name).unwrap_or(false),
            None => self.log_path(name).is_file(),
        })
    }

    /// Returns the reflog of `name`, or `None` if the ref has no reflog.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the reflog cannot be read.
    pub fn log(&self, name: impl AsRef<[u8]>) -> Result<Option<ReflogContent>> {
        let Ok(name) = RefNameRef::existing(name.as_ref().as_bstr()) else {
            return Ok(None);
        };
        if let Some(tables) = self.tables() {
            return self.log_in_tables(tables, name);
        }
        let file = self.log_path(name);
        match pronto_io::untrusted::content(&file) {
            Ok(bytes) => Ok(Some(ReflogContent(bytes))),
            Err(error)
                if matches!(
                    error.kind(),
                    Io::NotFound | Io::IsADirectory | Io::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => {
                let message = format!("unable to read log '{}'", file.display());
                Err(Error::new(ErrorKind::Io, message).because(error))
            }
        }
    }

    /// Appends a line to the reflog of `name`. If there is no reflog, one is created only with
    /// `create`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the reflog cannot be written, or if its path is a directory.
    pub fn append_log(&self, name: RefNameRef<'_>, create: bool, line: &[u8]) -> Result<()> {
        let file = self.log_path(name);
        let opened = if create {
            open_or_create(&file)
        } else {
            match OpenOptions::new().append(true).open(&file) {
                Ok(log) => Ok(log),
                Err(error) if matches!(error.kind(), Io::NotFound | Io::IsADirectory) => {
                    return Ok(());
                }
                Err(error) => Err(error),
            }
        };
        let written = opened.and_then(|mut log| log.write_all(line));
        written.map_err(|error| {
            let said = self.display_file(&file);
            let said = said.display();
            let reason = pronto_io::error::reason(&error);
            let message = match error.kind() {
                Io::NotFound => format!("unable to create directory for '{said}': {reason}"),
                Io::IsADirectory => format!("there are still logs under '{said}'"),
                _ => format!("unable to append to '{said}': {reason}"),
            };
            Error::new(ErrorKind::Io, message)
        })
    }
}

fn open_or_create(file: &Path) -> std::io::Result<File> {
    let open = || OpenOptions::new().append(true).create(true).open(file);
    for _ in 0..MAX_RACES {
        match open() {
            Err(error) if error.kind() == Io::NotFound => {
                if let Some(parent) = file.parent() {
                    pronto_config::lock::create_directories(parent)?;
                }
            }
            Err(error) if error.kind() == Io::IsADirectory => remove_empty_directories(file),
            other => return other,
        }
    }
    open()
}

/// Removes `directory` and its subdirectories as far as they contain no files.
pub(super) fn remove_empty_directories(directory: &Path) {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(directory) = found.get(next) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let is_directory = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let below: Vec<_> = entries.filter(is_directory).map(|it| it.path()).collect();
        found.extend(below);
        next += 1;
    }
    // Subdirectories were found after their parents. A directory that is not empty stays.
    for directory in found.iter().rev() {
        let _ = std::fs::remove_dir(directory);
    }
}

/// Returns a message as reflogs store it: on one line, with each run of whitespace as one space.
pub fn clean_message(message: &BStr) -> BString {
    let words: Vec<&[u8]> = message.fields().collect();
    words.join(&b' ').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_logs_are_taken_apart() {
        let id = "1".repeat(40);
        let line = format!("{id} {id} A U Thor <a@b> 1112911993 -0700\tcommit: x");
        let parsed = LogLine::parse(line.as_bytes()).expect("it is well formed");
        assert_eq!(parsed.who, "A U Thor <a@b>");
        assert_eq!(
            (parsed.seconds, parsed.zone),
            (1_112_911_993, "-0700".into())
        );
        assert_eq!(parsed.message, "commit: x");
        for broken in ["", "x", &line[1..], &line[..100], &line[..60]] {
            assert_eq!(LogLine::parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn messages_fit_on_one_line() {
        assert_eq!(clean_message("  a\n\n b\tc  ".into()), "a b c");
    }
    #[test]
    fn empty_directories_are_removed_at_any_depth() {
        let scratch = tempfile::tempdir().expect("a directory");
        let top = scratch.path().join("top");
        std::fs::create_dir_all(top.join("d/".repeat(800))).expect("directories");
        std::fs::create_dir(top.join("other")).expect("a directory");
        let file = top.join("other/file");
        std::fs::write(&file, "").expect("a file");
        let remove = {
            let top = top.clone();
            move || remove_empty_directories(&top)
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let thread = thread.spawn(remove).expect("a thread");
        thread.join().expect("it ends");
        assert!(file.exists() && !top.join("d").exists());
    }
}
