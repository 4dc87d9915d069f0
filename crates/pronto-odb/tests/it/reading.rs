//! Every object equals the output of `git cat-file`, wherever it is stored.

use std::io::Read as _;

use pronto_hash::{Kind, ObjectId, Prefix};
use pronto_io::view::ViewAccess;
use pronto_odb::{ObjectData, Options, PrefixMatches, Store};

use super::support::{Repository, assert_same, git_in, git_with_input};

#[test]
fn loose_objects() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(1, 30);
    assert_eq!(repository.pack_files("idx").len(), 0);
    assert_same(&repository.store(), &repository.listed_objects());
}

#[test]
fn one_pack_mapped_and_by_position() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(2, 120);
    repository.git(&["repack", "-adfq", "--depth=50", "--window=50"]);
    let listed = repository.listed_objects();
    for access in [ViewAccess::Mapped, ViewAccess::Positional] {
        let mut options = repository.options();
        options.access = access;
        let store = Store::open(repository.objects(), options).expect("it can be opened");
        assert_same(&store, &listed);
    }
}

#[test]
fn deltas_that_name_their_base_by_id_and_old_indexes() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(3, 80);
    repository.git(&["config", "repack.useDeltaBaseOffset", "false"]);
    repository.git(&["config", "pack.indexVersion", "1"]);
    repository.git(&["repack", "-adfq"]);
    let index = std::fs::read(repository.pack_file("idx")).expect("it is there");
    assert_ne!(&index[..4], b"\xfftOc");
    let listed = repository.listed_objects();
    for access in [ViewAccess::Mapped, ViewAccess::Positional] {
        let mut options = repository.options();
        options.access = access;
        let store = Store::open(repository.objects(), options).expect("it can be opened");
        assert_same(&store, &listed);
    }
}

#[test]
fn a_cache_that_is_too_small_changes_nothing() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(4, 100);
    repository.git(&["repack", "-adfq", "--depth=90", "--window=90"]);
    let listed = repository.listed_objects();
    for delta_base_cache_bytes in [0, 40_000] {
        let mut options = repository.options();
        options.delta_base_cache_bytes = delta_base_cache_bytes;
        let store = Store::open(repository.objects(), options).expect("it can be opened");
        assert_same(&store, &listed);
    }
}

#[test]
fn sha256() {
    let repository = Repository::new(Kind::Sha256);
    repository.commit_history(5, 40);
    repository.git(&["repack", "-adfq"]);
    repository.commit_history(6, 10);
    assert_same(&repository.store(), &repository.listed_objects());
}

#[test]
fn many_packs_and_a_multi_pack_index() {
    let repository = Repository::new(Kind::Sha1);
    for seed in 10..16 {
        repository.commit_history(seed, 15);
        repository.git(&["repack", "-dq"]);
    }
    let listed = repository.listed_objects();
    assert_eq!(repository.pack_files("idx").len(), 6);
    assert_same(&repository.store(), &listed);
    repository.git(&["multi-pack-index", "write"]);
    assert_same(&repository.store(), &listed);
    // Some packs are newer than the multi-pack-index, and some objects are loose.
    repository.commit_history(16, 15);
    repository.git(&["repack", "-dq"]);
    repository.commit_history(17, 15);
    let listed = repository.listed_objects();
    assert_same(&repository.store(), &listed);
    let mut options = repository.options();
    options.access = ViewAccess::Positional;
    let store = Store::open(repository.objects(), options).expect("it can be opened");
    assert_same(&store, &listed);
}

/// Adds a multi-pack-index of `names` on top of the chain.
fn add_layer(repository: &Repository, names: &[String], version: u8) {
    let pack = repository.objects().join("pack");
    let list = names.join("\n");
    let write = ["multi-pack-index", "write", "--stdin-packs"];
    git_with_input(repository.directory.path(), &write, list.as_bytes());
    let mut bytes = std::fs::read(pack.join("multi-pack-index")).expect("it was written");
    std::fs::remove_file(pack.join("multi-pack-index")).expect("it is there");
    bytes[4] = version;
    let id = ObjectId::from_bytes_or_panic(&bytes[bytes.len() - 20..]);
    let chain = pack.join("multi-pack-index.d");
    std::fs::create_dir_all(&chain).expect("a directory");
    std::fs::write(chain.join(format!("multi-pack-index-{id}.midx")), bytes).expect("written");
    let list = chain.join("multi-pack-index-chain");
    let before = std::fs::read_to_string(&list).unwrap_or_default();
    std::fs::write(&list, format!("{before}{id}\n")).expect("written");
}

