//! Absolute pathspecs.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString};

use crate::{Error, ErrorKind};
use pronto_config::path;
use pronto_io::error::reason;
use pronto_io::short::Short as _;

/// Returns the part of the absolute `path` below `work_tree`, whose path has no symbolic links;
/// empty for the worktree itself. Returns `None` if `path` is outside. As in Git, `.` and `..` are
/// removed from the text first. A path that then does not begin with the path of the worktree is
/// inside if one of its parents, with symbolic links resolved, is the worktree.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] and Git's message if a parent of `path` cannot be resolved.
pub(super) fn below_work_tree(path: &BStr, work_tree: &Path) -> Result<Option<BString>, Error> {
    let Some(normal) = normalized(path) else {
        return Ok(None);
    };
    let normal = path::borrow(&normal);
    if let Ok(below) = normal.strip_prefix(work_tree) {
        return Ok(Some(path::as_bytes(below).to_owned()));
    }
    let mut parents: Vec<&Path> = normal
        .ancestors()
        .filter(|it| it.parent().is_some())
        .collect();
    parents.reverse();
    let mut absent: Option<PathBuf> = None;
    for parent in parents {
        if let Some(absent) = absent {
            return Err(invalid(&absent, &rustix::io::Errno::NOENT.into()));
        }
        match std::fs::canonicalize(parent) {
            Ok(real) if real == work_tree => {
                let below = normal.strip_prefix(parent).unwrap_or(normal);
                return Ok(Some(path::as_bytes(below).to_owned()));
            }
            Ok(_) => {}
            // Git fails only at the next part: the last part of a path need not exist.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                absent = Some(target_of(parent));
            }
            Err(error) => return Err(invalid(parent, &error)),
        }
    }
    Ok(None)
}

/// Removes `.`, `..` and empty parts from the text of an absolute path. Returns `None` if `..` leads
/// above the root.
fn normalized(path: &BStr) -> Option<BString> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split_at_each(b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some([b"/".as_slice(), &bstr::join("/", parts)].concat().into())
}

/// Follows the symbolic links at the end of `path`, which leads to a path that does not exist.
fn target_of(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 32;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let parent = path.parent().unwrap_or(&path);
        let parent = std::fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        match std::fs::read_link(&path) {
            Ok(target) => path = path::normalize(&parent.join(target)),
            Err(_) => {
                return path
                    .file_name()
                    .map_or(parent.clone(), |it| parent.join(it));
            }
        }
    }
    path
}

fn invalid(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("Invalid path '{}': {}", path.display(), reason(error));
    Error::new(ErrorKind::Io, message)
}
