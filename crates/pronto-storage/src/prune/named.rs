//! The objects that an object references.

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_object::{CommitLinks, TagRef};

/// An object that another object references.
pub(super) enum ReferencedObject {
    Parent(ObjectId),
    /// A file or symbolic link in a tree.
    Blob(ObjectId),
    Other(ObjectId),
}

/// Calls `each` with the objects that an object with this content references. Returns `false` if the
/// object is malformed.
pub(super) fn named_by(
    kind: ObjectKind,
    content: &[u8],
    hash: pronto_hash::Kind,
    each: &mut dyn FnMut(ReferencedObject),
) -> bool {
    match kind {
        ObjectKind::Blob => true,
        ObjectKind::Tag => match TagRef::new(content).target() {
            Some(target) => {
                each(ReferencedObject::Other(target));
                true
            }
            None => false,
        },
        ObjectKind::Commit => match CommitLinks::parse(content) {
            Some(links) => {
                each(ReferencedObject::Other(links.tree));
                for parent in links.parents {
                    each(ReferencedObject::Parent(parent));
                }
                true
            }
            None => false,
        },
        ObjectKind::Tree => named_by_tree(content, hash, each),
    }
}

/// Handles a tree for [`named_by`].
fn named_by_tree(
    mut content: &[u8],
    hash: pronto_hash::Kind,
    each: &mut dyn FnMut(ReferencedObject),
) -> bool {
    let id_len = hash.len_in_bytes();
    while !content.is_empty() {
        let Some(end) = content.iter().position(|byte| *byte == 0) else {
            return false;
        };
        let (entry, rest) = content.split_at(end);
        let Some(id) = rest.get(1..=id_len) else {
            return false;
        };
        let Ok(id) = ObjectId::try_from(id) else {
            return false;
        };
        match entry {
            [b'4', b'0', ..] | [b'0', b'4', ..] => each(ReferencedObject::Other(id)),
            // Submodules are not followed.
            [b'1', b'6', ..] => {}
            _ => each(ReferencedObject::Blob(id)),
        }
        content = &rest[1 + id_len..];
    }
    true
}