#[test]
fn a_chain_of_multi_pack_indexes() {
    let repository = Repository::new(Kind::Sha1);
    for seed in 30..36 {
        repository.commit_history(seed, 15);
        repository.git(&["repack", "-dq"]);
    }
    let listed = repository.listed_objects();
    let files = repository.pack_files("idx");
    let name = |path: &std::path::PathBuf| {
        let name = path.file_name().expect("it has a name");
        name.to_str().expect("it is text").to_owned()
    };
    let names: Vec<String> = files.iter().map(name).collect();
    add_layer(&repository, &names[..2], 1);
    add_layer(&repository, &names[2..5], 2);
    assert_same(&repository.store(), &listed);
    // Objects in the chain, in other packs, and loose.
    repository.commit_history(36, 15);
    assert_same(&repository.store(), &repository.listed_objects());
    let chain = repository.objects().join("pack/multi-pack-index.d");
    let list = chain.join("multi-pack-index-chain");
    let ids = std::fs::read_to_string(&list).expect("it is there");
    for broken in [
        "no ids, but long enough for one to be expected",
        "short",
        &ids.replace('\n', "-"),
        &ids.replacen('\n', &format!("\n{}\n", "0".repeat(40)), 1),
    ] {
        std::fs::write(&list, broken).expect("written");
        assert_same(&repository.store(), &repository.listed_objects());
    }
}

#[test]
fn a_multi_pack_index_that_names_a_lost_pack() {
    let repository = Repository::new(Kind::Sha1);
    for seed in 20..23 {
        repository.commit_history(seed, 15);
        repository.git(&["repack", "-dq"]);
    }
    repository.git(&["multi-pack-index", "write"]);
    let midx = repository.objects().join("pack/multi-pack-index");
    let kept = std::fs::read(&midx).expect("it was written");
    repository.git(&["repack", "-adq"]);
    std::fs::write(&midx, kept).expect("it can be put back");
    assert_same(&repository.store(), &repository.listed_objects());
}

#[test]
fn alternates_of_alternates_in_circles_and_by_relative_paths() {
    let base = Repository::new(Kind::Sha1);
    base.commit_history(30, 20);
    let middle = Repository::new(Kind::Sha1);
    middle.commit_history(31, 20);
    middle.git(&["repack", "-adq"]);
    let top = Repository::new(Kind::Sha1);
    top.commit_history(32, 20);
    let link = |from: &Repository, line: String| {
        let info = from.objects().join("info");
        std::fs::create_dir_all(&info).expect("it can be made");
        std::fs::write(info.join("alternates"), line).expect("it can be written");
    };
    link(
        &top,
        format!("# whence\n{}\n\n", middle.objects().display()),
    );
    let name = base.directory.path().file_name().expect("a name");
    let relative = format!("../../../{}/.git/objects\n", name.display());
    link(&middle, relative);
    link(
        &base,
        format!("\"{}\"\n/not/there\n", top.objects().display()),
    );
    let listed = top.listed_objects();
    let store = top.store();
    assert_eq!(store.alternates().len(), 2);
    assert_eq!(store.warnings().len(), 1);
    assert_same(&store, &listed);
    let mut options = Options::default();
    options.alternates = vec![top.objects()];
    let empty = Repository::new(Kind::Sha1);
    let store = Store::open(empty.objects(), options).expect("it can be opened");
    assert_same(&store, &listed);
}

