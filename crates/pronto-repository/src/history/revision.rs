//! Revisions: refs, object ids and abbreviated ids, with the suffixes of `gitrevisions(7)`.

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

/// The expected type of a named object, which selects among objects with the same abbreviated id
/// (`core.disambiguate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedType {
    /// The type that `core.disambiguate` names, or any type.
    #[default]
    Anything,
    /// A commit.
    Commit,
    /// A commit, or a tag that peels to a commit.
    Committish,
    /// A tree.
    Tree,
    /// A tree, or a commit or tag that peels to a tree.
    Treeish,
    /// A blob.
    Blob,
}

/// A resolved revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRevision {
    /// The id of the object.
    pub id: ObjectId,
    /// The mode of the entry in the tree or index, if the revision has a path.
    pub mode: Option<u32>,
    /// The path of the entry in the tree or index, if the revision has a path.
    pub path: Option<BString>,
}

impl Repository {
    /// Resolves `spec` to an object by the rules of `gitrevisions(7)`.
    ///
    /// # Errors
    /// - [`ErrorKind::UnknownRevision`] if `spec` names no object.
    /// - [`ErrorKind::Ambiguous`] if `spec` could mean several objects. The hint lists them.
    /// - [`ErrorKind::ShortReflog`] if a reflog has too few entries.
    /// - [`ErrorKind::Reference`] if a ref is broken or a branch has no upstream.
    /// - [`ErrorKind::Object`] if an object on the way is missing or malformed.
    ///
    /// Remarks, for example that a name is ambiguous, are reported as notices.
    pub fn resolve(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        self.try_resolve(spec, ExpectedType::Anything)?
            .ok_or_else(|| unknown(spec))
    }

    /// Resolves `spec` to a commit, and peels tags.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), and with [`ErrorKind::Object`] if `spec` does not peel to a
    /// commit.
    pub fn resolve_commit(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        let id = self
            .try_resolve(spec, ExpectedType::Committish)?
            .ok_or_else(|| unknown(spec))?;
        self.peel_to(id, ObjectKind::Commit)?.ok_or_else(|| {
            let message = format!("'{spec}' is not a commit");
            Error::new(ErrorKind::Object, message)
        })
    }

    /// Resolves `spec` to a tree, and peels tags and commits.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), and with [`ErrorKind::Object`] if `spec` does not peel to a
    /// tree.
    pub fn resolve_tree(&self, spec: impl AsRef<[u8]>) -> Result<ObjectId> {
        let spec = spec.as_ref().as_bstr();
        let id = self
            .try_resolve(spec, ExpectedType::Treeish)?
            .ok_or_else(|| unknown(spec))?;
        self.peel_to(id, ObjectKind::Tree)?
            .ok_or_else(|| Error::new(ErrorKind::Object, "not a tree object"))
    }

    /// Resolves `spec` to an object. Returns `None` if `spec` names no object.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), except for unknown names.
    pub fn try_resolve(
        &self,
        spec: impl AsRef<[u8]>,
        want: ExpectedType,
    ) -> Result<Option<ObjectId>> {
        Ok(self.look_up(spec, want)?.map(|found| found.id))
    }

    /// Resolves `spec`, and returns the object with its mode and path. Returns `None` if `spec` names
    /// no object.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), except for unknown names.
    pub fn look_up(
        &self,
        spec: impl AsRef<[u8]>,
        want: ExpectedType,
    ) -> Result<Option<ResolvedRevision>> {
        let spec = spec.as_ref().as_bstr();
        if let Some(id) = self.resolve_object(spec, want, 0)? {
            return Ok(Some(ResolvedRevision {
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
                return Ok(found.map(|id| ResolvedRevision {
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
        let Some(root) = self.resolve_object(spec[..colon].as_bstr(), ExpectedType::Treeish, 0)?
        else {
            return Ok(None);
        };
        self.find_in_tree(root, spec[colon + 1..].as_bstr())
    }

    /// Splits a range into the revisions of both sides; `None` if `text` is not a range. An empty side
    /// stands for `HEAD`. A lone `..` is the parent directory.
    pub fn split_range<'a>(&self, text: &'a BStr) -> Option<Range<'a>> {
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
        Some(Range {
            from: side(left),
            to: side(right),
            is_symmetric,
        })
    }
}

/// A range of commits as text: `FROM..TO` or `FROM...TO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<'a> {
    /// The revision on the left.
    pub from: &'a BStr,
    /// The revision on the right.
    pub to: &'a BStr,
    /// Whether the range is a symmetric difference, with three dots.
    pub is_symmetric: bool,
}

fn unknown(spec: &BStr) -> Error {
    Error::new(ErrorKind::UnknownRevision, format!("bad revision '{spec}'"))
}
