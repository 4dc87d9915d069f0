//! Writes the lines of `ls-files`.

use super::format::ListLine;
use super::{Args, Excludes, ListFormat};
use crate::CliError;
use crate::paths::{Quoting, relative, shown_path};
use bstr::{BStr, BString, ByteSlice};
use pronto::Repository;
use pronto::status::{FileState, LineEndings, Pathspec};
use pronto_hash::ObjectId;
use pronto_index::{Entry, EntryRef, Flags, Index};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// The kinds of entries to list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedEntries {
    pub(super) cached: bool,
    pub(super) stage: bool,
}

impl ListedEntries {
    pub(super) fn of(args: &Args) -> ListedEntries {
        let stage = args.stage || args.unmerged;
        let something = stage
            || args.deleted
            || args.others
            || args.modified
            || args.killed
            || args.resolve_undo;
        ListedEntries {
            cached: args.cached || !something,
            stage,
        }
    }
}

/// Writes lines, and records which pathspecs have matched.
pub(super) struct FileLister<'a> {
    repository: &'a Repository,
    index: &'a Index,
    args: &'a Args,
    format: Option<ListFormat>,
    endings: Option<LineEndings<'a>>,
    wanted: ListedEntries,
    pathspec: &'a Pathspec,
    seen: Vec<bool>,
    prefix: BString,
    quote_path: bool,
    /// The minimum number of digits of ids (`--abbrev`); `None` for full ids.
    abbrev: Option<Option<usize>>,
}

