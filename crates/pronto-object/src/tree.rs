//! Parses trees.

use pronto_io::short::Short as _;

/// An iterator over the entries of a tree, which ends at the first malformed entry.
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
    /// Returns the size of the entry in the tree object.
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
        for length in 0..text.len() {
            assert!(TreeEntries::new(&text[..length], 4).count() <= 3);
        }
    }
}
