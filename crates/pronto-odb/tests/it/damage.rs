//! Damaged files give errors with a location, never a panic or a wrong object.

use std::path::{Path, PathBuf};

use pronto_hash::Kind;
use pronto_io::view::ViewAccess;
use pronto_odb::{ErrorKind, Store};

use test_support::Random;

use super::support::{ListedObject, Repository};

/// Reads everything. Readable objects must be right, and errors must name a location.
fn read_all(repository: &Repository, access: ViewAccess, listed: &[ListedObject]) -> usize {
    let mut options = repository.options();
    options.access = access;
    let store = Store::open(repository.objects(), options).expect("it can be opened");
    let mut content = Vec::new();
    let mut failures = 0;
    for object in listed {
        match store.find(&object.id, &mut content) {
            Ok(Some(kind)) if kind == object.kind && content == object.content => {}
            // Bytes with a zlib checksum cannot be wrong, but an exchanged base can.
            Ok(_) => failures += 1,
            Err(error) => {
                failures += 1;
                assert!(error.path().is_some(), "{error}");
                assert!(error.object().is_some(), "{error}");
            }
        }
        let _ = store.header(&object.id);
        let _ = store.details(&object.id);
        let _ = store.contains(&object.id);
    }
    if let Ok(ids) = store.iter() {
        assert!(ids.take(1_000_000).count() < 1_000_000);
    }
    failures
}

fn writable(path: &Path) -> PathBuf {
    let mut permissions = path.metadata().expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(path, permissions).expect("it is ours");
    path.to_owned()
}

#[test]
fn damaged_packs_and_indexes() {
    for version in ["1", "2"] {
        let repository = Repository::new(Kind::Sha1);
        repository.commit_history(1, 25);
        repository.git(&["config", "pack.indexVersion", version]);
        repository.git(&["repack", "-adfq"]);
        let listed = repository.listed_objects();
        let mut random = Random::new(99);
        for extension in ["idx", "pack"] {
            let path = writable(&repository.pack_file(extension));
            let sound = std::fs::read(&path).expect("it can be read");
            for round in 0..60 {
                let mut damaged = sound.clone();
                match round % 4 {
                    0 => damaged.truncate(random.index(sound.len())),
                    1 => damaged[random.index(40.min(sound.len()))] ^= 1 << random.index(8),
                    2 => damaged.extend_from_slice(b"trailing"),
                    _ => {
                        for _ in 0..8 {
                            let at = random.index(sound.len());
                            damaged[at] = random.number() as u8;
                        }
                    }
                }
                std::fs::write(&path, &damaged).expect("it can be written");
                let access = [ViewAccess::Mapped, ViewAccess::Positional][round % 2];
                read_all(&repository, access, &listed);
            }
            std::fs::write(&path, &sound).expect("it can be written");
            assert_eq!(read_all(&repository, ViewAccess::Auto, &listed), 0);
        }
    }
}

#[test]
fn each_way_an_index_can_be_wrong_is_named() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(2, 25);
    repository.git(&["repack", "-adfq"]);
    let path = writable(&repository.pack_file("idx"));
    let sound = std::fs::read(&path).expect("it can be read");
    let listed = repository.listed_objects();
    let count = listed.len();
    let offsets = 8 + 1024 + count * 24;
    let set = |at: usize, bytes: &[u8]| {
        let mut damaged = sound.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let cases: [(&str, Vec<u8>); 7] = [
        ("index file is too small", sound[..100].to_vec()),
        ("wrong index file size", sound[..sound.len() - 1].to_vec()),
        ("index file is of version 3", set(4, &[0, 0, 0, 3])),
        ("non-monotonic fan-out table", set(8, &[255, 0, 0, 0])),
        (
            "large offset is out of bounds",
            set(offsets, &[0xff; 4].repeat(count)),
        ),
        (
            "object offset is outside of the pack",
            set(offsets, &[0x7f, 0xff, 0xff, 0xff].repeat(count)),
        ),
        (
            "packfile does not match index",
            set(sound.len() - 40, &[0; 20]),
        ),
    ];
    for (message, damaged) in cases {
        std::fs::write(&path, damaged).expect("it can be written");
        let store = repository.store();
        let error = store
            .find(&listed[0].id, &mut Vec::new())
            .expect_err("it is damaged");
        assert!(error.message().starts_with(message), "{error}");
        assert!(error.offset().is_some(), "{error}");
        assert!(error.path().is_some(), "{error}");
        assert!(!matches!(error.kind(), ErrorKind::Io), "{error:?}");
    }
}

