//! Edits configuration files in Git's format. The rest of the file stays unchanged, byte for byte.

use std::fs::Permissions;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto_io::error::{IoContext, OsReason};
use pronto_io::replacement::Replacement;

use super::Config;
use super::key::{self, ConfigKey};
use super::parse::{BadLine, ConfigParser, Event, is_key_byte};
use crate::lock::{self, Lock, PATIENCE};
use crate::{Error, ErrorKind, Result, path};

/// The reason for which a valid edit was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditRefusal {
    /// The key to unset has no value.
    NothingSet,
    /// The key has several values, but only one value was to be changed.
    Multiple,
}

/// The content of a configuration file that is being edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
}

/// An event of the parser, with its relation to the edited key.
struct FilePiece {
    event: Event,
    span: Range<usize>,
    in_section: bool,
    is_match: bool,
}

/// The section of a key, as written: its name and subsection.
struct SectionName<'a> {
    name: &'a [u8],
    subsection: Option<&'a [u8]>,
}

impl Document {
    /// Parses the content of a configuration file.
    ///
    /// # Errors
    /// Fails with [`BadDocument`] if a line is malformed.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BadDocument> {
        let mut parser = ConfigParser::new(&bytes);
        loop {
            match parser.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Document { bytes }),
                Err(BadLine(line)) => return Err(BadDocument { line }),
            }
        }
    }

    /// Returns the content.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Replaces the values of `key` that `counts` accepts by `value`, or adds `value` to the
    /// section. `all` permits several old values (`--replace-all`).
    ///
    /// # Errors
    /// Fails with [`EditRefusal::Multiple`] if several values match and `all` is not set.
    ///
    /// # Panics
    /// Panics if `key`, ignoring its case, is not [canonical](super::canonical).
    pub fn set(
        &mut self,
        key: &BStr,
        value: &BStr,
        all: bool,
        counts: impl Fn(&BStr) -> bool,
    ) -> Result<(), EditRefusal> {
        let pieces = self.pieces(key, counts);
        let matches: Vec<&FilePiece> = pieces.iter().filter(|piece| piece.is_match).collect();
        if matches.len() > 1 && !all {
            return Err(EditRefusal::Multiple);
        }
        if matches.is_empty() {
            self.insert(key, value, &pieces);
            return Ok(());
        }
        let cuts = matches
            .iter()
            .map(|piece| self.with_indent(&piece.span))
            .collect::<Vec<_>>();
        let mut out = Vec::with_capacity(self.bytes.len() + value.len());
        let mut kept = 0;
        for cut in cuts {
            self.copy(kept..cut.start, &mut out);
            kept = cut.end;
        }
        push_pair(&mut out, key, value);
        out.extend_from_slice(&self.bytes[kept..]);
        self.bytes = out;
        Ok(())
    }

    /// Adds a value to `key`, after its existing values (`--add`).
    ///
    /// # Panics
    /// Panics if `key`, ignoring its case, is not [canonical](super::canonical).
    pub fn add(&mut self, key: &BStr, value: &BStr) {
        let pieces = self.pieces(key, |_| false);
        self.insert(key, value, &pieces);
    }

    /// Removes the value of `key`, and its section if it becomes empty (`--unset`). Only values
    /// that `counts` accepts are removed. `all` removes several of them (`--unset-all`).
    ///
    /// # Errors
    /// Fails with [`EditRefusal::NothingSet`] if no value matches, and with [`EditRefusal::Multiple`] if
    /// several values match and `all` is not set.
    ///
    /// # Panics
    /// Panics if `key`, ignoring its case, is not [canonical](super::canonical).
    pub fn unset(
        &mut self,
        key: &BStr,
        all: bool,
        counts: impl Fn(&BStr) -> bool,
    ) -> Result<(), EditRefusal> {
        let pieces = self.pieces(key, counts);
        let matches: Vec<usize> = (0..pieces.len())
            .filter(|&at| pieces[at].is_match)
            .collect();
        match matches.len() {
            0 => return Err(EditRefusal::NothingSet),
            1 => {}
            _ if all => {}
            _ => return Err(EditRefusal::Multiple),
        }
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut kept = 0;
        for at in matches {
            let span = match empty_section(&pieces, at) {
                Some(section) => section,
                None => pieces[at].span.clone(),
            };
            if span.end <= kept {
                continue;
            }
            let cut = self.with_indent(&span);
            self.copy(kept..cut.start, &mut out);
            kept = cut.end;
        }
        out.extend_from_slice(&self.bytes[kept..]);
        self.bytes = out;
        Ok(())
    }

    /// Copies a part of the old content, and ends it with a line feed.
    fn copy(&self, range: Range<usize>, out: &mut Vec<u8>) {
        if range.start >= range.end {
            return;
        }
        out.extend_from_slice(&self.bytes[range]);
        if !out.ends_with(b"\n") {
            out.push(b'\n');
        }
    }

    fn with_indent(&self, span: &Range<usize>) -> Range<usize> {
        let before = &self.bytes[..span.start];
        let is_indent = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let start = before
            .iter()
            .rposition(|byte| !is_indent(byte))
            .map_or(0, |at| at + 1);
        start..span.end
    }

    fn insert(&mut self, key: &BStr, value: &BStr, pieces: &[FilePiece]) {
        let last = pieces
            .iter()
            .rev()
            .find(|piece| piece.in_section && matches!(piece.event, Event::Section | Event::Entry));
        let mut out = Vec::with_capacity(self.bytes.len() + key.len() + value.len() + 8);
        let at = match last {
            Some(piece) => {
                let mut at = piece.span.end;
                if !self.bytes[..at].ends_with(b"\n") && self.bytes.get(at) == Some(&b'\n') {
                    at += 1;
                }
                self.copy(0..at, &mut out);
                at
            }
            None => {
                let at = self.bytes.len();
                self.copy(0..at, &mut out);
                push_section(&mut out, key);
                at
            }
        };
        push_pair(&mut out, key, value);
        out.extend_from_slice(&self.bytes[at..]);
        self.bytes = out;
    }

    fn pieces(&self, key: &BStr, counts: impl Fn(&BStr) -> bool) -> Vec<FilePiece> {
        let canonical = ConfigKey::lookup(key);
        let section_length = canonical.rfind_byte(b'.').expect("keys have sections") + 1;
        let (section, variable) = canonical.split_at(section_length);
        let mut parser = ConfigParser::new(&self.bytes);
        let mut pieces = Vec::new();
        let (mut in_section, mut is_exact) = (false, false);
        while let Ok(Some(event)) = parser.next_event() {
            if event == Event::Section {
                is_exact = parser.section == section;
                in_section = is_exact
                    || (parser.subsection_at.is_none()
                        && parser.section.eq_ignore_ascii_case(section));
            }
            let is_match = event == Event::Entry
                && is_exact
                && parser.name == variable
                && counts(parser.value.as_deref().unwrap_or_default().as_bstr());
            let span = parser.span.clone();
            pieces.push(FilePiece {
                event,
                span,
                in_section,
                is_match,
            });
        }
        pieces
    }

    /// Renames all sections `old` (`name` or `name.subsection`) to `new` (`--rename-section`), or
    /// removes them (`--remove-section`). Returns their number.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the new name is malformed.
    pub fn rename_section(&mut self, old: &BStr, new: Option<&BStr>) -> Result<usize> {
        if let Some(new) = new
            && !is_section_name(new)
        {
            let message = format!("invalid section name: {new}");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let (mut out, mut count, mut removing) = (Vec::new(), 0, false);
        for line in self.bytes.lines_with_terminator() {
            let text = line.trim_ascii_start();
            if !text.starts_with(b"[") {
                if !removing {
                    out.extend_from_slice(line);
                }
                continue;
            }
            let header = header_length(text, old);
            removing = header.is_some() && new.is_none();
            match (header, new) {
                (Some(length), Some(new)) => {
                    count += 1;
                    push_section_named(&mut out, &SectionName::of(new));
                    let rest = text[length..].trim_ascii();
                    if !rest.is_empty() {
                        out.push(b'\t');
                        out.extend_from_slice(text[length..].trim_ascii_start());
                    }
                }
                (Some(_), None) => count += 1,
                (None, _) => out.extend_from_slice(line),
            }
        }
        self.bytes = out;
        Ok(count)
    }
}

