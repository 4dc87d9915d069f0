//! Fuzzes an attributes file, and a path after its first NUL to which the attributes are applied.

use bstr::{BStr, ByteSlice};
use pronto_worktree::attributes::{Attributes, Files, ReadAttributes};

/// A source with the same attributes file in every directory.
struct Everywhere(Vec<u8>);

impl ReadAttributes for Everywhere {
    fn read(&self, _directory: &BStr) -> Result<Option<Vec<u8>>, pronto_worktree::Error> {
        Ok(Some(self.0.clone()))
    }
}

pub(crate) fn run(data: &[u8]) {
    let (content, path) = data.split_once_str(b"\0").unwrap_or((data, b"a/b/c.txt"));
    // Paths are relative to the top, and their components are not empty.
    if path.split_str("/").any(|name| name.is_empty()) {
        return;
    }
    let files = Files {
        ignore_case: data.len().is_multiple_of(2),
        ..Files::default()
    };
    let source = Box::new(Everywhere(content.to_vec()));
    let names = ["text", "eol", "filter", "a", "binary"];
    let attributes = Attributes::new(&names, &files, source).expect("it can be read");
    let states = attributes.stack().states(path.as_bstr()).map(<[_]>::len);
    assert_eq!(states.expect("it can be read"), names.len());
}
