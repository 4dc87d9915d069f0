//! Parses trees.

use pronto_hash::ObjectId;
use pronto_io::short::Short as _;

/// The largest number of digits of a mode.
const MOST_MODE_DIGITS: usize = 7;

/// The entries of a tree. Ends early at a malformed one.
#[derive(Clone, Debug)]
pub struct TreeEntries<'a> {
    content: &'a [u8],
    id_bytes: usize,
}

impl<'a> TreeEntries<'a> {
    /// Creates an iterator over the content of a tree object with object ids of `id_bytes` bytes.
    pub const fn new(content: &'a [u8], id_bytes: usize) -> Self {
        TreeEntries { content, id_bytes }
    }

    /// Returns the content that was not parsed yet. At the end of the iteration this content is
    /// empty, unless the tree is malformed.
    pub const fn rest(&self) -> &'a [u8] {
        self.content
    }
}

/// One entry of a tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeEntry<'a> {
    /// The mode, in octal digits.
    pub mode: &'a [u8],
    /// The name, without slashes.
    pub name: &'a [u8],
    /// The raw object id.
    pub id: &'a [u8],
}

impl TreeEntry<'_> {
    /// Returns the mode as a number, or `None` if the mode is malformed.
    pub fn mode_bits(&self) -> Option<u32> {
        if self.mode.len() > MOST_MODE_DIGITS {
            return None;
        }
        self.mode.iter().try_fold(0, |mode: u32, &digit| {
            let digit = char::from(digit).to_digit(8)?;
            Some(mode * 8 + digit)
        })
    }

    /// Returns the object id, or `None` if no hash function has ids of this length.
    pub fn object_id(&self) -> Option<ObjectId> {
        ObjectId::try_from(self.id).ok()
    }

    /// Returns its size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.mode.len() + self.name.len() + self.id.len() + 2
    }

    /// Returns whether the entry is a tree.
    pub fn is_directory(&self) -> bool {
        matches!(self.mode, b"40000" | b"040000")
    }

    /// Returns whether the entry is a submodule (gitlink).
    pub fn is_submodule(&self) -> bool {
        self.mode == b"160000"
    }
}

impl<'a> Iterator for TreeEntries<'a> {
    type Item = TreeEntry<'a>;

    fn next(&mut self) -> Option<TreeEntry<'a>> {
        let space = self.content.position_of(b' ')?;
        let (mode, rest) = (&self.content[..space], &self.content[space + 1..]);
        let end = rest.position_of(0)?;
        let id = rest.get(end + 1..end + 1 + self.id_bytes)?;
        self.content = &rest[end + 1 + self.id_bytes..];
        let name = &rest[..end];
        Some(TreeEntry { mode, name, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_at_a_malformed_one() {
        let text = b"100644 a\0xxxx40000 d\0yyyy160000 s\0zzzz100";
        let names: Vec<_> = TreeEntries::new(text, 4).map(|entry| entry.name).collect();
        assert_eq!(names, [b"a", b"d", b"s"]);
        let kinds = |entry: TreeEntry<'_>| (entry.is_directory(), entry.is_submodule());
        let all: Vec<_> = TreeEntries::new(text, 4).map(kinds).collect();
        assert_eq!(all, [(false, false), (true, false), (false, true)]);
        let sizes = TreeEntries::new(text, 4).map(|entry| entry.size_bytes());
        assert_eq!(sizes.sum::<usize>(), text.len() - "100".len());
        for length in 0..text.len() {
            assert!(TreeEntries::new(&text[..length], 4).count() <= 3);
        }
    }

    #[test]
    fn modes_and_ids_are_checked() {
        let mut tree = b"100644 a\0".to_vec();
        tree.extend([7; 20]);
        let entry = TreeEntries::new(&tree, 20).next().expect("one");
        assert_eq!(entry.mode_bits(), Some(0o100_644));
        assert!(entry.object_id().is_some());
        for (mode, bits) in [
            ("40000", Some(0o40_000)),
            ("0100644", Some(0o100_644)),
            ("10064x", None),
            ("10064400", None),
        ] {
            let mode = mode.as_bytes();
            assert_eq!(TreeEntry { mode, ..entry }.mode_bits(), bits);
        }
        assert!(
            TreeEntry {
                id: b"short",
                ..entry
            }
            .object_id()
            .is_none()
        );
        for length in 1..tree.len() {
            let mut entries = TreeEntries::new(&tree[..length], 20);
            assert!(
                entries.next().is_none() && !entries.rest().is_empty(),
                "{length}"
            );
        }
    }
}
