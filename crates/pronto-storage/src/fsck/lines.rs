//! Checks of commits and tags: the header lines and the end of the header.

use bstr::ByteSlice;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_repository::refs::name;

use super::{Findings, Message};

/// The largest timestamp that does not overflow.
const LATEST: u128 = i64::MAX as u128;

/// The part of the header that was not parsed yet.
struct ObjectHeader<'a> {
    rest: &'a [u8],
}

impl<'a> ObjectHeader<'a> {
    /// Removes the next line if it starts with `key`. Returns the rest of this line, without its line
    /// feed.
    fn take(&mut self, key: &str) -> Option<HeaderLine<'a>> {
        let rest = self.rest.strip_prefix(key.as_bytes())?;
        let end = rest.find_byte(b'\n');
        let (text, rest) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        self.rest = rest;
        let ends = end.is_some();
        Some(HeaderLine { text, ends })
    }
}

/// The rest of a header line, and whether a line feed ends it.
#[derive(Clone, Copy)]
struct HeaderLine<'a> {
    text: &'a [u8],
    ends: bool,
}

impl HeaderLine<'_> {
    fn is_id(self, hash: Kind) -> bool {
        self.ends
            && self.text.len() == hash.len_in_hex()
            && self.text.iter().all(u8::is_ascii_hexdigit)
    }
}

/// Returns whether the header ends with an empty line and contains no NUL. Otherwise the object is not
/// checked further.
fn header_ends(content: &[u8], findings: &mut Findings<'_>) -> bool {
    let end = content.find(b"\n\n");
    let header = &content[..end.unwrap_or(content.len())];
    if let Some(at) = header.find_byte(0) {
        let text = format!("unterminated header: NUL at offset {at}");
        findings.report(Message::NulInHeader, text);
        return false;
    }
    if end.is_none() && !content.ends_with(b"\n") {
        findings.report(Message::UnterminatedHeader, "unterminated header");
        return false;
    }
    true
}

pub(super) fn check_commit(content: &[u8], hash: Kind, findings: &mut Findings<'_>) {
    if !header_ends(content, findings) {
        return;
    }
    let mut header = ObjectHeader { rest: content };
    let Some(tree) = header.take("tree ") else {
        findings.report(
            Message::MissingTree,
            "invalid format - expected 'tree' line",
        );
        return;
    };
    if !tree.is_id(hash) {
        let text = "invalid 'tree' line format - bad sha1";
        if findings.report(Message::BadTreeSha1, text) {
            return;
        }
    }
    while let Some(parent) = header.take("parent ") {
        if !parent.is_id(hash) {
            let text = "invalid 'parent' line format - bad sha1";
            if findings.report(Message::BadParentSha1, text) {
                return;
            }
        }
    }
    let mut authors = 0;
    while let Some(author) = header.take("author ") {
        authors += 1;
        if check_identity(author, findings) {
            return;
        }
    }
    let refused = match authors {
        0 => findings.report(
            Message::MissingAuthor,
            "invalid format - expected 'author' line",
        ),
        1 => false,
        _ => findings.report(
            Message::MultipleAuthors,
            "invalid format - multiple 'author' lines",
        ),
    };
    if refused {
        return;
    }
    let Some(committer) = header.take("committer ") else {
        findings.report(
            Message::MissingCommitter,
            "invalid format - expected 'committer' line",
        );
        return;
    };
    if !check_identity(committer, findings) && content.contains(&0) {
        findings.report(Message::NulInCommit, "NUL byte in the commit object body");
    }
}

pub(super) fn check_tag(content: &[u8], hash: Kind, findings: &mut Findings<'_>) {
    if !header_ends(content, findings) {
        return;
    }
    let mut header = ObjectHeader { rest: content };
    let Some(object) = header.take("object ") else {
        findings.report(
            Message::MissingObject,
            "invalid format - expected 'object' line",
        );
        return;
    };
    if !object.is_id(hash)
        && findings.report(
            Message::BadObjectSha1,
            "invalid 'object' line format - bad sha1",
        )
    {
        return;
    }
    let Some(kind) = header.take("type ") else {
        findings.report(
            Message::MissingTypeEntry,
            "invalid format - expected 'type' line",
        );
        return;
    };
    let cut = "invalid format - unexpected end after 'type' line";
    if !kind.ends {
        findings.report(Message::MissingType, cut);
        return;
    }
    if ObjectKind::from_bytes(kind.text).is_err()
        && findings.report(Message::BadType, "invalid 'type' value")
    {
        return;
    }
    let Some(tag) = header.take("tag ") else {
        findings.report(
            Message::MissingTagEntry,
            "invalid format - expected 'tag' line",
        );
        return;
    };
    if !tag.ends {
        findings.report(Message::MissingTag, cut);
        return;
    }
    check_tag_end(tag, header, findings);
}

