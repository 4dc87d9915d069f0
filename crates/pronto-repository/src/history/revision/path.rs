//! Objects by path: `revision:path`, `:stage:path`.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::Found;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result, path};

/// The mode of a directory in a tree.
pub(super) const TREE_MODE: u32 = 0o040_000;

/// Returns the start of the path: the first colon that is not in braces.
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

/// `stage:path` or `path` apart.
pub(super) fn stage_and_path(rest: &BStr) -> (u8, &BStr) {
    match rest.as_bytes() {
        [stage @ b'0'..=b'3', b':', path @ ..] => (stage - b'0', path.as_bstr()),
        _ => (0, rest),
    }
}

impl Repository {
    /// `path` from the top of the worktree, where it is written relative to the caller (`./`,
    /// `../`).
    ///
    /// # Errors
    /// It leads out of the worktree, or there is none.
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

    pub(super) fn find_in_index(&self, rest: &BStr) -> Result<Option<Found>> {
        let (stage, path) = stage_and_path(rest);
        let path = self.path_below_top(path)?;
        self.config().bool_or_i64("index.threads")?;
        let index = self.sparse_index()?;
        let (index, found) = self.find_expanding(index, path.as_bstr(), stage)?;
        let found = found.map(|at| {
            let entry = index.entry(at);
            Found {
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

    pub(super) fn find_in_tree(&self, root: ObjectId, path: &BStr) -> Result<Option<Found>> {
        let path = self.path_below_top(path)?;
        let Some(tree) = self.peel_to(root, ObjectKind::Tree)? else {
            return Ok(None);
        };
        let found = self.tree_entry(tree, path.as_bstr())?;
        Ok(found.map(|(id, mode)| Found {
            id,
            mode: Some(mode),
            path: Some(path),
        }))
    }

    /// The object at `path` below `tree`, and its mode; `tree` itself for the empty path.
    ///
    /// # Errors
    /// A tree on the way is missing or malformed.
    pub fn tree_entry(&self, tree: ObjectId, path: &BStr) -> Result<Option<(ObjectId, u32)>> {
        let mut current = (tree, TREE_MODE);
        let mut buffer = Vec::new();
        for name in path.split_str("/").filter(|name| !name.is_empty()) {
            if current.1 != TREE_MODE {
                return Ok(None);
            }
            match self
                .objects()?
                .find(&current.0, &mut buffer)
                .map_err(from_odb)?
            {
                Some(ObjectKind::Tree) => {}
                _ => {
                    let message = format!("unable to read tree ({})", current.0);
                    return Err(Error::new(ErrorKind::Object, message));
                }
            }
            let mut entries = TreeEntries::new(&buffer, self.object_hash().len_in_bytes());
            match entries.find(|entry| entry.as_ref().is_ok_and(|entry| entry.name == name)) {
                Some(entry) => {
                    let entry = entry?;
                    current = (entry.id, entry.mode);
                }
                None => return Ok(None),
            }
        }
        let is_directory_wanted = path.ends_with(b"/");
        Ok((!is_directory_wanted || current.1 == TREE_MODE).then_some(current))
    }
}

/// One entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry<'a> {
    /// Its mode.
    pub mode: u32,
    /// Its name.
    pub name: &'a BStr,
    /// Its object.
    pub id: ObjectId,
}

/// The entries of a tree, in the order in which they stand. Ends after the first error.
#[derive(Clone, Debug)]
pub struct TreeEntries<'a> {
    rest: &'a [u8],
    hash_length: usize,
}

impl<'a> TreeEntries<'a> {
    /// The entries of the tree with this content, whose ids are this long in bytes.
    pub fn new(content: &'a [u8], hash_length: usize) -> Self {
        TreeEntries {
            rest: content,
            hash_length,
        }
    }

    /// Returns the bytes that were not parsed yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for TreeEntries<'a> {
    type Item = Result<TreeEntry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = parse_entry(self.rest, self.hash_length);
        match entry {
            Some((entry, rest)) => {
                self.rest = rest;
                Some(Ok(entry))
            }
            None => {
                self.rest = &[];
                Some(Err(Error::new(ErrorKind::Object, "malformed tree")))
            }
        }
    }
}

fn parse_entry(text: &[u8], hash_length: usize) -> Option<(TreeEntry<'_>, &[u8])> {
    let space = text.iter().take(8).position(|&byte| byte == b' ')?;
    let mode = text[..space].iter().try_fold(0u32, |mode, &digit| {
        let digit = char::from(digit).to_digit(8)?;
        Some(mode * 8 + digit)
    })?;
    let rest = &text[space + 1..];
    let end = rest.find_byte(0)?;
    let id = ObjectId::try_from(rest.get(end + 1..end + 1 + hash_length)?).ok()?;
    let name = rest[..end].as_bstr();
    Some((TreeEntry { mode, name, id }, &rest[end + 1 + hash_length..]))
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

    #[test]
    fn broken_trees_are_refused() {
        let mut tree = b"100644 a\0".to_vec();
        tree.extend([7; 20]);
        let entry = TreeEntries::new(&tree, 20)
            .next()
            .expect("one")
            .expect("well formed");
        assert_eq!((entry.mode, entry.name), (0o100_644, "a".into()));
        for length in 1..tree.len() {
            let first = TreeEntries::new(&tree[..length], 20).next();
            assert!(first.expect("something").is_err(), "{length}");
        }
    }
}
