//! The entries of a tree object in index order. Malformed trees may have another order and duplicate
//! names.

use bstr::{BStr, ByteSlice};
use gix_object::TreeRefIter;
use gix_object::tree::{EntryMode, EntryRef, name_order};

use pronto_hash::{ObjectId, oid};

use super::TreeId;
use crate::tree_list::ListedTreeEntry;
use crate::{Error, ErrorKind};

/// An iterator over the entries of one tree with a lookahead. It owns the content of the tree, so that
/// a walk can keep trees on an explicit stack.
pub(super) struct WalkedEntries {
    bytes: Vec<u8>,
    tree: TreeId,
    source: EntryOrder,
    peeked: Option<Located>,
}

enum EntryOrder {
    /// The entries as stored, with the position of the next one.
    AsStored(usize),
    /// The sorted entries. Git reads trees in another order, so they are sorted.
    Sorted(std::vec::IntoIter<Located>),
}

/// An entry, as positions in the content of its tree.
#[derive(Clone, Copy)]
struct Located {
    mode: EntryMode,
    name_start: usize,
    id_start: usize,
}

impl WalkedEntries {
    /// Iterates over the entries of the tree `bytes` as stored.
    pub(super) fn as_stored(bytes: Vec<u8>, tree: TreeId) -> Self {
        Self::new(bytes, tree, EntryOrder::AsStored(0))
    }

    fn new(bytes: Vec<u8>, tree: TreeId, source: EntryOrder) -> Self {
        WalkedEntries {
            bytes,
            tree,
            source,
            peeked: None,
        }
    }

    /// Iterates over the entries of the tree `bytes`, which is at `path`, in order. Costs a pass over
    /// the bytes, and memory only if they are stored in another order.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::HostilePath`] if two entries have the same name, even if one is a file
    /// and the other a directory, or [`ErrorKind::CorruptObject`] if the tree is malformed.
    pub(super) fn checked(bytes: Vec<u8>, tree: TreeId, path: &BStr) -> Result<Self, Error> {
        match look_over(&bytes, kind(tree).len_in_bytes()) {
            NameOrder::Ordered => return Ok(Self::as_stored(bytes, tree)),
            NameOrder::Twice(name) => return Err(twice(name, tree, path)),
            NameOrder::NoMode => return Err(broken(tree, "malformed mode in tree entry")),
            NameOrder::Unordered => {}
        }
        let sorted = sorted(&bytes, tree)?;
        let mut names = Beginnings::default();
        let mut all = sorted.iter().map(|entry| entry.name(&bytes));
        if let Some(name) = all.find(|name| names.has(name)) {
            return Err(twice(name, tree, path));
        }
        Ok(Self::new(
            bytes,
            tree,
            EntryOrder::Sorted(sorted.into_iter()),
        ))
    }

    /// Does the same as [`checked`](Self::checked), but skips all except the first of entries with the
    /// same name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::CorruptObject`] if the tree is out of order and malformed.
    pub(super) fn in_order(bytes: Vec<u8>, tree: TreeId) -> Result<Self, Error> {
        if look_over(&bytes, kind(tree).len_in_bytes()) == NameOrder::Ordered {
            return Ok(Self::as_stored(bytes, tree));
        }
        let mut sorted = sorted(&bytes, tree)?;
        let mut names = Beginnings::default();
        sorted.retain(|entry| !names.has(entry.name(&bytes)));
        Ok(Self::new(
            bytes,
            tree,
            EntryOrder::Sorted(sorted.into_iter()),
        ))
    }

    /// Returns the next entry without removing it.
    pub(super) fn next(&mut self) -> Result<Option<EntryRef<'_>>, Error> {
        if self.peeked.is_none() {
            self.peeked = match &mut self.source {
                EntryOrder::AsStored(at) => locate(&self.bytes, at, self.tree)?,
                EntryOrder::Sorted(entries) => entries.next(),
            };
        }
        Ok(self.peek())
    }

    /// Returns the entry that [`next`](Self::next) has returned, if it was not removed.
    pub(super) fn peek(&self) -> Option<EntryRef<'_>> {
        Some(self.peeked?.entry(&self.bytes, self.tree))
    }

    /// Removes the entry that [`next`](Self::next) has returned.
    pub(super) fn take(&mut self) {
        self.peeked = None;
    }

    /// Returns the buffer.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Located {
    fn name<'b>(&self, bytes: &'b [u8]) -> &'b BStr {
        bytes[self.name_start..self.id_start - 1].as_bstr()
    }

    fn entry<'b>(&self, bytes: &'b [u8], tree: TreeId) -> EntryRef<'b> {
        let id_end = self.id_start + kind(tree).len_in_bytes();
        EntryRef {
            mode: self.mode,
            filename: self.name(bytes),
            oid: oid::from_bytes_unchecked(&bytes[self.id_start..id_end]),
        }
    }
}

