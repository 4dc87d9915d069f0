//! The links of objects: what commits, trees and tags point to.

use bstr::{BStr, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::short::Short as _;
use pronto_odb::Store;

use crate::errors::from_odb;
use crate::{Error, ErrorKind, Result};

/// The links of a commit: its tree and parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitLinks {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order; none where history was cut off.
    pub parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970.
    pub time: i64,
}

/// Returns the links of the commit `id` of `store`, as stored. `buffer` holds its content
/// afterwards.
///
/// # Errors
/// It does not exist, is no commit, or is malformed.
pub fn links_in(store: &Store, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
    let fail = |message: &str| Err(Error::new(ErrorKind::Object, message).on_object(id));
    match store.find(id, buffer).map_err(from_odb)? {
        Some(ObjectKind::Commit) => {}
        Some(_) => return fail("not a commit"),
        None => return fail("could not read commit"),
    }
    match parse_commit(buffer) {
        Some(links) => Ok(links),
        None => fail("malformed commit"),
    }
}

/// Parses the links of a commit.
pub fn parse_commit(commit: &[u8]) -> Option<CommitLinks> {
    let mut lines = commit.each_line();
    let tree = pronto_hash::parse_hex(lines.next()?.strip_prefix(b"tree ")?).ok()?;
    let mut parents = Vec::new();
    let mut line = lines.next()?;
    while let Some(parent) = line.strip_prefix(b"parent ") {
        parents.push(pronto_hash::parse_hex(parent).ok()?);
        line = lines.next()?;
    }
    let committer = std::iter::once(line)
        .chain(lines)
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix(b"committer "));
    let time = committer.and_then(seconds).unwrap_or(0);
    Some(CommitLinks {
        tree,
        parents,
        time,
    })
}

/// The seconds in a line that ends with a name, an address, a time and a zone.
fn seconds(who: &[u8]) -> Option<i64> {
    let after = who.last_position_of(b'>')? + 1;
    who[after..].fields().next()?.to_str().ok()?.parse().ok()
}

/// Returns the time, in seconds since 1970, in the header line `field` (such as `tagger`) of a commit or a tag; `None` if
/// there is no such line, or it has no time.
pub fn header_time(content: &[u8], field: &str) -> Option<i64> {
    let mut lines = content.each_line().take_while(|line| !line.is_empty());
    let who = lines.find_map(|line| line.strip_prefix(field.as_bytes())?.strip_prefix(b" "))?;
    seconds(who).filter(|seconds| *seconds >= 0)
}

/// The object that a tag names in its first line.
pub fn tag_target(tag: &[u8]) -> Option<ObjectId> {
    let line = tag.each_line().next()?;
    pronto_hash::parse_hex(line.strip_prefix(b"object ")?).ok()
}

/// The links of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagLinks<'a> {
    /// The object that it names.
    pub target: ObjectId,
    /// The type that it gives of the object.
    pub kind: ObjectKind,
    /// Its name, without `refs/tags/`.
    pub name: &'a BStr,
}

/// Parses the links of a tag.
pub fn parse_tag(tag: &[u8]) -> Option<TagLinks<'_>> {
    let target = tag_target(tag)?;
    let mut lines = tag.each_line().skip(1).take_while(|line| !line.is_empty());
    let kind = ObjectKind::from_bytes(lines.next()?.strip_prefix(b"type ")?).ok()?;
    let name = lines.find_map(|line| line.strip_prefix(b"tag "))?;
    Some(TagLinks {
        target,
        kind,
        name: name.as_bstr(),
    })
}

/// The entries of a tree: whether it is a directory, and its id. Ends early at a broken one.
pub fn tree_entries(content: &[u8], id_length: usize) -> RawEntries<'_> {
    RawEntries { content, id_length }
}

/// See [`tree_entries`].
#[derive(Clone, Debug)]
pub struct RawEntries<'a> {
    content: &'a [u8],
    id_length: usize,
}

/// One entry of a tree.
#[derive(Clone, Copy, Debug)]
pub struct RawEntry<'a> {
    /// The mode, in octal digits.
    pub mode: &'a [u8],
    /// The name, without slashes.
    pub name: &'a [u8],
    /// The raw object id.
    pub id: &'a [u8],
}

impl RawEntry<'_> {
    /// Returns its size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.mode.len() + self.name.len() + self.id.len() + 2
    }

    /// Whether it is a tree.
    pub fn is_directory(&self) -> bool {
        matches!(self.mode, b"40000" | b"040000")
    }

    /// Whether it is a commit of another repository.
    pub fn is_submodule(&self) -> bool {
        self.mode == b"160000"
    }
}

impl<'a> Iterator for RawEntries<'a> {
    type Item = RawEntry<'a>;

    fn next(&mut self) -> Option<RawEntry<'a>> {
        let space = self.content.iter().position(|&byte| byte == b' ')?;
        let (mode, rest) = (&self.content[..space], &self.content[space + 1..]);
        let end = rest.position_of(0)?;
        let id = rest.get(end + 1..end + 1 + self.id_length)?;
        self.content = &rest[end + 1 + self.id_length..];
        let name = &rest[..end];
        Some(RawEntry { mode, name, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_header_lines_only() {
        let tag = b"object x\ntag v\ntagger a <a@b> 17 +0100\n\ntagger b <> 3 +0000\n";
        assert_eq!(header_time(tag, "tagger"), Some(17));
        let none = [
            "object x\n\ntagger b <> 3 +0000\n",
            "tagger a <a@b> x\n\n",
            "tagger t <> -1 +0000\n",
            "tagger t <> 99999999999999999999 +0000\n",
            "tagger\n",
        ];
        for text in none {
            assert_eq!(header_time(text.as_bytes(), "tagger"), None, "{text}");
        }
    }
}
