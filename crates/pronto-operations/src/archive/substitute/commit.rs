//! The commit whose values replace placeholders.

use bstr::{BString, ByteSlice};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use pronto_hash::ObjectId;
use pronto_object::{CommitRef, IdentityRef};

use super::super::unsupported;
use crate::{Error, Repository, Result};

/// A parsed commit.
pub(super) struct ParsedCommit {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    pub(super) author: Person,
    pub(super) committer: Person,
    pub(super) encoding: Option<BString>,
    pub(super) message: BString,
}

/// An author or committer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: BString,
    pub(super) email: BString,
    pub(super) seconds: i64,
    /// The time zone as text: a sign and four digits.
    zone: String,
}

fn malformed() -> Error {
    unsupported("'export-subst' for a malformed commit")
}

impl ParsedCommit {
    /// Reads the commit `id`.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](crate::ErrorKind::Unsupported) if the commit is malformed or not
    /// in UTF-8, and with other kinds if the commit cannot be read.
    pub(super) fn read(repository: &Repository, id: ObjectId) -> Result<Self> {
        let mut content = Vec::new();
        let links = repository.commit_links(&id, &mut content)?;
        let commit = CommitRef::new(&content);
        let person = |name| {
            let line = commit.last_header(name);
            line.and_then(|line| Person::parse(line))
                .ok_or_else(malformed)
        };
        let encoding = commit.last_header("encoding").map(BString::from);
        let is_utf8 = |name: &BString| {
            name.eq_ignore_ascii_case(b"utf-8") || name.eq_ignore_ascii_case(b"utf8")
        };
        if content.contains(&0)
            || !content.contains_str("\n\n")
            || encoding.as_ref().is_some_and(|name| !is_utf8(name))
        {
            return Err(malformed());
        }
        Ok(ParsedCommit {
            tree: links.tree,
            parents: links.parents,
            author: person("author")?,
            committer: person("committer")?,
            encoding,
            message: commit.message().into(),
        })
    }

    /// Returns the lines of the first paragraph, and the text after it and after the following
    /// blank lines.
    fn paragraph(&self) -> (Vec<&[u8]>, &[u8]) {
        let mut rest = skip_blank(&self.message);
        let mut lines = Vec::new();
        while let Some(line) = rest.lines_with_terminator().next() {
            rest = &rest[line.len()..];
            match trimmed(line) {
                [] => break,
                line => lines.push(line),
            }
        }
        (lines, skip_blank(rest))
    }

    /// Returns the subject as one line.
    pub(super) fn subject(&self) -> BString {
        bstr::join(" ", self.paragraph().0).into()
    }

    /// Returns the message after the subject.
    pub(super) fn body(&self) -> &[u8] {
        self.paragraph().1
    }

    /// Returns the sanitized subject line, suitable for a file name (`%f`).
    pub(super) fn file_name(&self) -> BString {
        let start = skip_blank(&self.message);
        let line = start.lines().next().unwrap_or_default();
        let mut name = Vec::new();
        // Whether a character was left out since the last kept one; not counted at the start.
        let mut is_gap = false;
        let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
        for (at, &byte) in line.iter().enumerate() {
            if !is_kept(byte) {
                is_gap = !name.is_empty();
                continue;
            }
            if byte == b'.' && at > 0 && line[at - 1] == b'.' {
                continue;
            }
            if std::mem::take(&mut is_gap) {
                name.push(b'-');
            }
            name.push(byte);
        }
        name.trim_end_with(|c| c == '.' || c == '-').into()
    }
}