/// Parses the entry at `at`, and advances `at` past it. Returns `None` at the end.
fn locate(bytes: &[u8], at: &mut usize, tree: TreeId) -> Result<Option<Located>, Error> {
    let mut rest = TreeRefIter::from_bytes(&bytes[*at..], kind(tree));
    let entry = rest.next().transpose();
    let Some(entry) = entry.map_err(|error| broken(tree, error))? else {
        return Ok(None);
    };
    *at += rest.offset_to_next_entry(&bytes[*at..]);
    let id_start = *at - kind(tree).len_in_bytes();
    Ok(Some(Located {
        mode: entry.mode,
        name_start: id_start - 1 - entry.filename.len(),
        id_start,
    }))
}

/// Sorts the entries of `tree`, whose path is `prefix` with a slash at its end.
///
/// # Errors
/// Fails with [`ErrorKind::HostilePath`] if two entries have the same name, or a name is not a single
/// component.
pub(crate) fn put_in_order(
    entries: &mut [ListedTreeEntry],
    tree: ObjectId,
    prefix: &BStr,
) -> Result<(), Error> {
    let order = |one: &ListedTreeEntry, two: &ListedTreeEntry| {
        let (one_is_tree, two_is_tree) = (one.is_directory(), two.is_directory());
        name_order(
            one.name.as_bstr(),
            one_is_tree,
            two.name.as_bstr(),
            two_is_tree,
        )
    };
    if !entries.is_sorted_by(|one, two| order(one, two).is_le()) {
        entries.sort_by(order);
    }
    let path = prefix.strip_suffix(b"/").unwrap_or(prefix).as_bstr();
    let mut names = Beginnings::default();
    for entry in entries.iter() {
        let name = entry.name.as_bstr();
        if name.is_empty() || name.contains(&b'/') {
            let message = format!("invalid path '{prefix}{name}'");
            return Err(Error::new(ErrorKind::HostilePath, message));
        }
        if names.has(name) {
            return Err(twice(name, Some(tree), path));
        }
    }
    Ok(())
}

fn kind(tree: TreeId) -> pronto_hash::Kind {
    tree.map_or(pronto_hash::Kind::Sha1, |id| id.kind())
}

/// Returns all entries in index order.
fn sorted(bytes: &[u8], tree: TreeId) -> Result<Vec<Located>, Error> {
    let (mut entries, mut at) = (Vec::new(), 0);
    while let Some(entry) = locate(bytes, &mut at, tree)? {
        entries.push(entry);
    }
    entries.sort_by(|one, two| {
        let (one_is_tree, two_is_tree) = (one.mode.is_tree(), two.mode.is_tree());
        name_order(one.name(bytes), one_is_tree, two.name(bytes), two_is_tree)
    });
    Ok(entries)
}

pub(super) fn order(one: &EntryRef<'_>, two: &EntryRef<'_>) -> std::cmp::Ordering {
    name_order(
        one.filename,
        one.mode.is_tree(),
        two.filename,
        two.mode.is_tree(),
    )
}

fn broken(tree: TreeId, error: impl std::fmt::Display) -> Error {
    let broken = Error::new(ErrorKind::CorruptObject, "corrupt tree");
    let broken = broken.because(error.to_string());
    match tree {
        Some(id) => broken.on_object(id),
        None => broken,
    }
}

fn twice(name: &BStr, tree: TreeId, path: &BStr) -> Error {
    let slash = if path.is_empty() { "" } else { "/" };
    let message = format!("invalid path '{path}{slash}{name}': the tree has it twice");
    let error = Error::new(ErrorKind::HostilePath, message);
    match tree {
        Some(id) => error.on_object(id),
        None => error,
    }
}

/// The result of checking the names of a tree.
#[derive(Debug, PartialEq, Eq)]
enum NameOrder<'a> {
    Ordered,
    Unordered,
    Twice(&'a BStr),
    /// An entry without a mode.
    NoMode,
}

