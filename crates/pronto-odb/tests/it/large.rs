//! Large objects that are stored as deltas of one another.

use std::io::Read as _;

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::ViewAccess;
use pronto_odb::{ObjectData, Store};

use test_support::Random;

use super::support::{Repository, random_line};

/// Returns versions of a file of at least `len` bytes, each with some different lines.
fn versions(len: usize, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(len as u64);
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    while bytes < len {
        lines.push(random_line(&mut random));
        bytes += lines[lines.len() - 1].len();
    }
    (0..count)
        .map(|version| {
            for _ in 0..version * 20 {
                let at = random.index(lines.len());
                lines[at] = random_line(&mut random);
                lines.push(random_line(&mut random));
            }
            lines.concat().into_bytes()
        })
        .collect()
}

/// Creates a repository with `versions` of a file in one pack. Returns their ids.
fn packed(versions: &[Vec<u8>]) -> (Repository, Vec<ObjectId>) {
    let repository = Repository::new(Kind::Sha1);
    repository.git(&["config", "core.compression", "1"]);
    let ids = versions.iter().map(|version| {
        std::fs::write(repository.directory.path().join("file"), version).expect("a file");
        repository.git(&["add", "file"]);
        repository.git(&["commit", "-qm", "another one"]);
        let hex = repository.git(&["rev-parse", ":file"]);
        ObjectId::from_hex(hex.trim_ascii_end()).expect("hex")
    });
    let ids = ids.collect();
    repository.git(&["repack", "-adfq"]);
    (repository, ids)
}

fn read(store: &Store, id: &ObjectId, threshold: u64) -> Vec<u8> {
    let mut content = Vec::new();
    let found = store.find_or_stream(id, threshold, &mut content);
    match found.expect("it can be read").expect("it is there") {
        ObjectData::Whole(_) => {}
        ObjectData::Large(mut reader) => {
            content.clear();
            let size = reader.size_bytes();
            reader.read_to_end(&mut content).expect("it can be read");
            assert_eq!(content.len() as u64, size);
        }
    }
    content
}

#[test]
fn chains_are_read_whatever_is_kept_of_them() {
    let versions = versions(2_500_000, 6);
    let (repository, ids) = packed(&versions);
    let is_delta = |store: &Store, id| store.delta_base(id).expect("it can be read").is_some();
    for (delta_base_cache_bytes, access) in [
        (96 << 20, ViewAccess::Mapped),
        (8 << 20, ViewAccess::Positional),
        (0, ViewAccess::Mapped),
    ] {
        let mut options = repository.options();
        options.delta_base_cache_bytes = delta_base_cache_bytes;
        options.access = access;
        let store = Store::open(repository.objects(), options).expect("it can be opened");
        assert_eq!(ids.iter().filter(|id| is_delta(&store, id)).count(), 5);
        for at in [5, 0, 3, 3, 1, 4, 2] {
            for threshold in [1 << 20, 1 << 30] {
                assert!(read(&store, &ids[at], threshold) == versions[at], "{at}");
            }
        }
        // Many at the same time.
        std::thread::scope(|scope| {
            for start in 0..4 {
                let (store, ids, versions) = (&store, &ids, &versions);
                scope.spawn(move || {
                    for at in (0..6).map(|at| (at + start) % 6) {
                        assert!(read(store, &ids[at], 1 << 20) == versions[at], "{at}");
                    }
                });
            }
        });
    }
}

#[test]
fn what_is_too_large_for_memory_is_made_in_files() {
    let versions = versions(17 << 20, 3);
    let (repository, ids) = packed(&versions);
    let store = repository.store();
    for (id, version) in ids.iter().zip(&versions) {
        assert!(read(&store, id, 1 << 20) == *version);
    }
    let left = std::fs::read_dir(repository.objects().join("pack")).expect("it is there");
    let left = left.flatten().map(|file| file.file_name());
    let mut left = left.filter(|name| name.to_string_lossy().starts_with("tmp_"));
    assert_eq!(left.next(), None);
}