impl Person {
    /// Parses `NAME <EMAIL> SECONDS ZONE`. Returns `None` for everything else.
    fn parse(line: &[u8]) -> Option<Self> {
        let identity = IdentityRef::parse(line)?;
        let (name, email) = (identity.name, identity.email);
        let (seconds, zone) = (
            identity.seconds?.to_str().ok()?,
            identity.zone?.to_str().ok()?,
        );
        let space = if name.is_empty() { "" } else { " " };
        let usual = format!("{space}<{email}> {seconds} {zone}");
        let is_usual =
            zone.len() == 5 && line.strip_prefix(name.as_bytes()) == Some(usual.as_bytes());
        Some(Person {
            name: name.into(),
            email: email.into(),
            seconds: seconds.parse().ok()?,
            zone: zone.to_owned(),
        })
        .filter(|_| is_usual)
    }

    /// Returns the date in the format of a placeholder, or `None` for unknown and relative formats.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](crate::ErrorKind::Unsupported) if the date is out of range.
    pub(super) fn date(&self, form: u8) -> Result<Option<String>> {
        let number: i64 = self.zone.parse().map_err(|_| malformed())?;
        let zone = format!("{number:+05}");
        let minutes = number.abs() / 100 * 60 + number.abs() % 100;
        let moved = (self.seconds).checked_add(minutes * 60 * number.signum());
        let moment = moved.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let moment = moment
            .ok_or_else(malformed)?
            .to_zoned(TimeZone::UTC)
            .datetime();
        let show = |format: &str| Some(moment.strftime(format).to_string());
        Ok(match form {
            b'd' => show("%a %b %-d %H:%M:%S %Y").map(|date| format!("{date} {zone}")),
            b'D' => show("%a, %-d %b %Y %H:%M:%S").map(|date| format!("{date} {zone}")),
            b'i' => show("%Y-%m-%d %H:%M:%S").map(|date| format!("{date} {zone}")),
            b's' => show("%Y-%m-%d"),
            b'I' => Some(strict(moment, &zone)),
            _ => None,
        })
    }
}

/// Returns a date in strict ISO 8601 format, in its own time zone.
fn strict(moment: DateTime, zone: &str) -> String {
    let date = moment.strftime("%Y-%m-%dT%H:%M:%S");
    match zone {
        "+0000" => format!("{date}Z"),
        _ => format!("{date}{}:{}", &zone[..3], &zone[3..]),
    }
}

/// Returns a line without white space at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !is_space(*byte));
    &line[..end.map_or(0, |end| end + 1)]
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn skip_blank(text: &[u8]) -> &[u8] {
    let blank = text
        .lines_with_terminator()
        .take_while(|line| trimmed(line).is_empty());
    &text[blank.map(<[u8]>::len).sum::<usize>()..]
}

/// Returns whether a mailmap may change names and addresses (`gitmailmap(5)`).
///
/// # Errors
/// Fails if the tree of `HEAD` cannot be read.
pub(super) fn has_mailmap(repository: &Repository) -> Result<bool> {
    let config = repository.config();
    if config.raw("mailmap.file").is_some() || config.raw("mailmap.blob").is_some() {
        return Ok(true);
    }
    match repository.work_tree() {
        Some(top) => Ok(top.join(".mailmap").symlink_metadata().is_ok()),
        None => {
            let found =
                repository.try_resolve("HEAD:.mailmap", crate::revision::ExpectedType::Anything)?;
            Ok(found.is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_taken_apart() {
        let person = Person::parse(b"A U Thor <a@b> 1112911993 -0730").expect("it is one");
        assert_eq!(
            (person.name.to_string(), person.seconds),
            ("A U Thor".into(), 1_112_911_993)
        );
        let date = |form| person.date(form).expect("it is near").expect("it is known");
        assert_eq!(date(b'd'), "Thu Apr 7 14:43:13 2005 -0730");
        assert_eq!(date(b'I'), "2005-04-07T14:43:13-07:30");
        for line in [
            "A <a@b>",
            "A <a@b> 1 0000",
            "A <a>b> 1 +0000",
            "A a@b 1 +0000",
            "<> x +0000",
        ] {
            assert_eq!(Person::parse(line.as_bytes()), None, "{line}");
        }
    }
}