/// The error of a malformed configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadDocument {
    /// The number of the malformed line, counted from one.
    pub line: u32,
}

impl std::fmt::Display for BadDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bad config line {}", self.line)
    }
}

impl std::error::Error for BadDocument {}

/// Locks the file, applies `change` to its content, and replaces the file by the result.
///
/// Messages name the file `display_path`. The lock records its holder if `core.lockfilePid` is set
/// in `config` ([`Config::records_lock_holders`]). Symbolic links are followed; permissions stay.
///
/// # Errors
/// Fails if the file is locked by another process ([`ErrorKind::Locked`]), is malformed or cannot
/// be read ([`ErrorKind::Config`]), cannot be written ([`ErrorKind::Io`]), or if `change` fails.
/// The file is unchanged then.
pub fn edit_file<T>(
    file: &Path,
    display_path: &BStr,
    config: &Config,
    change: impl FnOnce(&mut Document) -> Result<T>,
) -> Result<T> {
    let target = lock::follow(file);
    if let Some(parent) = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        && let Err(error) = std::fs::metadata(parent)
    {
        let reason = pronto_io::error::reason(&error);
        let message = format!("could not lock config file {display_path}: {reason}");
        return Err(Error::new(ErrorKind::Locked, message));
    }
    let lock = Lock::acquire(&target, PATIENCE).map_err(|error| {
        let text = error.to_string();
        let reason = match error.kind() {
            ErrorKind::Locked => "File exists",
            _ => text.rsplit(": ").next().unwrap_or_default(),
        };
        let message = format!("could not lock config file {display_path}: {reason}");
        Error::new(ErrorKind::Locked, message)
    })?;
    let _lock = lock.recorded(config);
    let (bytes, permissions) = match std::fs::read(&target) {
        Ok(bytes) => (
            bytes,
            std::fs::metadata(&target)
                .ok()
                .map(|found| found.permissions()),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (Vec::new(), None),
        Err(error) => {
            return Err(error).context(ErrorKind::Config, "opening", path::borrow(display_path));
        }
    };
    let mut document = Document::parse(bytes)
        .map_err(|bad| Error::new(ErrorKind::Config, format!("{bad} in file {display_path}")))?;
    let result = change(&mut document)?;
    replace(&target, document.as_bytes(), permissions).map_err(|error| {
        let message = format!("could not write config file {display_path}");
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })?;
    Ok(result)
}

/// Replaces `target`, whose lock the caller holds. A new file with the old permissions is renamed,
/// and not the lock file, whose mode has the mark of a lock.
fn replace(target: &Path, bytes: &[u8], permissions: Option<Permissions>) -> std::io::Result<()> {
    let mut name = target.to_owned().into_os_string();
    name.push(".lock.new");
    let replacement = Replacement::create(name.into())?;
    let mut file = replacement.file();
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    replacement.rename_to(target)
}

/// Sets a single-valued key in a file.
///
/// # Errors
/// As for [`edit_file`]; and when the key has several values.
pub fn set_in_file(file: &Path, key: &str, value: &BStr, config: &Config) -> Result<()> {
    let name = key::canonical(key.into()).map(|_| BStr::new(key))?;
    edit_file(file, path::as_bytes(file), config, |document| {
        document.set(name, value, false, |_| true).map_err(|_| {
            let message =
                format!("cannot overwrite multiple values with a single value for '{key}'");
            Error::new(ErrorKind::Config, message)
        })
    })
}

/// Returns the section around entry `at`, if it has no other entry and no comment in or beside it.
fn empty_section(pieces: &[FilePiece], at: usize) -> Option<Range<usize>> {
    let mut begin = None;
    for piece in pieces[..at].iter().rev() {
        match piece.event {
            Event::Comment => return None,
            Event::Entry if begin.is_none() => return None,
            Event::Entry => break,
            Event::Section if !piece.in_section => break,
            Event::Section => begin = Some(piece.span.start),
            Event::Blank => {}
        }
    }
    let begin = begin?;
    for piece in &pieces[at + 1..] {
        match piece.event {
            Event::Comment => return None,
            Event::Entry if !piece.is_match => return None,
            Event::Section if !piece.in_section => return Some(begin..piece.span.start),
            _ => {}
        }
    }
    pieces.last().map(|last| begin..last.span.end)
}

fn is_section_name(name: &BStr) -> bool {
    let end = name.find_byte(b'.').unwrap_or(name.len());
    !name.is_empty()
        && !name.starts_with(b".")
        && name[..end].iter().copied().all(is_key_byte)
        && !name[end..].contains(&b'\n')
}

/// Returns the length of the section header at the start of `line` if the header is `name`.
fn header_length(line: &[u8], name: &BStr) -> Option<usize> {
    let mut parser = ConfigParser::new(line);
    let Ok(Some(Event::Section)) = parser.next_event() else {
        return None;
    };
    let found = parser.section.strip_suffix(b".")?;
    let wanted = SectionName::of(name);
    let raw = &line[1..parser.span.end];
    let end = raw.find_byteset(b" \t]").unwrap_or(raw.len());
    let matches = match parser.subsection_at {
        Some(start) => wanted.subsection == Some(&found[start..]) && &raw[..end] == wanted.name,
        None => &raw[..end] == name.as_bytes(),
    };
    matches.then_some(parser.span.end)
}

impl<'a> SectionName<'a> {
    fn of(name: &'a BStr) -> Self {
        match name.find_byte(b'.') {
            Some(dot) => SectionName {
                name: &name[..dot],
                subsection: Some(&name[dot + 1..]),
            },
            None => SectionName {
                name,
                subsection: None,
            },
        }
    }
}

fn push_section(out: &mut Vec<u8>, key: &BStr) {
    let end = key.rfind_byte(b'.').unwrap_or(key.len());
    push_section_named(out, &SectionName::of(key[..end].as_bstr()));
}

fn push_section_named(out: &mut Vec<u8>, section: &SectionName<'_>) {
    out.push(b'[');
    out.extend_from_slice(section.name);
    if let Some(subsection) = section.subsection {
        out.push_str(" \"");
        for &byte in subsection {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.push_str("]\n");
}

fn push_pair(out: &mut Vec<u8>, key: &BStr, value: &BStr) {
    let name = key
        .rfind_byte(b'.')
        .map_or(key.as_bytes(), |dot| &key[dot + 1..]);
    out.push(b'\t');
    out.extend_from_slice(name);
    out.push_str(" = ");
    out.extend_from_slice(&quoted(value));
    out.push(b'\n');
}

fn quoted(value: &BStr) -> BString {
    let needs_quotes = value.starts_with(b" ")
        || value.ends_with(b" ")
        || value.iter().any(|byte| matches!(byte, b';' | b'#' | b'\r'));
    let mut out = BString::default();
    if needs_quotes {
        out.push(b'"');
    }
    for &byte in value.iter() {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\\' => out.extend([b'\\', byte]),
            _ => out.push(byte),
        }
    }
    if needs_quotes {
        out.push(b'"');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(text.into()).expect("it is well formed")
    }

    fn text(document: &Document) -> &str {
        std::str::from_utf8(document.as_bytes()).expect("text in, text out")
    }

    #[test]
    fn values_are_replaced_in_place_and_added_at_the_end_of_their_section() {
        let mut edited = document("# a\n[core]\n  x = 1 ; one\n\ty\n[b \"C\"]\n\tz = 2\n");
        edited
            .set("core.x".into(), "a;b".into(), false, |_| true)
            .expect("one value");
        edited
            .set("Core.New".into(), " \t\"\\".into(), false, |_| true)
            .expect("no value");
        edited
            .set("b.C.z2".into(), "".into(), false, |_| true)
            .expect("no value");
        edited
            .set("b.c.z".into(), "3".into(), false, |_| true)
            .expect("no value");
        assert_eq!(
            text(&edited),
            "# a\n[core]\n\tx = \"a;b\"\n\ty\n\tNew = \" \\t\\\"\\\\\"\n[b \"C\"]\n\tz = 2\n\
             \tz2 = \n[b \"c\"]\n\tz = 3\n"
        );
    }

    #[test]
    fn several_values_are_changed_only_when_all_are_meant() {
        let mut edited = document("[a]\nx=1\ny=2\nx=3");
        let result = edited.set("a.x".into(), "4".into(), false, |_| true);
        assert_eq!(result, Err(EditRefusal::Multiple));
        let result = edited.set("a.x".into(), "4".into(), false, |value| value == "1");
        assert_eq!(result, Ok(()));
        assert_eq!(text(&edited), "[a]\n\tx = 4\ny=2\nx=3");
        edited
            .set("a.x".into(), "5".into(), true, |_| true)
            .expect("all");
        assert_eq!(text(&edited), "[a]\ny=2\n\tx = 5\n");
        edited.add("a.x".into(), "6".into());
        assert_eq!(
            edited.unset("a.x".into(), false, |_| true),
            Err(EditRefusal::Multiple)
        );
        edited.unset("a.x".into(), true, |_| true).expect("all");
        assert_eq!(text(&edited), "[a]\ny=2\n");
        assert_eq!(
            edited.unset("a.x".into(), true, |_| true),
            Err(EditRefusal::NothingSet)
        );
    }

    #[test]
    fn empty_sections_go_unless_someone_commented_on_them() {
        let mut edited = document("[a]\n\tx = 1\n[b]\n\ty = 1\n# c\n[c]\n\tz = 1\n");
        edited.unset("a.x".into(), false, |_| true).expect("one");
        assert_eq!(text(&edited), "[b]\n\ty = 1\n# c\n[c]\n\tz = 1\n");
        edited.unset("c.z".into(), false, |_| true).expect("one");
        assert_eq!(text(&edited), "[b]\n\ty = 1\n# c\n[c]\n");
        edited.unset("b.y".into(), false, |_| true).expect("one");
        assert_eq!(text(&edited), "[b]\n# c\n[c]\n");
    }

    #[test]
    fn sections_are_renamed_and_removed() {
        let mut edited = document("[a \"B\"] x = 1\n\ty = 2\n[a.b]\n\tz\n[c]\n");
        let count = edited
            .rename_section("a.B".into(), Some("d.\"".into()))
            .expect("a name");
        assert_eq!(count, 1);
        assert_eq!(
            text(&edited),
            "[d \"\\\"\"]\n\tx = 1\n\ty = 2\n[a.b]\n\tz\n[c]\n"
        );
        assert_eq!(
            edited.rename_section("a.b".into(), None).expect("no name"),
            1
        );
        assert_eq!(text(&edited), "[d \"\\\"\"]\n\tx = 1\n\ty = 2\n[c]\n");
        assert!(
            edited
                .rename_section("c".into(), Some("x_y".into()))
                .is_err()
        );
    }
}
