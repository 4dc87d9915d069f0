//! Packs of objects that a bitmap selects.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_odb::packing::{BitmapSubset, Options, PackContents, PackCounts, PackMember};
use pronto_pack::bitmap::Bits;
use test_support::Random;

use super::support::{Repository, git_with_input};

/// Sends `contents`, lets git index the pack, and returns the ids of its objects.
fn sent(
    store: &Store,
    kind: Kind,
    contents: &PackContents<'_>,
) -> (BTreeSet<ObjectId>, PackCounts) {
    let mut pack = Vec::new();
    let sent = store.pack_to(contents, &Options::default(), &mut pack, &Watch::none());
    let (streamed, counts) = sent.expect("all objects are there");
    assert_eq!(streamed.bytes, pack.len() as u64);
    let receiver = Repository::new(kind);
    git_with_input(receiver.directory.path(), &["index-pack", "--stdin"], &pack);
    let index = std::fs::read(receiver.pack_file("idx")).expect("it is there");
    let shown = git_with_input(receiver.directory.path(), &["show-index"], &index);
    let shown = String::from_utf8(shown).expect("it is text");
    let ids = shown.lines().map(|line| {
        let id = line.split(' ').nth(1).expect("offset, id, and more");
        ObjectId::from_hex(id.as_bytes()).expect("git prints ids")
    });
    (ids.collect(), counts)
}

fn bits_of(store: &Store, limit: u32, mut takes: impl FnMut(u32) -> bool) -> BitmapSubset {
    let bitmapped = store.bitmaps().expect("they can be read");
    let mut bits = Bits::new(limit);
    for bit in (0..limit).filter(|bit| takes(*bit)) {
        bits.insert(bit);
    }
    BitmapSubset::new(Arc::new(bitmapped.expect("git wrote some")), bits)
}

/// Random sets of the objects arrive, with an object beside the block.
fn check(repository: &Repository, seed: u64) {
    let loose = git_with_input(
        repository.directory.path(),
        &["hash-object", "-w", "--stdin"],
        b"loose",
    );
    let loose = ObjectId::from_hex(loose.trim_ascii()).expect("git prints ids");
    let members = [PackMember {
        id: loose,
        name_hash: 0,
    }];
    let store = repository.store();
    let bitmapped = store.bitmaps().expect("they can be read");
    let limit = bitmapped.expect("git wrote some").empty().limit();
    let mut random = Random::new(seed);
    for share in [0, 1, 10, 50, 90, 99, 100] {
        let block = bits_of(&store, limit, |_| random.below(100) < share);
        let mut wanted: BTreeSet<ObjectId> =
            block.ids().map(|id| id.expect("it has one")).collect();
        assert_eq!(wanted.len(), block.len() as usize);
        for id in &wanted {
            assert!(block.contains(id).expect("the index can be read"));
        }
        assert!(!block.contains(&loose).expect("the index can be read"));
        wanted.insert(loose);
        let contents = PackContents {
            members: &members,
            block: Some(&block),
            ..PackContents::default()
        };
        let (ids, counts) = sent(&store, repository.kind, &contents);
        assert_eq!(ids, wanted, "{share} of a hundred");
        assert_eq!(counts.objects as usize, wanted.len());
        if share == 100 {
            // Of several packs deltas are left whose bases are taken from another pack.
            assert!(counts.whole_pack > limit / 2);
        }
        let mut without = Options::default();
        without.offset_deltas = false;
        let mut pack = Vec::new();
        let sent = store.pack_to(&contents, &without, &mut pack, &Watch::none());
        assert_eq!(sent.expect("all are there").1.objects, counts.objects);
    }
}

#[test]
fn parts_of_one_pack() {
    for (kind, has_reverse) in [
        (Kind::Sha1, "true"),
        (Kind::Sha1, "false"),
        (Kind::Sha256, "true"),
    ] {
        let repository = Repository::new(kind);
        repository.commit_history(1, 150);
        repository.git(&["config", "pack.writeReverseIndex", has_reverse]);
        repository.git(&["repack", "-adfbq", "--depth=50", "--window=50"]);
        repository.git(&["prune-packed"]);
        check(&repository, 7);
    }
}

#[test]
fn deltas_that_name_their_base_by_id() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(2, 100);
    repository.git(&["config", "repack.useDeltaBaseOffset", "false"]);
    repository.git(&["repack", "-adfbq", "--depth=50", "--window=50"]);
    check(&repository, 8);
}

#[test]
fn parts_of_several_packs_with_copies() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(3, 60);
    repository.git(&["repack", "-dq"]);
    repository.commit_history(4, 60);
    repository.git(&["repack", "-dq"]);
    // A third pack has copies of objects of both.
    repository.git(&["config", "pack.packSizeLimit", "0"]);
    let listed = repository.listed_objects();
    let some = listed
        .iter()
        .step_by(3)
        .map(|object| format!("{}\n", object.id));
    let some: String = some.collect();
    let base = repository.objects().join("pack/pack");
    let base = base.to_str().expect("it is text");
    let directory = repository.directory.path();
    git_with_input(directory, &["pack-objects", "-q", base], some.as_bytes());
    repository.git(&["multi-pack-index", "write", "--bitmap"]);
    check(&repository, 9);
}

#[test]
fn a_whole_pack_keeps_its_checksum() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(5, 60);
    repository.git(&["repack", "-adbq"]);
    let store = repository.store();
    let limit = repository.listed_objects().len() as u32;
    let block = bits_of(&store, limit, |_| true);
    let contents = PackContents {
        block: Some(&block),
        ..PackContents::default()
    };
    let mut pack = Vec::new();
    let sent = store.pack_to(&contents, &Options::default(), &mut pack, &Watch::none());
    assert_eq!(sent.expect("all are there").1.whole_pack, limit);
    let file = std::fs::read(repository.pack_file("pack")).expect("it is there");
    assert!(pack == file);
}

#[test]
fn kinds_are_kept_or_removed() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(6, 60);
    repository.git(&["repack", "-adbq"]);
    let listed = repository.listed_objects();
    let store = repository.store();
    let mut block = bits_of(&store, listed.len() as u32, |_| true);
    let blob = listed.iter().find(|object| object.kind == ObjectKind::Blob);
    let named = HashSet::from([blob.expect("there are files").id]);
    let kept = block.retain_kinds(|kind| kind != ObjectKind::Blob, &named);
    kept.expect("the index can be read");
    let expected = listed
        .iter()
        .filter(|object| object.kind != ObjectKind::Blob || named.contains(&object.id));
    let expected: BTreeSet<ObjectId> = expected.map(|object| object.id).collect();
    let contents = PackContents {
        block: Some(&block),
        ..PackContents::default()
    };
    assert_eq!(sent(&store, repository.kind, &contents).0, expected);
}
