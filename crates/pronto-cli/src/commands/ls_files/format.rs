//! The custom format of entries (`--format`).

use crate::CliError;
use bstr::{BStr, ByteSlice};
use gix_object::Kind;
use pronto::Repository;
use pronto::status::LineEndings;
use pronto_index::{EntryRef, mode};
use std::io::Write;

/// An entry with the values of its fields.
pub(super) struct Line<'a> {
    pub(super) repository: &'a Repository,
    pub(super) entry: &'a EntryRef<'a>,
    /// The id, abbreviated on request.
    pub(super) id: &'a BStr,
    /// The path, quoted if necessary.
    pub(super) path: &'a BStr,
}

impl Line<'_> {
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
pub(super) struct Format(Vec<Part>);

#[derive(Debug)]
enum Part {
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

impl Format {
    /// Returns whether the format shows line endings (`%(eolinfo:index)`, `%(eolinfo:worktree)`,
    /// `%(eolattr)`).
    pub(super) fn shows_endings(&self) -> bool {
        let shows = |part: &Part| {
            matches!(
                part,
                Part::EolInIndex | Part::EolInWorktree | Part::EolByAttributes
            )
        };
        self.0.iter().any(shows)
    }

    pub(super) fn parse(text: &[u8]) -> Result<Format, CliError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find_byte(b'%') {
            parts.push(Part::Text(rest[..at].to_vec()));
            rest = &rest[at + 1..];
            if let Some((byte, length)) = literal(rest) {
                parts.push(Part::Text(vec![byte]));
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
                        b"objectmode" => Part::Mode,
                        b"objectname" => Part::Name,
                        b"objecttype" => Part::Type,
                        b"objectsize" => Part::Size { padded: false },
                        b"objectsize:padded" => Part::Size { padded: true },
                        b"stage" => Part::Stage,
                        b"path" => Part::Path,
                        b"eolinfo:index" => Part::EolInIndex,
                        b"eolinfo:worktree" => Part::EolInWorktree,
                        b"eolattr" => Part::EolByAttributes,
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
        parts.push(Part::Text(rest.to_vec()));
        Ok(Format(parts))
    }

    pub(super) fn write(
        &self,
        out: &mut impl Write,
        line: &Line<'_>,
        endings: Option<&mut LineEndings<'_>>,
    ) -> Result<(), CliError> {
        let mut endings = endings;
        let entry = line.entry;
        for part in &self.0 {
            match part {
                Part::Text(text) => out.write_all(text)?,
                Part::Mode => write!(out, "{:06o}", entry.mode)?,
                Part::Name => out.write_all(line.id)?,
                Part::Type => write!(out, "{}", kind_of(entry.mode))?,
                Part::Size { padded } => {
                    let width = if *padded { 7 } else { 0 };
                    write!(out, "{:>width$}", line.size()?)?;
                }
                Part::Stage => write!(out, "{}", entry.stage())?,
                Part::Path => out.write_all(line.path)?,
                Part::EolInIndex | Part::EolInWorktree | Part::EolByAttributes => {
                    let Some(endings) = &mut endings else {
                        continue;
                    };
                    let words = match part {
                        Part::EolInIndex => endings.in_index(entry)?,
                        Part::EolInWorktree => endings.in_worktree(entry.path),
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
