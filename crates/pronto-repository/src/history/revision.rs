//! Revisions: names of objects by refs and abbreviated ids, and the suffixes that `gitrevisions`
//! describes.

mod abbreviate;
mod commit;
mod explain;
mod full_name;
mod logs;
mod name;
mod parser;
mod path;
mod peel;
mod search;
mod selection;
mod set;
mod tracking;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::short::Short as _;

pub use abbreviate::DEFAULT_ABBREVIATION;
pub use full_name::FullName;
pub use parser::RevisionParser;
pub use pronto_object::CommitLinks;
pub use pronto_object::date::{approximate_date, parse_date, parse_expiry};
pub use selection::RefSelection;
pub use set::{RevisionSet, SetMember};

use crate::{Error, ErrorKind, Repository, Result};

/// The expected type of a named object, which selects among objects with the same abbreviated id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Want {
    /// The type of `core.disambiguate`, or any.
    #[default]
    Anything,
    /// A commit.
    Commit,
    /// A commit, or a tag that leads to one.
    Committish,
    /// A tree.
    Tree,
    /// A tree, or an object that leads to one.
    Treeish,
    /// A file.
    Blob,
}

/// A resolved name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The object.
    pub id: ObjectId,
    /// Its mode in the tree or index it was found in.
    pub mode: Option<u32>,
    /// Its path there.
    pub path: Option<BString>,
}

impl Repository {
    /// Resolves `spec` to an object by the rules of `gitrevisions`.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownRevision`] if it names nothing; [`ErrorKind::Ambiguous`] if it could be
    /// several objects, which the hint lists; others if something on the way is malformed or lacks
    /// what is requested (a reflog with fewer entries, a branch without upstream). Remarks, for
    /// example that a name is ambiguous, are kept as warnings.
    pub fn resolve(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        self.try_resolve(spec, Want::Anything)?
            .ok_or_else(|| unknown(spec))
    }

    /// Resolves `spec` to a commit, following tags.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve); and if it names something else.
    pub fn resolve_commit(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        let id = self
            .try_resolve(spec, Want::Committish)?
            .ok_or_else(|| unknown(spec))?;
        self.peel_to(id, ObjectKind::Commit)?.ok_or_else(|| {
            let message = format!("'{spec}' is not a commit");
            Error::new(ErrorKind::Object, message)
        })
    }

    /// Resolves `spec` to a tree, following tags and commits.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve); and if it names something else.
    pub fn resolve_tree(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        let id = self
            .try_resolve(spec, Want::Treeish)?
            .ok_or_else(|| unknown(spec))?;
        self.peel_to(id, ObjectKind::Tree)?
            .ok_or_else(|| Error::new(ErrorKind::Object, "not a tree object"))
    }

    /// Resolves `spec` to an object, or `None` if it names nothing.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), but for unknown names.
    pub fn try_resolve(&self, spec: impl AsRef<[u8]>, want: Want) -> Result<Option<ObjectId>> {
        Ok(self.look_up(spec, want)?.map(|found| found.id))
    }

    /// Resolves `spec`, and returns where the object was found.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), but for unknown names.
    pub fn look_up(&self, spec: impl AsRef<[u8]>, want: Want) -> Result<Option<Found>> {
        let spec = spec.as_ref().as_bstr();
        if let Some(id) = self.resolve_object(spec, want, 0)? {
            return Ok(Some(Found {
                id,
                mode: None,
                path: None,
            }));
        }
        if let Some(rest) = spec.strip_prefix(b":") {
            if let Some(pattern) = rest.strip_prefix(b"/")
                && !pattern.is_empty()
            {
                let found = self.newest_matching(pattern.as_bstr(), None)?;
                return Ok(found.map(|id| Found {
                    id,
                    mode: None,
                    path: None,
                }));
            }
            return self.find_in_index(rest.as_bstr());
        }
        let Some(colon) = path::colon(spec) else {
            return Ok(None);
        };
        let Some(root) = self.resolve_object(spec[..colon].as_bstr(), Want::Treeish, 0)? else {
            return Ok(None);
        };
        self.find_in_tree(root, spec[colon + 1..].as_bstr())
    }

    /// Splits a range into the revisions of both sides, and whether it has three dots; `None` if
    /// `text` is not a range. An empty side stands for `HEAD`. A lone `..` is the parent directory.
    pub fn split_range<'a>(&self, text: &'a BStr) -> Option<(&'a BStr, &'a BStr, bool)> {
        let at = text.position_of_text(b"..")?;
        let is_symmetric = text[at..].starts_with(b"...");
        let left = &text[..at];
        let right = &text[at + if is_symmetric { 3 } else { 2 }..];
        if left.is_empty() && right.is_empty() && !is_symmetric {
            return None;
        }
        let side = |text: &'a [u8]| {
            if text.is_empty() {
                "HEAD".into()
            } else {
                text.as_bstr()
            }
        };
        Some((side(left), side(right), is_symmetric))
    }
}

fn unknown(spec: &BStr) -> Error {
    Error::new(ErrorKind::UnknownRevision, format!("bad revision '{spec}'"))
}
