//! Objects by path: `<rev>:<path>` and `:<stage>:<path>`.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_diff::DifferenceSide;
use pronto_hash::ObjectId;
use pronto_object::TreeEntries;

use super::ResolvedRevision;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result, path};

/// The mode of a directory in a tree.
pub(super) const TREE_MODE: u32 = 0o040_000;

/// Returns the position of the colon that separates revision and path: the first one outside of braces.
pub(super) fn colon(spec: &BStr) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at < spec.len() {
        match spec[at] {
            b'@' | b'^' if spec.get(at + 1) == Some(&b'{') => {
                depth += 1;
                at += 1;
            }
            b'}' if depth > 0 => depth -= 1,
            b':' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Splits `stage:path` into its parts. A `path` without a stage has stage 0.
pub(super) fn stage_and_path(rest: &BStr) -> (u8, &BStr) {
    match rest.as_bytes() {
        [stage @ b'0'..=b'3', b':', path @ ..] => (stage - b'0', path.as_bstr()),
        _ => (0, rest),
    }
}

impl Repository {
    /// Returns `path` relative to the top of the worktree. Paths that begin with `./` or `../` are
    /// relative to the current directory of the caller.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if a relative `path` leads out of the worktree, or if
    /// there is no worktree.
    pub(super) fn path_below_top(&self, path: &BStr) -> Result<BString> {
        let is_relative = path.starts_with(b"./")
            || path.starts_with(b"../")
            || matches!(path.as_bytes(), b"." | b"..");
        if !is_relative {
            return Ok(path.to_owned());
        }
        if self.work_tree().is_none() {
            let message = "relative path syntax can't be used outside working tree";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let full = [self.prefix_or_empty().as_slice(), path].concat();
        let normal = path::normalize(path::borrow(&full));
        if normal.starts_with("..") {
            let top = self.work_tree().unwrap_or(self.git_dir());
            let message = format!("'{path}' is outside repository at '{}'", top.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(path::as_bytes(&normal).to_owned())
    }

    pub(super) fn find_in_index(&self, rest: &BStr) -> Result<Option<ResolvedRevision>> {
        let (stage, path) = stage_and_path(rest);
        let path = self.path_below_top(path)?;
        self.config().bool_or_i64("index.threads")?;
        let index = self.sparse_index()?;
        let (index, found) = self.find_expanding(index, path.as_bstr(), stage)?;
        let found = found.map(|at| {
            let entry = index.entry(at);
            ResolvedRevision {
                id: entry.id.to_owned(),
                mode: Some(entry.mode),
                path: Some(path),
            }
        });
        index
            .intact()
            .map_err(|error| error.map_kind(|_| ErrorKind::Worktree))?;
        Ok(found)
    }

    pub(super) fn find_in_tree(
        &self,
        root: ObjectId,
        path: &BStr,
    ) -> Result<Option<ResolvedRevision>> {
        let path = self.path_below_top(path)?;
        let Some(tree) = self.peel_to(root, ObjectKind::Tree)? else {
            return Ok(None);
        };
        let found = self.tree_entry(tree, path.as_bstr())?;
        Ok(found.map(|side| ResolvedRevision {
            id: side.id,
            mode: Some(side.mode),
            path: Some(path),
        }))
    }

    /// Returns the object at `path` below `tree`, and its mode; `tree` itself for the empty path.
    /// Returns `None` if the path does not exist.
    ///
    /// # Errors
    /// A tree on the way is missing or malformed.
    pub fn tree_entry(&self, tree: ObjectId, path: &BStr) -> Result<Option<DifferenceSide>> {
        let mut current = DifferenceSide {
            mode: TREE_MODE,
            id: tree,
        };
        let mut buffer = Vec::new();
        for name in path.split_str("/").filter(|name| !name.is_empty()) {
            if current.mode != TREE_MODE {
                return Ok(None);
            }
            match self
                .objects()?
                .find(&current.id, &mut buffer)
                .map_err(from_odb)?
            {
                Some(ObjectKind::Tree) => {}
                _ => {
                    let message = format!("unable to read tree ({})", current.id);
                    return Err(Error::new(ErrorKind::Object, message));
                }
            }
            let mut entries = TreeEntries::new(&buffer, self.object_hash().len_in_bytes());
            let Some(entry) = entries.find(|entry| entry.name == name) else {
                return Ok(None);
            };
            current = match (entry.object_id(), entry.mode_bits()) {
                (Some(id), Some(mode)) => DifferenceSide { mode, id },
                _ => return Err(Error::new(ErrorKind::Corrupt, "malformed tree")),
            };
        }
        let is_directory_wanted = path.ends_with(b"/");
        Ok((!is_directory_wanted || current.mode == TREE_MODE).then_some(current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_in_braces_do_not_count() {
        assert_eq!(colon("HEAD:a:b".into()), Some(4));
        assert_eq!(colon("HEAD^{/a:b}:c".into()), Some(11));
        assert_eq!(colon("main@{10:00}".into()), None);
        assert_eq!(stage_and_path("2:x".into()), (2, "x".into()));
        assert_eq!(stage_and_path("4:x".into()), (0, "4:x".into()));
    }
}
