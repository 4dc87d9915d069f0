//! Files with the attribute `export-subst`: `$Format:...$` is replaced by what the commit has for the
//! placeholders between (`gitattributes(5)`; the placeholders are those of `git log --format`).
//!
//! Placeholders that are not exactly as Git's here are an error of kind `Unsupported`, so that the call goes
//! to git.

mod commit;
mod decorations;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto_hash::ObjectId;

use super::unsupported;
use crate::{Repository, Result};
use commit::{Commit, Person};

/// The start of what is replaced.
const START: &[u8] = b"$Format:";

/// Replaces placeholders by what one commit has for them.
pub(super) struct Substitution<'r> {
    repository: &'r Repository,
    id: ObjectId,
    commit: Commit,
    /// Whether the client may see all refs.
    shows_refs: bool,
}

/// A change before the value of a placeholder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Line feeds before an empty value are removed (`%-`).
    RemoveLines,
    /// A value that is not empty follows this (`%+`, `% `).
    Insert(u8),
}

impl<'r> Substitution<'r> {
    /// Reads the commit.
    pub(super) fn new(repository: &'r Repository, id: ObjectId, is_served: bool) -> Result<Self> {
        let keys = ["transfer.hiderefs", "uploadpack.hiderefs"];
        let hides = keys
            .iter()
            .any(|key| repository.config().raw(key).is_some());
        Ok(Substitution {
            commit: Commit::read(repository, id)?,
            repository,
            id,
            shows_refs: !(is_served && hides),
        })
    }

    /// Returns the content with its placeholders replaced.
    ///
    /// # Errors
    /// As said for unknown placeholders; or an object cannot be read.
    pub(super) fn apply(&self, content: &[u8]) -> Result<Vec<u8>> {
        let (mut out, mut rest) = (Vec::with_capacity(content.len()), content);
        while let Some(at) = rest.find(START) {
            let format = &rest[at + START.len()..];
            let Some(end) = format.find_byte(b'$') else {
                break;
            };
            out.push_str(&rest[..at]);
            self.expand(format[..end].as_bstr(), &mut out)?;
            rest = &format[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn expand(&self, format: &BStr, out: &mut Vec<u8>) -> Result<()> {
        if format.contains(&0) {
            return Err(unsupported("a zero in a format of export-subst"));
        }
        let mut rest = format.as_bytes();
        while let Some(at) = rest.find_byte(b'%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let before = match rest.first() {
                None | Some(b'%') => {
                    out.push(b'%');
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                Some(b'-') => Before::RemoveLines,
                Some(b'+') => Before::Insert(b'\n'),
                Some(b' ') => Before::Insert(b' '),
                Some(_) => Before::Nothing,
            };
            if before != Before::Nothing {
                rest = &rest[1..];
            }
            let (value, length) = self.value(rest)?;
            match before {
                Before::RemoveLines if value.is_empty() => {
                    out.truncate(out.trim_end_with(|c| c == '\n').len());
                }
                Before::Insert(byte) if !value.is_empty() => out.push(byte),
                _ => {}
            }
            out.push_str(&value);
            rest = &rest[length..];
        }
        out.push_str(rest);
        Ok(())
    }

    /// Returns the value of the placeholder at the start of `rest`, and the length of the placeholder.
    fn value(&self, rest: &[u8]) -> Result<(BString, usize)> {
        let (repository, commit) = (self.repository, &self.commit);
        let short = |id: &ObjectId| repository.abbreviate(id);
        let joined = |ids: Vec<String>| BString::from(ids.join(" "));
        let value: BString = match rest {
            [b'n', ..] => "\n".into(),
            [b'x', digits @ ..] => return hexadecimal(digits),
            [b'a', part, ..] => return self.person(&commit.author, *part),
            [b'c', part, ..] => return self.person(&commit.committer, *part),
            [b'H', ..] => self.id.to_string().into(),
            [b'h', ..] => short(&self.id)?.into(),
            [b'T', ..] => commit.tree.to_string().into(),
            [b't', ..] => short(&commit.tree)?.into(),
            [b'P', ..] => joined(commit.parents.iter().map(ToString::to_string).collect()),
            [b'p', ..] => joined(commit.parents.iter().map(short).collect::<Result<_>>()?),
            [b's', ..] => commit.subject(),
            [b'f', ..] => commit.file_name(),
            [b'b', ..] => commit.body().into(),
            [b'B', ..] => commit.message.clone(),
            [b'e', ..] => commit.encoding.clone().unwrap_or_default(),
            [b'D', ..] => self.decorations()?,
            [b'd', ..] => match self.decorations()? {
                empty if empty.is_empty() => empty,
                decorations => format!(" ({decorations})").into(),
            },
            _ => return Err(unknown()),
        };
        Ok((value, 1))
    }

    fn person(&self, person: &Person, part: u8) -> Result<(BString, usize)> {
        let value = match part {
            b'N' | b'E' | b'L' if commit::has_mailmap(self.repository)? => return Err(unknown()),
            b'n' | b'N' => person.name.clone(),
            b'e' | b'E' => person.email.clone(),
            b'l' | b'L' => {
                let end = person.email.find_byte(b'@');
                person.email[..end.unwrap_or(person.email.len())].into()
            }
            b't' => person.seconds.to_string().into(),
            _ => person.date(part)?.ok_or_else(unknown)?.into(),
        };
        Ok((value, 2))
    }

    fn decorations(&self) -> Result<BString> {
        match self.shows_refs {
            true => decorations::of(self.repository, &self.id),
            false => Err(unsupported(
                "names of refs in an archive where some are hidden",
            )),
        }
    }
}

fn unknown() -> crate::Error {
    unsupported("a placeholder of export-subst in the archive")
}

/// Returns the byte of `%x`, with the length of the placeholder.
fn hexadecimal(digits: &[u8]) -> Result<(BString, usize)> {
    let digits = digits.get(..2).and_then(|digits| digits.to_str().ok());
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    Ok(([byte.ok_or_else(unknown)?].into(), 3))
}
