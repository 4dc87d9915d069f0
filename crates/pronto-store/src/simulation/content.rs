//! Packs of the simulation: sets of objects that reference other objects.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use pronto_hash::ObjectId;
use pronto_refs::reftable::StackSnapshot;

use crate::digest::Digest;
use crate::manifest::FileKind;
use crate::refs::{self, StoredRefValue};
use crate::upload::{NewPack, UploadFile};

/// Objects with the objects that they reference.
pub(super) type ObjectLinks = BTreeMap<ObjectId, Vec<ObjectId>>;

const ID: usize = 20;

/// Returns the unique id for `number`.
pub(super) fn id(number: u64) -> ObjectId {
    let digest = Digest::of(&number.to_be_bytes());
    ObjectId::from_bytes_or_panic(&digest.as_bytes()[..ID])
}

/// Returns a pack with `objects`.
pub(super) fn pack(objects: &ObjectLinks) -> NewPack {
    let mut bytes = Vec::new();
    for (id, links) in objects {
        bytes.extend_from_slice(id.as_bytes());
        bytes.push(links.len() as u8);
        links
            .iter()
            .for_each(|link| bytes.extend_from_slice(link.as_bytes()));
    }
    let digest = Digest::of(&bytes);
    NewPack {
        id: ObjectId::from_bytes_or_panic(&digest.as_bytes()[..ID]),
        objects: objects.len() as u32,
        is_promisor: false,
        files: vec![
            UploadFile::from_bytes(FileKind::Index, Bytes::from_static(b"index")),
            UploadFile::from_bytes(FileKind::Pack, bytes.into()),
        ],
    }
}

/// Adds the objects of a pack to `objects`.
pub(super) fn unpack(mut bytes: &[u8], objects: &mut ObjectLinks) {
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_at(ID);
        let (count, rest) = (usize::from(rest[0]), &rest[1..]);
        let (links, rest) = rest.split_at(count * ID);
        let links = links.chunks(ID).map(ObjectId::from_bytes_or_panic);
        objects.insert(ObjectId::from_bytes_or_panic(id), links.collect());
        bytes = rest;
    }
}

/// Returns the objects that refs point to.
pub(super) fn tips(refs: &StackSnapshot) -> Vec<ObjectId> {
    let all = refs::all(refs).expect("sound tables");
    let tips = all.into_iter().filter_map(|(_, value)| match value {
        StoredRefValue::Direct { id, .. } => Some(id),
        StoredRefValue::Symbolic(_) => None,
    });
    tips.collect()
}

/// Returns all objects that are reachable from `tips`.
pub(super) fn reached(tips: &[ObjectId], objects: &ObjectLinks) -> BTreeSet<ObjectId> {
    let mut seen = BTreeSet::new();
    let mut todo = tips.to_vec();
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            todo.extend(objects.get(&id).into_iter().flatten());
        }
    }
    seen
}

/// Returns a missing object that is reachable from `tips`.
pub(super) fn missing(
    tips: impl IntoIterator<Item = ObjectId>,
    objects: &ObjectLinks,
) -> Option<ObjectId> {
    let mut seen = BTreeSet::new();
    let mut todo: Vec<ObjectId> = tips.into_iter().collect();
    while let Some(id) = todo.pop() {
        let Some(links) = objects.get(&id) else {
            return Some(id);
        };
        if seen.insert(id) {
            todo.extend(links);
        }
    }
    None
}
