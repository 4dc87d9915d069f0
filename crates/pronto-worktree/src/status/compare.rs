//! Compares a file with its entry: by stat data, and by content if stat data are not conclusive.

use super::content::{FileToDigest, digest_file};
use super::scan::Scanner;
use super::{FileChange, SubmoduleState};
use crate::{Error, recorded};
use bstr::ByteSlice;
use pronto_index::{EntryRef, Flags, Stat, mode};
use pronto_io::dir::{Directory, Metadata};
use std::io;

/// A file whose stat data were compared with its entry.
struct ExaminedFile<'a> {
    position: usize,
    entry: &'a EntryRef<'a>,
    /// The mode with which the file would be staged.
    mode: u32,
    metadata: &'a Metadata,
    stat: Stat,
    /// Whether the stat data match.
    matches: bool,
}

impl Scanner<'_> {
    /// Reports the file of `entry` if it differs from the entry.
    pub(super) fn compare(
        &mut self,
        directory: &Directory,
        position: usize,
        entry: &EntryRef<'_>,
        metadata: &Metadata,
    ) -> Result<(), Error> {
        let clean = SubmoduleState::default();
        let is_link = entry.mode & mode::TYPE == mode::GITLINK;
        let is_racy = !is_link && entry.stat.is_racy_by_second(self.index_time);
        self.outcome.racy_count += usize::from(is_racy);
        if is_link && metadata.is_directory() {
            let state = self.job.submodules.inspect(entry.path, entry.id)?;
            if !state.is_clean() {
                self.report(position, Some(FileChange::Modified), mode::GITLINK, state);
            }
            return Ok(());
        }
        let Some(now) = self.staged_mode(entry, metadata) else {
            self.report(position, Some(FileChange::Deleted), 0, clean);
            return Ok(());
        };
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            self.report(position, Some(FileChange::Added), now, clean);
            return Ok(());
        }
        if now & mode::TYPE != entry.mode & mode::TYPE {
            self.report(position, Some(FileChange::TypeChanged), now, clean);
            return Ok(());
        }
        if (now ^ entry.mode) & 0o100 != 0 {
            self.report(position, Some(FileChange::Modified), now, clean);
            return Ok(());
        }
        let stat = recorded(metadata);
        let matches = entry.stat.matches(&stat, self.job.options.rules)
            && (entry.stat.size_bytes != 0 || self.is_empty_blob(entry));
        if matches && !entry.stat.is_racy(self.index_time) {
            self.verify(position);
            return Ok(());
        }
        let differs = self.job.options.stat_decides && self.stat_differs(entry, stat);
        if differs || self.is_settled(entry, metadata) {
            self.report(position, Some(FileChange::Modified), now, clean);
            return Ok(());
        }
        let file = ExaminedFile {
            position,
            entry,
            mode: now,
            metadata,
            stat,
            matches,
        };
        self.compare_content(directory, &file);
        Ok(())
    }

    /// Compares the content if the stat data differ, or if matching stat data are not conclusive
    /// (racy).
    fn compare_content(&mut self, directory: &Directory, file: &ExaminedFile<'_>) {
        let ExaminedFile {
            position,
            entry,
            stat,
            matches,
            ..
        } = *file;
        let name = entry.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        let to_digest = FileToDigest {
            directory,
            name: &entry.path[name..],
            metadata: file.metadata,
            path: entry.path,
            staged: entry.id,
        };
        let digest = digest_file(&to_digest, self.job.conversion, self.job.index.kind());
        match digest {
            Ok(id) if *id == *entry.id => {
                if !matches {
                    self.outcome.refreshed.push((position, stat));
                }
                self.verify(position);
                return;
            }
            Ok(_) if matches => {
                // Only the content differs: a size of zero makes the next reader compare the content,
                // too.
                let trace = Stat {
                    size_bytes: 0,
                    ..entry.stat
                };
                self.outcome.refreshed.push((position, trace));
            }
            Err(error) if error.kind() != io::ErrorKind::InvalidData => {
                self.problem(entry.path, error);
            }
            Ok(_) | Err(_) => {}
        }
        let clean = SubmoduleState::default();
        self.report(position, Some(FileChange::Modified), file.mode, clean);
    }

    /// Returns whether the stat data differ. As in Git, nanoseconds are ignored here.
    fn stat_differs(&self, entry: &EntryRef<'_>, now: Stat) -> bool {
        let rules = self.job.options.rules;
        !entry.stat.matches(&now.without_nanoseconds(), rules)
            || (entry.stat.size_bytes == 0 && !self.is_empty_blob(entry))
    }

    /// Returns whether a file with different or inconclusive stat data counts as modified without
    /// reading its content.
    fn is_settled(&self, entry: &EntryRef<'_>, metadata: &Metadata) -> bool {
        let recorded_size = entry.stat.size_bytes;
        let size = Stat::recorded_size(metadata.size_bytes);
        !self.job.options.compare_content
            || (recorded_size != 0 && recorded_size != size)
            || !(metadata.is_file() || metadata.is_symlink())
    }

    fn is_empty_blob(&self, entry: &EntryRef<'_>) -> bool {
        entry.id == pronto_hash::ObjectId::empty_blob(self.job.index.kind())
    }

    /// Returns the mode with which the file would be staged; `None` if the path is a directory or a
    /// special file.
    pub(super) fn staged_mode(&self, entry: &EntryRef<'_>, metadata: &Metadata) -> Option<u32> {
        let options = &self.job.options;
        if metadata.is_symlink() {
            Some(mode::SYMLINK)
        } else if !metadata.is_directory() {
            // A device or a pipe counts as a modified file.
            let kind = entry.mode & mode::TYPE;
            if kind == mode::SYMLINK && !options.has_symlinks {
                return Some(mode::SYMLINK);
            }
            if !options.trust_executable && kind == mode::FILE & mode::TYPE {
                return Some(entry.mode);
            }
            let trusted = options.trust_executable && metadata.is_executable();
            Some(if trusted {
                mode::EXECUTABLE
            } else {
                mode::FILE
            })
        } else if self.is_repository(entry.path) {
            Some(mode::GITLINK)
        } else {
            None
        }
    }
}
