//! The order in which objects are deleted.

use std::collections::HashMap;

use pronto_hash::ObjectId;
use pronto_odb::Store;
use pronto_repository::Result;

use super::named::{ReferencedObject, named_by};

/// Sorts `ids` so that each object precedes the objects that it references. Unreadable objects are
/// treated as objects without references.
///
/// Costs reading each of the objects that is not a blob.
///
/// # Errors
/// Never fails at present.
pub(super) fn named_last(store: &Store, ids: &[ObjectId]) -> Result<Vec<ObjectId>> {
    let places: HashMap<ObjectId, usize> = (ids.iter().copied()).zip(0..).collect();
    let mut is_done = vec![false; ids.len()];
    let mut ordered = Vec::with_capacity(ids.len());
    let mut buffer = Vec::new();
    // The loop runs backwards, so that objects without references keep their order.
    for first in (0..ids.len()).rev() {
        let mut stack = vec![PruneOrderStep::Enter(first)];
        while let Some(step) = stack.pop() {
            match step {
                PruneOrderStep::Leave(at) => ordered.push(ids[at]),
                PruneOrderStep::Enter(at) if is_done[at] => {}
                PruneOrderStep::Enter(at) => {
                    is_done[at] = true;
                    stack.push(PruneOrderStep::Leave(at));
                    for id in named(store, &ids[at], &mut buffer) {
                        let place = places.get(&id).filter(|place| !is_done[**place]);
                        stack.extend(place.map(|place| PruneOrderStep::Enter(*place)));
                    }
                }
            }
        }
    }
    ordered.reverse();
    Ok(ordered)
}

enum PruneOrderStep {
    Enter(usize),
    Leave(usize),
}

fn named(store: &Store, id: &ObjectId, buffer: &mut Vec<u8>) -> Vec<ObjectId> {
    let mut names = Vec::new();
    let is_blob = |header: &gix_object::Header| header.kind == gix_object::Kind::Blob;
    match store.header(id) {
        Ok(Some(header)) if !is_blob(&header) => {}
        _ => return names,
    }
    if let Ok(Some(kind)) = store.find(id, buffer) {
        named_by(kind, buffer, id.kind(), &mut |named| match named {
            ReferencedObject::Parent(id)
            | ReferencedObject::Blob(id)
            | ReferencedObject::Other(id) => names.push(id),
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use gix_object::Kind;

    #[test]
    fn what_names_comes_before_what_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = pronto_odb::Options::default();
        let store = Store::open(directory.path(), options).expect("it can be opened");
        let write = |kind, content: &[u8]| store.write(kind, content).expect("it is writable");
        let blob = write(Kind::Blob, b"a");
        let tree = write(Kind::Tree, &[b"100644 a\0", blob.as_bytes()].concat());
        let who = "A <a@b> 0 +0000";
        let mut commits: Vec<ObjectId> = Vec::new();
        for number in 0..20 {
            let parent = commits.last().map(|id| format!("parent {id}\n"));
            let parent = parent.unwrap_or_default();
            let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{number}\n");
            commits.push(write(Kind::Commit, text.as_bytes()));
        }
        let mut ids = vec![blob, tree];
        ids.extend(&commits);
        ids.sort_unstable();
        let ordered = named_last(&store, &ids).expect("it can be read");
        let mut expected: Vec<ObjectId> = commits.into_iter().rev().collect();
        expected.extend([tree, blob]);
        assert_eq!(ordered, expected);
    }
}
