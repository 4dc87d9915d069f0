//! Maintenance of reflogs: listing them, and removing and adding entries (git-reflog(1)).

mod expire;
mod outcome;
mod reach;
mod rewrite;
mod tables;

use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use crate::identity::{self, Care, IdentityRole};
use crate::lock::{Lock, Marking};
use crate::refs::{LogLine, RefNameRef, name, tables::logged_names};
use crate::{Error, ErrorKind, Repository, Result, path};

pub use expire::{ExpireOptions, LogSelection};
pub use outcome::{ExpiredLog, ReflogEntryResult, RewriteOptions};
pub use pronto_object::date::parse_expiry;

/// The largest depth of nested directories of reflogs.
const MAX_DEPTH: usize = 256;

/// A reflog entry whose ids and message the caller gives (`git reflog write`).
#[derive(Clone, Debug)]
pub struct NewLine {
    /// The value of the ref before the change.
    pub old: ObjectId,
    /// The value after the change.
    pub new: ObjectId,
    /// The reason for the change.
    pub message: BString,
}

impl Repository {
    /// Returns the names of all refs that have a reflog and are visible in this worktree, sorted within
    /// each directory.
    ///
    /// Costs one directory listing for each directory of reflogs. Unreadable directories are skipped.
    pub fn logged_references(&self) -> Vec<BString> {
        let mut names = self.logged_references_unsorted();
        names.sort_by(|one, two| one.split_str("/").cmp(two.split_str("/")));
        names
    }

    fn logged_references_unsorted(&self) -> Vec<BString> {
        let is_linked = self.git_dir() != self.common_dir();
        let mut names = Vec::new();
        self.logs_below(self.common_dir(), &mut names);
        if is_linked {
            names.retain(|found| !name::is_per_worktree(found.as_bstr()));
            let mut own = Vec::new();
            self.logs_below(self.git_dir(), &mut own);
            own.retain(|found| name::is_per_worktree(found.as_bstr()));
            names.append(&mut own);
        }
        names
    }