/// Checks the name of a tag and the following header lines.
fn check_tag_end(tag: HeaderLine<'_>, mut header: ObjectHeader<'_>, findings: &mut Findings<'_>) {
    let reference = [b"refs/tags/", tag.text].concat();
    if !name::is_valid(reference.as_bstr(), name::Form::Full) {
        let text = format!("invalid 'tag' name: {}", tag.text.as_bstr());
        if findings.report(Message::BadTagName, text) {
            return;
        }
    }
    match header.take("tagger ") {
        None => {
            let text = "invalid format - expected 'tagger' line";
            if findings.report(Message::MissingTaggerEntry, text) {
                return;
            }
        }
        Some(tagger) => {
            check_identity(tagger, findings);
        }
    }
    if !header.rest.is_empty() && !header.rest.starts_with(b"\n") {
        let text = "invalid format - extra header(s) after 'tagger'";
        findings.report(Message::ExtraHeaderEntry, text);
    }
}

/// Returns whether the line `NAME <EMAIL> TIME ZONE` causes a rejection.
fn check_identity(line: HeaderLine<'_>, findings: &mut Findings<'_>) -> bool {
    match wrong_with_identity(line) {
        Some((message, text)) => {
            let text = format!("invalid author/committer line - {text}");
            findings.report(message, text)
        }
        None => false,
    }
}

fn wrong_with_identity(line: HeaderLine<'_>) -> Option<(Message, &'static str)> {
    let text = line.text;
    if text.starts_with(b"<") {
        return Some((
            Message::MissingNameBeforeEmail,
            "missing space before email",
        ));
    }
    let open = text.find_byteset(b"<>");
    let open = match open.map(|at| (at, text[at])) {
        Some((_, b'>')) => return Some((Message::BadName, "bad name")),
        Some((at, _)) => at,
        None => return Some((Message::MissingEmail, "missing email")),
    };
    if text[open - 1] != b' ' {
        return Some((
            Message::MissingSpaceBeforeEmail,
            "missing space before email",
        ));
    }
    let email = &text[open + 1..];
    let close = match email.find_byteset(b"<>").map(|at| (at, email[at])) {
        Some((at, b'>')) => at,
        _ => return Some((Message::BadEmail, "bad email")),
    };
    let Some(date) = email[close + 1..].strip_prefix(b" ") else {
        return Some((Message::MissingSpaceBeforeDate, "missing space before date"));
    };
    let date = date.trim_start_with(|character| matches!(character, ' ' | '\t'));
    if !date.first().is_some_and(u8::is_ascii_digit) {
        return Some((Message::BadDate, "bad date"));
    }
    if date.starts_with(b"0") && date.get(1) != Some(&b' ') {
        return Some((Message::ZeroPaddedDate, "zero-padded date"));
    }
    let (time, len) = number(date);
    if time > LATEST {
        return Some((Message::BadDateOverflow, "date causes integer overflow"));
    }
    if date.get(len) != Some(&b' ') {
        return Some((Message::BadDate, "bad date"));
    }
    let zone = &date[len + 1..];
    let good = zone.len() == 5
        && matches!(zone[0], b'+' | b'-')
        && zone[1..].iter().all(u8::is_ascii_digit)
        && line.ends;
    (!good).then_some((Message::BadTimezone, "bad time zone"))
}

/// Returns the number at the start of `text`, at most 2^64, and the count of its digits.
fn number(text: &[u8]) -> (u128, usize) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(value, len), digit| {
        let value = value * 10 + u128::from(digit - b'0');
        (value.min(1 << 64), len + 1)
    })
}

/// Returns the error of Git's own parser for a commit that it cannot parse.
pub(super) fn unusable_commit(content: &[u8], id: &ObjectId, hash: Kind) -> Option<String> {
    let digits = hash.len_in_hex();
    let id_at = |bytes: &[u8]| bytes.iter().take(digits).all(u8::is_ascii_hexdigit);
    let tree = content.strip_prefix(b"tree ");
    let tree = tree.filter(|tree| tree.len() > digits + 1 && tree[digits] == b'\n');
    let Some(tree) = tree else {
        return Some(format!("bogus commit object {id}"));
    };
    if !id_at(tree) {
        return Some(format!("bad tree pointer in commit {id}"));
    }
    let mut rest = &tree[digits + 1..];
    while let Some(parent) = rest.strip_prefix(b"parent ") {
        if parent.len() <= digits {
            break;
        }
        if !id_at(parent) || parent[digits] != b'\n' {
            return Some(format!("bad parents in commit {id}"));
        }
        rest = &parent[digits + 1..];
    }
    None
}

/// Returns the error of Git's own parser for a tag that it cannot parse; an empty text if Git prints no
/// reason.
pub(super) fn unusable_tag(content: &[u8], id: &ObjectId, hash: Kind) -> Option<String> {
    const LONGEST_TYPE: usize = 19;
    let mut header = ObjectHeader { rest: content };
    let object = header.take("object ");
    let kind = header.take("type ");
    let kind = kind.filter(|kind| kind.ends && kind.text.len() <= LONGEST_TYPE);
    let (Some(_), Some(kind)) = (object.filter(|object| object.is_id(hash)), kind) else {
        return Some(String::new());
    };
    if ObjectKind::from_bytes(kind.text).is_err() {
        let kind = kind.text.as_bstr();
        return Some(format!("unknown tag type '{kind}' in {id}"));
    }
    match header.take("tag ") {
        Some(tag) if tag.ends => None,
        _ => Some(String::new()),
    }
}