#[test]
fn damaged_loose_objects() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(3, 8);
    let listed = repository.listed_objects();
    let mut random = Random::new(5);
    for object in &listed {
        let hex = object.id.to_string();
        let path = repository.objects().join(&hex[..2]).join(&hex[2..]);
        let path = writable(&path);
        let sound = std::fs::read(&path).expect("it can be read");
        for round in 0..12 {
            let mut damaged = sound.clone();
            match round % 3 {
                0 => damaged.truncate(random.index(sound.len())),
                1 => damaged.extend_from_slice(b"garbage"),
                _ => damaged[random.index(sound.len())] ^= 1 << random.index(8),
            }
            std::fs::write(&path, &damaged).expect("it can be written");
            let store = repository.store();
            let mut content = Vec::new();
            match store.find(&object.id, &mut content) {
                // The window size in the first byte of zlib's header may differ.
                Ok(found) => assert!(round % 3 == 2 && found == Some(object.kind)),
                Err(error) => {
                    assert_eq!(error.path(), Some(path.as_path()), "{error}");
                    assert_eq!(error.object(), Some(hex.as_str()), "{error}");
                    assert!(error.offset().is_some(), "{error}");
                }
            }
            let _ = store.header(&object.id);
            if let Ok(Some(mut reader)) = store.reader(&object.id) {
                let _ = std::io::copy(&mut reader, &mut std::io::sink());
            }
        }
        std::fs::write(&path, &sound).expect("it can be written");
    }
    assert_eq!(read_all(&repository, ViewAccess::Auto, &listed), 0);
}

#[test]
fn a_sound_copy_is_used_where_another_is_damaged() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(4, 10);
    let listed = repository.listed_objects();
    repository.git(&["repack", "-aq"]);
    let pack = writable(&repository.pack_file("pack"));
    let mut bytes = std::fs::read(&pack).expect("it can be read");
    let end = bytes.len() - 20;
    bytes[12..end].fill(0);
    std::fs::write(&pack, bytes).expect("it can be written");
    // Loose copies exist beside the pack.
    assert_eq!(read_all(&repository, ViewAccess::Auto, &listed), 0);
}

#[test]
fn damaged_multi_pack_indexes_cost_speed_only() {
    let repository = Repository::new(Kind::Sha1);
    for seed in 10..12 {
        repository.commit_history(seed, 10);
        repository.git(&["repack", "-dq"]);
    }
    repository.git(&["multi-pack-index", "write"]);
    let listed = repository.listed_objects();
    let path = writable(&repository.objects().join("pack/multi-pack-index"));
    let sound = std::fs::read(&path).expect("it can be read");
    let mut random = Random::new(6);
    for round in 0..60 {
        let mut damaged = sound.clone();
        match round % 3 {
            0 => damaged.truncate(random.index(sound.len())),
            1 => damaged[random.index(120)] ^= 1 << random.index(8),
            _ => {
                for _ in 0..8 {
                    let at = random.index(sound.len());
                    damaged[at] = random.number() as u8;
                }
            }
        }
        std::fs::write(&path, &damaged).expect("it can be written");
        let access = [ViewAccess::Mapped, ViewAccess::Positional][round % 2];
        read_all(&repository, access, &listed);
    }
}
