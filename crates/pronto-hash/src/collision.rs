//! The error for content with a SHA-1 collision attack.

use std::fmt;

use crate::ObjectId;

/// The error for content that is probably one of two messages of a SHA-1 collision attack.
///
/// The id is for messages only. Do not store the object under this id, because the author of the
/// content can create another object with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collision {
    id: ObjectId,
}

impl Collision {
    pub(crate) fn new(id: ObjectId) -> Self {
        Collision { id }
    }

    /// Returns the plain SHA-1 of the content, for messages only.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.id
    }
}

impl fmt::Display for Collision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "content of '{}' is part of a SHA-1 collision attack",
            self.id
        )
    }
}

impl std::error::Error for Collision {}
