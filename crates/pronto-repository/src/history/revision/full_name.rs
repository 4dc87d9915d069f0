//! Expansion of short ref names to full names.

use bstr::BString;
use pronto_hash::ObjectId;

/// The ref to which a short name expands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullName {
    /// The full name of the ref, after symrefs were followed.
    pub name: BString,
    /// The full name of the ref, before symrefs were followed.
    pub direct: BString,
    /// The value of the reference.
    pub id: ObjectId,
    /// Whether the short name also matches another ref.
    pub is_ambiguous: bool,
}