impl<'a> FileLister<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        index: &'a Index,
        args: &'a Args,
        format: Option<ListFormat>,
        pathspec: &'a Pathspec,
    ) -> Result<FileLister<'a>, CliError> {
        let prefix = match args.full_name {
            true => BString::default(),
            false => repository.prefix_or_empty(),
        };
        let digits = args.abbrev.as_deref().map(OsStr::as_bytes);
        let abbrev = match digits {
            None => None,
            Some(b"") => Some(None),
            Some(digits) => {
                let number: Option<usize> = digits.to_str().ok().and_then(|text| text.parse().ok());
                let number = number
                    .ok_or_else(|| CliError::usage("option `abbrev' expects a numerical value"))?;
                (number > 0).then(|| Some(number.clamp(4, index.kind().len_in_hex())))
            }
        };
        let shows_endings = args.eol || format.as_ref().is_some_and(ListFormat::shows_endings);
        let endings = shows_endings
            .then(|| pronto::status::line_endings(repository))
            .transpose()?;
        Ok(FileLister {
            endings,
            repository,
            index,
            args,
            format,
            wanted: ListedEntries::of(args),
            pathspec,
            seen: vec![false; pathspec.len()],
            prefix,
            quote_path: repository.config().bool_or("core.quotePath", true)?,
            abbrev,
        })
    }

    /// Returns the pathspecs that matched no entry (`--error-unmatch`).
    pub(super) fn unmatched(&self) -> Vec<BString> {
        let unseen = self.seen.iter().enumerate().filter(|(_, seen)| !**seen);
        unseen
            .map(|(at, _)| self.pathspec.original(at).to_owned())
            .collect()
    }

    fn tag(&self, tag: char, entry: Option<&EntryRef<'_>>) -> String {
        if !self.args.tags && !self.args.valid_bit && !self.args.fsmonitor_bit {
            return String::new();
        }
        let valid = entry.is_some_and(|entry| entry.flags.contains(Flags::ASSUME_VALID));
        match (self.args.valid_bit && valid, tag) {
            (true, '?') => "! ".to_owned(),
            (true, tag) => format!("{} ", tag.to_ascii_lowercase()),
            (false, tag) => format!("{tag} "),
        }
    }

    /// Returns the line-ending columns of `--eol`.
    fn eol(&mut self, entry: Option<&EntryRef<'_>>, path: &BStr) -> Result<String, CliError> {
        let Some(endings) = self.endings.as_mut().filter(|_| self.args.eol) else {
            return Ok(String::new());
        };
        let in_index = entry.map(|entry| endings.in_index(entry)).transpose()?;
        let (in_index, in_worktree) = (in_index.unwrap_or(""), endings.in_worktree(path));
        let attribute = endings.by_attributes(path)?;
        Ok(format!(
            "i/{in_index:<5} w/{in_worktree:<5} attr/{attribute:<17}\t"
        ))
    }

    fn name(&self, path: &BStr) -> BString {
        let mut name = match self.args.null {
            true => relative(path, self.prefix.as_bstr()),
            false => {
                let quoting = Quoting {
                    non_ascii: self.quote_path,
                    spaces: false,
                };
                shown_path(path, self.prefix.as_bstr(), quoting)
            }
        };
        name.push(if self.args.null { 0 } else { b'\n' });
        name
    }

    fn id(&self, id: ObjectId) -> Result<BString, CliError> {
        Ok(match self.abbrev {
            None => id.to_string().into(),
            Some(None) => self.repository.abbreviate(&id)?.into(),
            Some(Some(digits)) => self.repository.abbreviate_to(&id, digits)?.into(),
        })
    }

    /// Lists untracked files (`--others`).
    pub(super) fn others(
        &mut self,
        others: &[BString],
        out: &mut impl Write,
    ) -> Result<(), CliError> {
        for path in others {
            self.beside('?', path.as_bstr(), out)?;
        }
        Ok(())
    }

    /// Lists the paths of `others` that conflict with index entries, so that a checkout would
    /// overwrite them (`--killed`).
    pub(super) fn killed(
        &mut self,
        others: &[BString],
        out: &mut impl Write,
    ) -> Result<(), CliError> {
        let mut last = BStr::new("");
        for path in others {
            let Some(len) = killed_len(self.index, path.as_bstr()) else {
                continue;
            };
            // Git examines deeper paths only for other reasons.
            let is_deep = path[len..].contains(&b'/');
            if is_deep && !self.args.others && !self.args.directory {
                continue;
            }
            let len = if self.args.directory { len } else { path.len() };
            let path = path[..len].as_bstr();
            if path != last {
                self.beside('K', path, out)?;
            }
            last = path;
        }
        Ok(())
    }

    /// Writes a path that is not in the index.
    fn beside(&mut self, tag: char, path: &BStr, out: &mut impl Write) -> Result<(), CliError> {
        self.pathspec.mark(path, &mut self.seen);
        out.write_all(self.tag(tag, None).as_bytes())?;
        out.write_all(self.eol(None, path)?.as_bytes())?;
        out.write_all(&self.name(path))?;
        Ok(())
    }

    /// Writes the index entries. Entries of `older`, which are only in the tree of `--with-tree`,
    /// precede the index entries at the same path.
    pub(super) fn entries(
        &mut self,
        states: &HashMap<usize, FileState>,
        older: &[Entry],
        excludes: &Excludes,
        out: &mut impl Write,
    ) -> Result<(), CliError> {
        let args = self.args;
        let deduplicate = args.deduplicate && !args.tags && !self.wanted.stage;
        let mut ignored = HashSet::new();
        if args.ignored {
            let name = excludes.per_directory.as_ref();
            let patterns = &excludes.patterns;
            ignored = pronto::status::ignored_entries(self.repository, self.index, patterns, name)?;
        }
        let mut last: Option<BString> = None;
        let mut older = older.iter().peekable();
        for (position, entry) in self.index.iter().enumerate() {
            while let Some(old) = older.next_if(|old| old.path.as_bstr() <= entry.path) {
                self.entry(&old.as_ref(), 'M', out)?;
                last = deduplicate.then(|| old.path.clone());
            }
            if !self.pathspec.matches(entry.path, entry.is_submodule()) {
                // A pathspec that matches an excluded path counts as matched, as in Git.
                if self.wanted.cached || self.wanted.stage {
                    self.pathspec.mark(entry.path, &mut self.seen);
                }
                continue;
            }
            if last.as_ref().is_some_and(|last| last == entry.path)
                || (args.ignored && !ignored.contains(&position))
            {
                continue;
            }
            let mut shown = false;
            let listed = !args.unmerged || entry.stage() != 0;
            if listed && (self.wanted.cached || self.wanted.stage) {
                let tag = match entry.stage() {
                    _ if entry.flags.contains(Flags::SKIP_WORKTREE) => 'S',
                    0 => 'H',
                    _ => 'M',
                };
                self.entry(&entry, tag, out)?;
                shown = true;
            }
            let skips = entry.flags.contains(Flags::SKIP_WORKTREE);
            let state = states
                .get(&position)
                .copied()
                .filter(|_| !skips)
                .unwrap_or_default();
            for (wanted, tag) in [
                (args.deleted && state.deleted, 'R'),
                (args.modified && state.modified, 'C'),
            ] {
                if wanted && !(deduplicate && shown) {
                    self.entry(&entry, tag, out)?;
                    shown = true;
                }
            }
            if deduplicate && shown {
                last = Some(entry.path.to_owned());
            }
        }
        for old in older {
            self.entry(&old.as_ref(), 'M', out)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &EntryRef<'_>,
        tag: char,
        out: &mut impl Write,
    ) -> Result<(), CliError> {
        self.pathspec.mark(entry.path, &mut self.seen);
        if let Some(format) = &self.format {
            let mut name = self.name(entry.path);
            let end = name.pop();
            let id = self.id(entry.id.to_owned())?;
            let line = ListLine {
                repository: self.repository,
                entry,
                id: id.as_bstr(),
                path: name.as_bstr(),
            };
            // The line is written as a whole or not at all, because a missing object is an error.
            let mut text = Vec::new();
            format.write(&mut text, &line, self.endings.as_mut())?;
            text.extend(end);
            out.write_all(&text)?;
            return Ok(());
        }
        out.write_all(self.tag(tag, Some(entry)).as_bytes())?;
        if self.wanted.stage {
            let id = self.id(entry.id.to_owned())?;
            write!(out, "{:06o} {id} {}\t", entry.mode, entry.stage())?;
        }
        out.write_all(self.eol(Some(entry), entry.path)?.as_bytes())?;
        out.write_all(&self.name(entry.path))?;
        if self.args.debug {
            debug(entry, out)?;
        }
        Ok(())
    }

    /// Lists resolved conflicts that can be recreated (`--resolve-undo`).
    pub(super) fn resolve_undo(&mut self, out: &mut impl Write) -> Result<(), CliError> {
        let undo = self.index.resolve_undo()?.unwrap_or_default();
        for unmerged in &undo.paths {
            let path = unmerged.path.as_bstr();
            if !self.pathspec.matches(path, false) {
                continue;
            }
            self.pathspec.mark(path, &mut self.seen);
            for (at, stage) in unmerged.stages.iter().enumerate() {
                let Some((mode, id)) = stage else { continue };
                let id = self.id(*id)?;
                write!(out, "{}{mode:06o} {id} {}\t", self.tag('U', None), at + 1)?;
                out.write_all(&self.name(path))?;
            }
        }
        Ok(())
    }
}

