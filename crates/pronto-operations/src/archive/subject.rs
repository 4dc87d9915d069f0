//! The object whose tree is archived.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;

use crate::revision::{ExpectedType, FullName};
use crate::{Error, ErrorKind, Repository, Result};

/// An object, and the ref that it was resolved from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedObject {
    /// The id of a commit, a tree, or an annotated tag.
    pub(crate) id: ObjectId,
    /// The full name of the ref.
    pub(crate) reference: Option<BString>,
}

impl ArchivedObject {
    /// Resolves a name as Git does. An object id takes precedence over a ref of the same name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownRevision`] if the name cannot be resolved.
    pub(crate) fn named(repository: &Repository, treeish: &BStr) -> Result<Self> {
        let reference = repository.find_reference(treeish)?;
        let id = repository.try_resolve(treeish, ExpectedType::Anything)?;
        Ok(ArchivedObject {
            id: id.ok_or_else(|| not_valid(treeish))?,
            reference: reference.map(|reference| reference.name),
        })
    }

    /// Returns the object of the ref `found`, or the object at a path below it. `treeish` is the
    /// text that named both: the ref name, and optionally a colon and the path. The text is not
    /// resolved again, because it could also be the id of another object.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownRevision`] if the path does not exist.
    pub(crate) fn below(repository: &Repository, found: FullName, treeish: &BStr) -> Result<Self> {
        let id = match treeish.split_once_str(":") {
            None => found.id,
            Some((_, path)) => {
                let tree = repository.peel_to(found.id, Kind::Tree)?;
                let tree = tree.ok_or_else(|| not_valid(treeish))?;
                check_path(path, treeish)?;
                let entry = repository.tree_entry(tree, path.as_bstr())?;
                entry.ok_or_else(|| not_valid(treeish))?.id
            }
        };
        Ok(ArchivedObject {
            id,
            reference: Some(found.name),
        })
    }
}

/// Rejects paths that Git does not find in a tree.
fn check_path(path: &[u8], treeish: &BStr) -> Result<()> {
    if path.starts_with(b"./") || path.starts_with(b"../") {
        let message = "relative path syntax can't be used outside working tree";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    match path.starts_with(b"/") || path.contains_str("//") {
        true => Err(not_valid(treeish)),
        false => Ok(()),
    }
}

fn not_valid(treeish: &BStr) -> Error {
    let message = format!("not a valid object name: {treeish}");
    Error::new(ErrorKind::UnknownRevision, message)
}
