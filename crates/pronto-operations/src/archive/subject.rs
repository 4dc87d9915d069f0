//! The object whose tree is archived.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;

use crate::revision::{FullName, Want};
use crate::{Error, ErrorKind, Repository, Result};

/// An object, and the ref that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// A commit, a tree, or a tag of one.
    pub(crate) id: ObjectId,
    /// The full name of the ref.
    pub(crate) reference: Option<BString>,
}

impl Subject {
    /// Resolves a name as Git does. An id is preferred to a ref that is named like one.
    ///
    /// # Errors
    /// The name does not lead to an object.
    pub(crate) fn named(repository: &Repository, treeish: &BStr) -> Result<Self> {
        let reference = repository.find_reference(treeish)?;
        let id = repository.try_resolve(treeish, Want::Anything)?;
        Ok(Subject {
            id: id.ok_or_else(|| not_valid(treeish))?,
            reference: reference.map(|reference| reference.name),
        })
    }

    /// Takes what the ref `found` holds, or what is at a path below it. `treeish` is the text that named both:
    /// a name, and perhaps a colon and the path. It is not resolved again: it could also be the id of another
    /// object.
    ///
    /// # Errors
    /// There is nothing at the path.
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
        Ok(Subject {
            id,
            reference: Some(found.name),
        })
    }
}

/// Refuses paths that Git does not find in a tree.
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
