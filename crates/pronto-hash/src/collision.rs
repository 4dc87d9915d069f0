//! The error for content that belongs to a collision attack.

use std::fmt;

use crate::ObjectId;

/// The content looks like one half of a SHA-1 collision attack.
///
/// The id is kept for messages only. It must not be used to store the object, because the author of
/// this content can make another one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collision {
    id: ObjectId,
}

impl Collision {
    pub(crate) fn new(id: ObjectId) -> Self {
        Collision { id }
    }

    /// The plain SHA-1 of the content, for reporting only.
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
