//! Adding many objects at once, with errors on the way.

use std::io::Read;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, digest};
use pronto_odb::{Bulk, PACKED_FROM};
use pronto_pack::writer;

use super::support::{Repository, git_in};

fn begin(repository: &Repository, expected: usize) -> Bulk {
    let bulk = repository
        .store()
        .bulk(expected, writer::Options::default());
    bulk.expect("packs can be listed")
}

fn id_of(content: &[u8]) -> ObjectId {
    let header = format!("blob {}\0", content.len());
    digest(Kind::Sha1, &[header.as_bytes(), content]).expect("no collision")
}

/// Adds blobs and returns their ids.
fn add(bulk: &Bulk, numbers: std::ops::Range<usize>) -> Vec<ObjectId> {
    let mut encoder = bulk.encoder();
    let mut add = |number| {
        let content = format!("content {number}").into_bytes();
        let id = id_of(&content);
        let added = bulk.add(&id, (ObjectKind::Blob, &content), &mut encoder);
        added.expect("it can be written");
        id
    };
    numbers.map(&mut add).collect()
}

fn noise(len: u32) -> Vec<u8> {
    let mixed = |at: u32| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8;
    (0..len).map(mixed).collect()
}

#[test]
fn a_stream_that_breaks_off_leaves_no_trace() {
    for before in [3, PACKED_FROM + 7] {
        let repository = Repository::new(Kind::Sha1);
        let bulk = begin(&repository, 1000);
        let mut ids = add(&bulk, 0..before);
        let large = noise(3_000_000);
        let size = large.len() as u64;
        // Shorter than announced, then correct, then once more, then longer.
        let short = bulk.add_stream(ObjectKind::Blob, size, &mut &large[..2_000_000]);
        short.expect_err("cut short");
        for _ in 0..2 {
            let id = bulk.add_stream(ObjectKind::Blob, size, &mut &large[..]);
            assert_eq!(id.expect("whole"), id_of(&large));
        }
        let mut longer = (&large[..]).chain(&b"more"[..]);
        let id = bulk.add_stream(ObjectKind::Blob, size, &mut longer);
        ids.push(id.expect("as much as was said"));
        ids.extend(add(&bulk, before..before + 50));
        bulk.finish().expect("all can be written");
        let store = repository.store();
        for id in ids {
            assert!(store.contains(&id).expect("it can be read"), "{id}");
        }
        git_in(repository.directory.path(), &["fsck", "--strict"]);
        assert_eq!(repository.pack_files("pack").len(), 1);
    }
}

#[test]
fn what_cannot_be_stored_is_not_relied_on() {
    let repository = Repository::new(Kind::Sha1);
    let bulk = begin(&repository, 1000);
    add(&bulk, 0..PACKED_FROM - 1);
    let packs = repository.objects().join("pack");
    std::fs::remove_dir(&packs).expect("it is empty");
    std::fs::write(&packs, b"in the way").expect("it can be written");
    let mut encoder = bulk.encoder();
    let content = (ObjectKind::Blob, &b"one more"[..]);
    let id = id_of(content.1);
    bulk.add(&id, content, &mut encoder)
        .expect_err("there is no place for a pack");
    // The same object is not stored again, whatever size is announced.
    let _ = bulk.add(&id, content, &mut encoder);
    bulk.finish().expect_err("something is lost");
}