fn debug(entry: &EntryRef<'_>, out: &mut impl Write) -> io::Result<()> {
    let stat = entry.stat;
    writeln!(
        out,
        "  ctime: {}:{}",
        stat.ctime.seconds, stat.ctime.nanoseconds
    )?;
    writeln!(
        out,
        "  mtime: {}:{}",
        stat.mtime.seconds, stat.mtime.nanoseconds
    )?;
    writeln!(out, "  dev: {}\tino: {}", stat.device, stat.inode)?;
    writeln!(out, "  uid: {}\tgid: {}", stat.uid, stat.gid)?;
    writeln!(
        out,
        "  size: {}\tflags: {:x}",
        stat.size_bytes,
        entry.flags.bits()
    )
}

/// Returns the length of the part of `path` that conflicts with the index: the whole path if the
/// index has a directory there, or the part before the slash if the index has a file there.
fn killed_len(index: &Index, path: &BStr) -> Option<usize> {
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        if index.find(path[..at].as_bstr(), 0).is_ok() {
            return Some(at + 1);
        }
    }
    if path.ends_with(b"/") {
        return None;
    }
    let mut at = index.find(path, 0).err()?;
    while at < index.len() && index.entry(at).stage() > 0 {
        at += 1;
    }
    let is_wanted = at < index.len()
        && index
            .path(at)
            .strip_prefix(path.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"/"));
    is_wanted.then_some(path.len())
}