#[test]
fn large_blobs_are_streamed() {
    let repository = Repository::new(Kind::Sha1);
    let mut random = test_support::Random::new(7);
    let content: Vec<u8> = (0..3_000_000)
        .map(|at| (random.number() >> (at % 24)) as u8)
        .collect();
    std::fs::write(repository.directory.path().join("big"), &content).expect("a file");
    let hash = |repository: &Repository| {
        let hex = repository.git(&["hash-object", "-w", "big"]);
        ObjectId::from_hex(hex.trim_ascii_end()).expect("hex")
    };
    let id = hash(&repository);
    for packed in [false, true] {
        if packed {
            repository.git(&["update-index", "--add", "big"]);
            repository.git(&["commit", "-qm", "big"]);
            repository.git(&["repack", "-adq"]);
        }
        for access in [ViewAccess::Mapped, ViewAccess::Positional] {
            let mut options = repository.options();
            options.access = access;
            let store = Store::open(repository.objects(), options).expect("it can be opened");
            let mut reader = store.reader(&id).expect("it can be read").expect("there");
            assert_eq!(reader.size_bytes(), content.len() as u64);
            let mut read = Vec::new();
            reader.read_to_end(&mut read).expect("it is whole");
            assert!(read == content);
            let mut found = Vec::new();
            store.find(&id, &mut found).expect("it can be read");
            assert!(found == content);
            for (threshold, large) in [(content.len() as u64, true), (1 << 30, false)] {
                let got = store
                    .find_or_stream(&id, threshold, &mut found)
                    .expect("it can be read");
                match got.expect("it is there") {
                    ObjectData::Large(mut reader) => {
                        assert!(large);
                        found.clear();
                        reader.read_to_end(&mut found).expect("it is whole");
                    }
                    ObjectData::Whole(_) => assert!(!large),
                }
                assert!(found == content);
            }
        }
    }
}

#[test]
fn sizes_on_disk_and_bases_are_those_git_tells() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(40, 60);
    for packed in [false, true] {
        if packed {
            repository.git(&["repack", "-adfq"]);
        }
        let listed = repository.git(&[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname) %(objectsize:disk) %(deltabase)",
        ]);
        let store = repository.store();
        for line in std::str::from_utf8(&listed).expect("it is text").lines() {
            let id = ObjectId::from_hex(&line.as_bytes()[..40]).expect("hex");
            let details = store.details(&id).expect("it can be read").expect("there");
            let base = details.delta_base.unwrap_or(Kind::Sha1.null());
            assert_eq!(line, format!("{id} {} {base}", details.size_on_disk));
        }
    }
}

#[test]
fn prefixes_and_how_short_they_can_be() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(50, 100);
    repository.git(&["repack", "-adq"]);
    repository.commit_history(51, 20);
    let store = repository.store();
    let ids: Vec<ObjectId> = repository
        .listed_objects()
        .iter()
        .map(|listed| listed.id)
        .collect();
    for hex_len in [1, 2, 4, 5, 40] {
        for id in &ids {
            let prefix = Prefix::from_hex_nonempty(&id.to_string()[..hex_len]).expect("hex");
            let all: Vec<ObjectId> = ids
                .iter()
                .copied()
                .filter(|id| prefix.cmp_oid(id).is_eq())
                .collect();
            let expected = match all.as_slice() {
                [one] => PrefixMatches::One(*one),
                _ => PrefixMatches::Ambiguous(all),
            };
            assert_eq!(store.prefix(prefix).expect("it can be read"), expected);
        }
    }
    let none = Prefix::from_hex("ffffffffff").expect("hex");
    assert_eq!(
        store.prefix(none).expect("it can be read"),
        PrefixMatches::None
    );
    for id in ids.iter().step_by(7) {
        let expected = git_in(
            repository.directory.path(),
            &["rev-parse", "--short=4", &id.to_string()],
        );
        let len = store.unique_prefix_len(id, 4).expect("it can be read");
        assert_eq!(expected.trim_ascii_end().len(), len, "{id}");
    }
}

