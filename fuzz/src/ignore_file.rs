//! Fuzzes an ignore file, and a path after its first NUL that is matched against it.

use bstr::{BStr, ByteSlice};
use pronto_worktree::ignore::{IgnoreStack, Patterns};

pub(crate) fn run(data: &[u8]) {
    let (content, path) = data.split_once_str(b"\0").unwrap_or((data, b"a/b/c.o"));
    // Paths are relative to the top, and their components are not empty.
    if path.split_str("/").any(|name| name.is_empty()) {
        return;
    }
    let mut patterns = Patterns::new(data.len().is_multiple_of(2));
    patterns.add_file("exclude".into(), content.to_vec());
    patterns.add_pattern(path);
    let read = |directory: &BStr| (directory.len() < 8).then(|| content.to_vec());
    let mut stack = IgnoreStack::new(&patterns, Some(&read));
    let path = path.as_bstr();
    let end = path.rfind_byte(b'/').unwrap_or(0);
    stack.enter(path[..end].as_bstr());
    for is_directory in [false, true] {
        let ignored = stack.is_ignored(path, is_directory);
        let rule = stack.decide(path, &|| is_directory);
        if !stack.is_directory_ignored() {
            assert_eq!(ignored, rule.is_some_and(|rule| !rule.is_negative));
        }
    }
}
