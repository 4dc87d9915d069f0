//! Converts between paths and bytes, and normalises paths as Git does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, ByteSlice};

use crate::account;

/// Converts bytes to a path.
pub fn from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// Returns the bytes of a path.
pub fn as_bytes(path: &Path) -> &BStr {
    path.as_os_str().as_bytes().as_bstr()
}

/// Converts bytes to a path without a copy.
pub fn borrow(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Splits a path in a worktree into its directory, which is empty at the top, and its name.
pub fn split(path: &BStr) -> (&[u8], &[u8]) {
    match path.rfind_byte(b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Returns `path` without `.`, `..`, and duplicate or trailing slashes. Works on the text alone and
/// resolves no symbolic links. `..` at the root is dropped.
pub fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                let can_pop = matches!(normal.components().next_back(), Some(Component::Normal(_)));
                if can_pop {
                    normal.pop();
                } else if !normal.has_root() {
                    normal.push("..");
                }
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the relative path from the directory `base` to `path`. Both must be absolute and
/// normalised. As in Git, the result is `./` for equal paths, and a result that consists only of
/// `..` has a trailing slash.
pub fn relative(path: &Path, base: &Path) -> PathBuf {
    let mut wanted = path.components().peekable();
    let mut given = base.components().peekable();
    while let (Some(left), Some(right)) = (wanted.peek(), given.peek()) {
        if left != right {
            break;
        }
        wanted.next();
        given.next();
    }
    let mut relative = PathBuf::new();
    for _ in given {
        relative.push("../");
    }
    relative.extend(wanted);
    if relative.as_os_str().is_empty() {
        return PathBuf::from("./");
    }
    relative
}

/// Expands a leading `~/` or `~user/` to the home directory. Returns `None` if the home directory
/// is unknown.
pub fn expand_user(path: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let Some(rest) = path.strip_prefix(b"~") else {
        return Some(from_bytes(path));
    };
    let end = rest.find_byte(b'/').unwrap_or(rest.len());
    let (user, tail) = rest.split_at(end);
    let base = if user.is_empty() {
        as_bytes(home?).to_owned()
    } else {
        account::named(user)?.home
    };
    let mut full = base.to_vec();
    full.extend_from_slice(tail);
    Some(from_bytes(&full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normal_by_text_alone() {
        assert_eq!(normalize(Path::new("/a//./b/../c/")), Path::new("/a/c"));
        assert_eq!(normalize(Path::new("/../a")), Path::new("/a"));
        assert_eq!(normalize(Path::new("../a/../..")), Path::new("../.."));
    }

    #[test]
    fn a_relative_path_leads_from_one_to_the_other() {
        let path = |path, base| relative(Path::new(path), Path::new(base));
        assert_eq!(path("/a/b/c", "/a"), Path::new("b/c"));
        assert_eq!(path("/a", "/a/b/c"), Path::new("../.."));
        assert_eq!(path("/a/x", "/a/b"), Path::new("../x"));
        assert_eq!(path("/a", "/a"), Path::new("./"));
    }
}
