//! `--format`: entries in a custom format.

use crate::CliError;
use bstr::{BStr, ByteSlice};
use pronto::status::LineEndings;
use pronto_index::EntryRef;
use std::io::Write;

/// A parsed format.
#[derive(Debug)]
pub(super) struct Format(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    Mode,
    Name,
    Stage,
    Path,
    EolInIndex,
    EolInWorktree,
    EolByAttributes,
}

impl Format {
    /// Returns whether line endings are shown.
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
            rest = match rest.first() {
                Some(b'%') => {
                    parts.push(Part::Text(b"%".to_vec()));
                    &rest[1..]
                }
                Some(b'n') => {
                    parts.push(Part::Text(b"\n".to_vec()));
                    &rest[1..]
                }
                Some(b'x') => {
                    let digits = rest.get(1..3).and_then(|digits| digits.to_str().ok());
                    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    let byte = byte.ok_or_else(|| CliError::unsupported("this --format"))?;
                    parts.push(Part::Text(vec![byte]));
                    &rest[3..]
                }
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
        entry: &EntryRef<'_>,
        id: &BStr,
        path: &BStr,
        endings: Option<&mut LineEndings<'_>>,
    ) -> Result<(), CliError> {
        let mut endings = endings;
        for part in &self.0 {
            match part {
                Part::Text(text) => out.write_all(text)?,
                Part::Mode => write!(out, "{:06o}", entry.mode)?,
                Part::Name => out.write_all(id)?,
                Part::Stage => write!(out, "{}", entry.stage())?,
                Part::Path => out.write_all(path)?,
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