/// Checks the names, as far as they can be parsed. Reading the entries reports malformed ones.
fn look_over(mut bytes: &[u8], id_len: usize) -> NameOrder<'_> {
    let mut names = Beginnings::default();
    let mut last: Option<(&BStr, bool)> = None;
    while let Some(nul) = bytes.find_byte(0) {
        let (head, rest) = bytes.split_at(nul);
        let (Some(space), Some(rest)) = (head.find_byte(b' '), rest.get(1 + id_len..)) else {
            break;
        };
        if space == 0 {
            return NameOrder::NoMode;
        }
        let (name, is_tree) = (head[space + 1..].as_bstr(), is_tree(&head[..space]));
        if let Some((before, was_tree)) = last
            && name_order(before, was_tree, name, is_tree).is_gt()
        {
            return NameOrder::Unordered;
        }
        if names.has(name) {
            return NameOrder::Twice(name);
        }
        last = Some((name, is_tree));
        bytes = rest;
    }
    NameOrder::Ordered
}

fn is_tree(mode: &[u8]) -> bool {
    let octal = |value: u32, digit: &u8| (value << 3) | u32::from(digit.wrapping_sub(b'0') & 7);
    mode.iter().fold(0, octal) & 0o170_000 == 0o40_000
}

/// The preceding names of an ordered tree that may be a prefix of a later name; each is a prefix of the
/// next. A directory may follow a file of the same name at a distance (`a`, `a.b`, `a/`).
#[derive(Default)]
struct Beginnings<'a>(Vec<&'a BStr>);

impl<'a> Beginnings<'a> {
    /// Returns whether `name` occurred before. Names must be passed in order.
    fn has(&mut self, name: &'a BStr) -> bool {
        while self.0.last().is_some_and(|last| !name.starts_with(last)) {
            self.0.pop();
        }
        let is_there = self.0.last().is_some_and(|last| *last == name);
        if !is_there {
            self.0.push(name);
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (mode, name) in entries {
            bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            bytes.extend_from_slice(&[7; 20]);
        }
        bytes
    }

    #[test]
    fn names_that_are_there_twice_are_found_wherever_they_are() {
        for (entries, expected) in [
            (&[("100644", "a"), ("100755", "a")][..], "a"),
            (&[("40000", "a"), ("040000", "a")], "a"),
            (&[("100644", "a"), ("100644", "a.b"), ("40000", "a")], "a"),
            (
                &[
                    ("100644", "a"),
                    ("100644", "a-"),
                    ("40000", "a-"),
                    ("40000", "b"),
                ],
                "a-",
            ),
            (&[("120000", "z"), ("40000", "z")], "z"),
        ] {
            let bytes = tree(entries);
            let found = look_over(&bytes, 20);
            assert_eq!(found, NameOrder::Twice(expected.into()), "{entries:?}");
            let error = WalkedEntries::checked(bytes, None, "top".into()).err();
            let error = error.expect("refused");
            assert_eq!(error.kind(), ErrorKind::HostilePath);
            let path = format!("'top/{expected}'");
            assert!(error.message().contains(&path), "{error}");
        }
        // Out of order, too.
        let bytes = tree(&[("40000", "a"), ("100644", "b"), ("100644", "a")]);
        assert!(WalkedEntries::checked(bytes, None, "".into()).is_err());
    }

    #[test]
    fn trees_out_of_order_are_put_in_order() {
        let bytes = tree(&[("40000", "a"), ("100644", "a.b"), ("100644", "A")]);
        let mut entries = WalkedEntries::checked(bytes, None, "".into()).expect("good names");
        let mut names = Vec::new();
        while let Some(entry) = entries.next().expect("whole") {
            names.push(entry.filename.to_string());
            entries.take();
        }
        assert_eq!(names, ["A", "a.b", "a"]);
        let bytes = tree(&[("100644", "b"), ("100644", "a"), ("40000", "b")]);
        let entries = WalkedEntries::in_order(bytes, None).expect("it can be left behind");
        assert!(matches!(entries.source, EntryOrder::Sorted(entries) if entries.len() == 2));
    }

    #[test]
    fn ordered_trees_are_taken_as_they_are() {
        let names = ["a", "a-", "a-b", "a.", "a0", "aa", "b"].map(|name| ("100644", name));
        assert_eq!(look_over(&tree(&names), 20), NameOrder::Ordered);
        let bytes = tree(&[("100644", "a.b"), ("40000", "a"), ("100644", "a0")]);
        assert_eq!(look_over(&bytes, 20), NameOrder::Ordered);
        assert_eq!(look_over(b"100644 a", 20), NameOrder::Ordered);
        assert_eq!(look_over(b"100644 a\0short", 20), NameOrder::Ordered);
        assert_eq!(look_over(b"\0", 20), NameOrder::Ordered);
        assert_eq!(look_over(&tree(&[("", "a")]), 20), NameOrder::NoMode);
    }
}