    /// Returns the names of all refs that have a reflog: those of this worktree, and the per-worktree
    /// refs of the other worktrees. `single` omits the other worktrees (`--single-worktree`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the worktrees cannot be listed.
    pub fn logged_references_everywhere(&self, single: bool) -> Result<Vec<BString>> {
        if single {
            return Ok(self.logged_references());
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = real(self.git_dir());
        let mut names = Vec::new();
        for tree in self.work_trees()? {
            let (directory, prefix) = match &tree.id {
                None => (self.common_dir().to_owned(), b"main-worktree/".to_vec()),
                Some(id) => (
                    self.common_dir().join("worktrees").join(path::borrow(id)),
                    [b"worktrees/", id.as_slice(), b"/"].concat(),
                ),
            };
            if real(&directory) == own {
                names.extend(self.logged_references());
                continue;
            }
            let mut found = Vec::new();
            self.logs_below(&directory, &mut found);
            found.retain(|found| name::is_per_worktree(found.as_bstr()));
            found.sort_by(|one, two| one.split_str("/").cmp(two.split_str("/")));
            let full = |found: BString| BString::from([&prefix, found.as_slice()].concat());
            names.extend(found.into_iter().map(full));
        }
        Ok(names)
    }

    fn logs_below(&self, directory: &Path, names: &mut Vec<BString>) {
        if let Some(tables) = self.refs().tables() {
            // As for directories, unreadable reflogs are skipped.
            names.extend(logged_names(tables, directory).unwrap_or_default());
            return;
        }
        let root = directory.join("logs");
        let mut directories = vec![(root, BString::default(), 0)];
        while let Some((directory, prefix, depth)) = directories.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let file_name = entry.file_name();
                let found = [prefix.as_slice(), path::as_bytes(Path::new(&file_name))].concat();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() && depth < MAX_DEPTH {
                    let below = [found.as_slice(), b"/"].concat();
                    directories.push((entry.path(), below.into(), depth + 1));
                } else if kind.is_file() && name::is_valid(found.as_bstr(), name::Form::OneLevel) {
                    names.push(found.into());
                }
            }
        }
    }

    /// Returns the full name of the ref with a reflog to which `short` expands; `None` if there is no
    /// such ref.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a branch has no upstream, or a ref is broken.
    pub fn find_logged_reference(&self, short: &BStr) -> Result<Option<BString>> {
        Ok(self.find_log(short)?.map(|found| found.name))
    }

    /// Removes the reflog of the ref `name` under the lock of the ref, and the directories that become
    /// empty. A missing reflog is not an error (`git reflog drop`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if the name is invalid, [`ErrorKind::Locked`] if another
    /// process holds the lock, or [`ErrorKind::Io`] if the file cannot be removed.
    pub fn drop_log(&self, name: &BStr) -> Result<()> {
        let safe = RefNameRef::existing(name).map_err(crate::refs::bad_name)?;
        if let Some(tables) = self.refs().tables() {
            return self.drop_log_in_tables(tables, safe);
        }
        let _lock = self.lock_log(safe)?;
        let file = self.refs().log_path(safe);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("unable to unlink '{}'", file.display());
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
            _ => {}
        }
        let mut directory = file.parent();
        while let Some(path) = directory
            && path != self.common_dir()
            && std::fs::remove_dir(path).is_ok()
        {
            directory = path.parent();
        }
        Ok(())
    }

    /// Checks that the committer date in the environment is valid, so that reflog entries can be
    /// written. Operations call this before they change files, because their last step writes a reflog
    /// entry.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if `GIT_COMMITTER_DATE` is not a date, or with
    /// [`ErrorKind::ConfigValue`].
    pub fn check_log_identity(&self) -> Result<()> {
        let is_logged = match self.config().bool("core.logallrefupdates") {
            Ok(Some(is_logged)) => is_logged,
            _ => !self.is_bare(),
        };
        if !is_logged && self.refs().log("HEAD")?.is_none() {
            return Ok(());
        }
        let (config, environment) = (self.config(), self.environment());
        identity::signature(IdentityRole::Committer, Care::Lenient, config, environment)?;
        Ok(())
    }

    /// Adds `line` to the reflog of the ref `name`, and creates the reflog if necessary. The entry
    /// names the configured committer.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if the name is invalid, [`ErrorKind::Locked`] if another
    /// process holds the lock of the ref, [`ErrorKind::Identity`] if there is no committer, or
    /// [`ErrorKind::Io`] if the file cannot be written.
    pub fn write_log_line(&self, name: &BStr, line: &NewLine) -> Result<()> {
        let safe = RefNameRef::new(name).map_err(crate::refs::bad_name)?;
        let who = identity::signature(
            IdentityRole::Committer,
            Care::Lenient,
            self.config(),
            self.environment(),
        )?;
        if let Some(tables) = self.refs().tables() {
            return self.write_log_line_in_tables(tables, safe, line, &who.to_string());
        }
        let _lock = self.lock_log(safe)?;
        let mut text = format!("{} {} {who}", line.old, line.new).into_bytes();
        let message = crate::refs::clean_message(line.message.as_bstr());
        if !message.is_empty() {
            text.push(b'\t');
            text.extend_from_slice(&message);
        }
        text.push(b'\n');
        self.refs().append_log(safe, true, &text)
    }

    /// Takes the lock of a ref, which also protects its reflog.
    fn lock_log(&self, name: RefNameRef<'_>) -> Result<Lock> {
        let patience = crate::refs::patience(self.config())?;
        let lock = Lock::acquire_as(self.refs().file_of(name), Marking::Marked, patience);
        let lock = lock.map_err(|error| {
            let message = format!("cannot lock ref '{name}': {}", error.message());
            Error::new(error.kind(), message)
        })?;
        Ok(lock.recorded(self.config()))
    }
}

/// Returns the lines of a reflog that Git reads, oldest first: complete and well-formed lines.
fn whole_lines(content: &[u8]) -> impl Iterator<Item = LogLine<'_>> {
    let lines = content.split_inclusive(|&byte| byte == b'\n');
    let whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
    whole.filter_map(LogLine::parse).filter(|line| {
        let digits = line.zone.strip_prefix(b"+");
        let digits = digits.or_else(|| line.zone.strip_prefix(b"-"));
        line.seconds > 0
            && digits.is_some_and(|digits| {
                (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_git_does_not_read_are_no_lines() {
        let id = "1".repeat(40);
        let good = format!("{id} {id} A <a@b> 1112911993 +0100\tx\n");
        let bare = format!("{id} {id} A <a@b> 1112911993 -730\n");
        assert_eq!(whole_lines(good.as_bytes()).count(), 1);
        assert_eq!(whole_lines(bare.as_bytes()).count(), 1);
        let broken = [
            good.trim_end().to_owned(),
            good.replace("+0100", "0100"),
            good.replace("+0100", "+"),
            good.replace("+0100", "+01000000000"),
            good.replace("1112911993", "0"),
            good.replace("1112911993", "-5"),
            good.replace("> ", ">"),
            "\n\n\n".to_owned(),
        ];
        for text in broken {
            assert_eq!(whole_lines(text.as_bytes()).count(), 0, "{text:?}");
        }
    }

    #[test]
    fn moments_of_expiry_have_names() {
        assert_eq!(parse_expiry("never".into()), Some(0));
        assert_eq!(parse_expiry("false".into()), Some(0));
        assert_eq!(parse_expiry("all".into()), Some(i64::MAX));
        assert_eq!(parse_expiry("now".into()), Some(i64::MAX));
        assert_eq!(parse_expiry("gibberish".into()), None);
    }
}
