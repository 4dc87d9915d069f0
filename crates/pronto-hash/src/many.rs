//! Many independent messages at a time.

use crate::{Collision, Kind, ObjectId, digest};

/// One message to digest: the header and the body are digested as if they were one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What comes before the body, as in `blob 12\0`; may be empty.
    pub header: &'a [u8],
    /// The content, which is read in place.
    pub body: &'a [u8],
}

/// Digests each of `messages` and appends the results to `ids`, in the order of the messages.
///
/// A result is an error if its message holds a block of a known kind of SHA-1 collision attack;
/// the others are not affected.
pub fn digest_many(
    kind: Kind,
    messages: &[Message<'_>],
    ids: &mut Vec<Result<ObjectId, Collision>>,
) {
    ids.extend(
        messages
            .iter()
            .map(|message| digest(kind, &[message.header, message.body])),
    );
}