#[test]
fn batches_and_positions() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(60, 60);
    repository.git(&["repack", "-adq"]);
    repository.commit_history(61, 60);
    let store = repository.store();
    let listed = repository.listed_objects();
    let mut ids: Vec<ObjectId> = listed.iter().map(|listed| listed.id).collect();
    for listed in &listed {
        let mut other = listed.id;
        other.as_mut_slice()[10] ^= 1;
        ids.push(other);
    }
    ids.sort_unstable();
    let found = store.contains_batch(&ids).expect("it can be read");
    let mut places = Vec::new();
    let inventory = store.inventory().expect("it can be listed");
    inventory
        .contains_batch(&ids, &mut places)
        .expect("it can be read");
    let expected: Vec<usize> = (0..ids.len()).filter(|&place| found[place]).collect();
    assert_eq!(places, expected);
    // The same ids in another order, with one of them twice.
    let mut mixed: Vec<usize> = (0..ids.len()).collect();
    mixed.sort_unstable_by_key(|place| place.wrapping_mul(0x9E37_79B9) % 1009);
    mixed.push(mixed[0]);
    let mixed_ids: Vec<ObjectId> = mixed.iter().map(|place| ids[*place]).collect();
    let expected: Vec<bool> = mixed.iter().map(|place| found[*place]).collect();
    let mixed_found = store.contains_batch(&mixed_ids).expect("it can be read");
    assert_eq!(mixed_found, expected);
    let mut places = vec![usize::MAX];
    inventory
        .contains_batch(&mixed_ids, &mut places)
        .expect("it can be read");
    let expected = (0..mixed.len()).filter(|&place| mixed_found[place]);
    assert!(expected.eq(places[1..].iter().copied()));
    let mut content = Vec::new();
    for (id, found) in ids.iter().zip(found) {
        let expected = listed.binary_search_by(|listed| listed.id.cmp(id));
        assert_eq!(found, expected.is_ok(), "{id}");
        if let (Some(location), Ok(at)) = (store.position(id), expected) {
            let kind = store.find_at(location, id, &mut content).expect("readable");
            assert_eq!(kind, Some(listed[at].kind));
            assert!(content == listed[at].content);
        }
    }
    let mut stored = Vec::new();
    store
        .for_each_stored::<pronto_odb::Error>(|id, location| {
            assert_eq!(location, store.position(id));
            stored.push(id.to_owned());
            Ok(())
        })
        .expect("it can be read");
    assert_each_once(stored, &listed);
    // Now some objects are stored two or three times.
    repository.git(&["repack", "-aq"]);
    let mut stored = Vec::new();
    repository
        .store()
        .for_each_stored::<pronto_odb::Error>(|id, _| {
            stored.push(id.to_owned());
            Ok(())
        })
        .expect("it can be read");
    assert_each_once(stored, &listed);
}

fn assert_each_once(mut stored: Vec<ObjectId>, listed: &[super::support::ListedObject]) {
    stored.sort_unstable();
    assert!(stored.iter().eq(listed.iter().map(|listed| &listed.id)));
}

#[test]
fn the_empty_tree_is_always_there() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let repository = Repository::new(kind);
        let store = repository.store();
        let id = kind.empty_tree();
        let found = store.find(&id, &mut Vec::new()).expect("it can be read");
        assert_eq!(found, Some(gix_object::Kind::Tree));
        assert!(store.contains(&id).expect("it can be read"));
        let header = store.header(&id).expect("it can be read").expect("there");
        assert_eq!(header.size, 0);
        store
            .write(gix_object::Kind::Tree, b"")
            .expect("it can be written");
        assert_eq!(store.iter().expect("it can be listed").count(), 1);
    }
}

#[test]
fn replacements_stand_for_others() {
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    let blob = gix_object::Kind::Blob;
    let ids: Vec<ObjectId> = (0..8u8)
        .map(|n| store.write(blob, &[n]).expect("it can be written"))
        .collect();
    let map = |pairs: &[(usize, usize)]| {
        let pairs = pairs.iter().map(|&(from, to)| (ids[from], ids[to]));
        store.with_replacements(pairs.collect())
    };
    let mut content = Vec::new();
    let replacing = map(&[(0, 1), (1, 2)]);
    replacing
        .find(&ids[0], &mut content)
        .expect("it can be read");
    assert_eq!(content, [2]);
    replacing
        .without_replacements()
        .find(&ids[0], &mut content)
        .expect("it can be read");
    assert_eq!(content, [0]);
    let circle = map(&[(0, 1), (1, 0)]);
    let error = circle
        .find(&ids[0], &mut content)
        .expect_err("it has no end");
    assert_eq!(error.message(), "replace depth too high");
}
