//! The custom format of entries (`--format`).

use crate::CliError;
use bstr::{BStr, ByteSlice};
use gix_object::Kind;
use pronto::Repository;
use pronto::status::LineEndings;
use pronto_index::{EntryRef, mode};
use std::io::Write;

/// An entry with the values of its fields.
pub(super) struct ListLine<'a> {
    pub(super) repository: &'a Repository,
    pub(super) entry: &'a EntryRef<'a>,
    /// The id, abbreviated on request.
    pub(super) id: &'a BStr,
    /// The path, quoted if necessary.
    pub(super) path: &'a BStr,
}

impl ListLine<'_> {
    /// Returns the size of a blob. Other objects have no size.
    fn size(&self) -> Result<String, CliError> {
        if kind_of(self.entry.mode) != Kind::Blob {
            return Ok("-".to_owned());
        }
        match self.repository.objects()?.header(self.entry.id)? {
            Some(header) => Ok(header.size.to_string()),
            None => {
                let message = format!("could not get object info about '{}'", self.entry.id);
                Err(CliError::fatal(message))
            }
        }
    }
}

/// A parsed format.
#[derive(Debug)]
pub(super) struct ListFormat(Vec<ListFormatPart>);

#[derive(Debug)]
enum ListFormatPart {
    Text(Vec<u8>),
    Mode,
    Name,
    Type,
    Size { padded: bool },
    Stage,
    Path,
    EolInIndex,
    EolInWorktree,
    EolByAttributes,
}

impl ListFormat {
    /// Returns whether the format shows line endings (`%(eolinfo:index)`, `%(eolinfo:worktree)`,
    /// `%(eolattr)`).
    pub(super) fn shows_endings(&self) -> bool {
        let shows = |part: &ListFormatPart| {
            matches!(
                part,
                ListFormatPart::EolInIndex
                    | ListFormatPart::EolInWorktree
                    | ListFormatPart::EolByAttributes
            )
        };
        self.0.iter().any(shows)
    }

    pub(super) fn parse(text: &[u8]) -> Result<ListFormat, CliError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find_byte(b'%') {
            parts.push(ListFormatPart::Text(rest[..at].to_vec()));
            rest = &rest[at + 1..];
            if let Some((byte, length)) = literal(rest) {
                parts.push(ListFormatPart::Text(vec![byte]));
                rest = &rest[length..];
                continue;
            }
            rest = match rest.first() {
                Some(b'(') => {
                    let end = rest.find_byte(b')').ok_or_else(|| {
                        let text = rest.as_bstr();
                        CliError::fatal(format!(
                            "bad ls-files format: element '{text}' does not end in ')'"
                        ))
                    })?;
                    parts.push(match &rest[1..end] {
                        b"objectmode" => ListFormatPart::Mode,
                        b"objectname" => ListFormatPart::Name,
                        b"objecttype" => ListFormatPart::Type,
                        b"objectsize" => ListFormatPart::Size { padded: false },
                        b"objectsize:padded" => ListFormatPart::Size { padded: true },
                        b"stage" => ListFormatPart::Stage,
                        b"path" => ListFormatPart::Path,
                        b"eolinfo:index" => ListFormatPart::EolInIndex,
                        b"eolinfo:worktree" => ListFormatPart::EolInWorktree,
                        b"eolattr" => ListFormatPart::EolByAttributes,
                        other => {
                            let other = other.as_bstr();
                            let message = format!("bad ls-files format: %({other})");
                            return Err(CliError::fatal(message));
                        }
                    });
                    &rest[end + 1..]
                }
                _ => {
                    let text = rest.as_bstr();
                    return Err(CliError::fatal(format!(
                        "bad ls-files format: element '{text}' does not start with '('"
                    )));
                }
            };
        }
        parts.push(ListFormatPart::Text(rest.to_vec()));
        Ok(ListFormat(parts))
    }

    pub(super) fn write(
        &self,
        out: &mut impl Write,
        line: &ListLine<'_>,
        endings: Option<&mut LineEndings<'_>>,
    ) -> Result<(), CliError> {
        let mut endings = endings;
        let entry = line.entry;
        for part in &self.0 {
            match part {
                ListFormatPart::Text(text) => out.write_all(text)?,
                ListFormatPart::Mode => write!(out, "{:06o}", entry.mode)?,
                ListFormatPart::Name => out.write_all(line.id)?,
                ListFormatPart::Type => write!(out, "{}", kind_of(entry.mode))?,
                ListFormatPart::Size { padded } => {
                    let width = if *padded { 7 } else { 0 };
                    write!(out, "{:>width$}", line.size()?)?;
                }
                ListFormatPart::Stage => write!(out, "{}", entry.stage())?,
                ListFormatPart::Path => out.write_all(line.path)?,
                ListFormatPart::EolInIndex
                | ListFormatPart::EolInWorktree
                | ListFormatPart::EolByAttributes => {
                    let Some(endings) = &mut endings else {
                        continue;
                    };
                    let words = match part {
                        ListFormatPart::EolInIndex => endings.in_index(entry)?,
                        ListFormatPart::EolInWorktree => endings.in_worktree(entry.path),
                        _ => endings.by_attributes(entry.path)?,
                    };
                    out.write_all(words.as_bytes())?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the byte that the escape after a percent sign stands for, and the length of the escape.
fn literal(text: &[u8]) -> Option<(u8, usize)> {
    match text {
        [b'%', ..] => Some((b'%', 1)),
        [b'n', ..] => Some((b'\n', 1)),
        [b'x', high, low, ..] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let byte = digit(*high)? * 16 + digit(*low)?;
            Some((byte as u8, 3))
        }
        _ => None,
    }
}

/// Returns the type of the object that an entry with this mode names.
fn kind_of(entry_mode: u32) -> Kind {
    match entry_mode {
        mode::GITLINK => Kind::Commit,
        mode::TREE => Kind::Tree,
        _ => Kind::Blob,
    }
}
