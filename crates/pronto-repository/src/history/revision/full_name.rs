//! Full names of references.

use bstr::BString;
use pronto_hash::ObjectId;

/// The reference that a short name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullName {
    /// Its full name; that of the reference at the end where it is symbolic.
    pub name: BString,
    /// Its full name before symbolic references were followed.
    pub direct: BString,
    /// The value of the reference.
    pub id: ObjectId,
    /// Whether the short name could stand for another one too.
    pub is_ambiguous: bool,
}
