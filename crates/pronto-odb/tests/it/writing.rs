//! Objects are written as git writes them.

use std::os::unix::fs::PermissionsExt as _;

use gix_object::Kind as ObjectKind;
use pronto_hash::Kind;
use pronto_odb::{ErrorKind, Quarantine, SharedPermissions, Store};

use super::support::{Repository, assert_same, git_in, git_with_input};

#[test]
fn git_reads_what_was_written() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let repository = Repository::new(kind);
        for level in [0, 1, 6, 9] {
            let mut options = repository.options();
            options.loose_compression = level;
            options.fsync_loose = match level {
                9 => pronto_io::sync::SyncMethod::Flush,
                _ => pronto_io::sync::SyncMethod::No,
            };
            let store = Store::open(repository.objects(), options).expect("it can be opened");
            // One of them is too large to be deflated in one piece.
            let len = if level == 1 { 4_500_000 } else { 100_000u32 };
            let large: Vec<u8> = (0..len)
                .map(|at| (at.wrapping_mul(at) >> 9) as u8 ^ level)
                .collect();
            for content in [&b""[..], b"hello", &large] {
                let id = store.write(ObjectKind::Blob, content).expect("writable");
                let listed = git_with_input(
                    repository.directory.path(),
                    &["hash-object", "--stdin"],
                    content,
                );
                assert_eq!(id.to_string().as_bytes(), listed.trim_ascii_end());
                let mut other = content.to_owned();
                other.push(b'x');
                let streamed = store
                    .write_stream(ObjectKind::Blob, other.len() as u64, &mut &other[..])
                    .expect("it can be written");
                assert!(store.contains(&streamed).expect("it can be read"));
            }
        }
        repository.git(&["fsck", "--full", "--strict"]);
        assert_same(&repository.store(), &repository.listed_objects());
        let leftovers = std::fs::read_dir(repository.objects()).expect("it is there");
        for entry in leftovers {
            let entry = entry.expect("it can be listed");
            assert!(!entry.file_name().display().to_string().starts_with("tmp"));
        }
    }
}

#[test]
fn a_stream_of_the_wrong_size_leaves_nothing() {
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    for size in [4, 6] {
        let error = store.write_stream(ObjectKind::Blob, size, &mut &b"hello"[..]);
        error.expect_err("it is not of that size");
    }
    assert_eq!(repository.listed_objects(), Vec::new());
    let left = std::fs::read_dir(repository.objects()).expect("it is there");
    assert_eq!(left.count(), 2, "info and pack");
}

#[test]
fn permissions_follow_sharing() {
    let repository = Repository::new(Kind::Sha1);
    for (sharing, name, file, directory) in [
        (SharedPermissions::Umask, "umask", 0o444, None),
        (SharedPermissions::Group, "group", 0o444, Some(0o2770)),
        (SharedPermissions::Everybody, "all", 0o444, Some(0o2775)),
        (SharedPermissions::Mode(0o640), "0640", 0o440, Some(0o2750)),
    ] {
        let mut options = repository.options();
        options.sharing = sharing;
        let store = Store::open(repository.objects(), options).expect("it can be opened");
        let content = name.as_bytes();
        let id = store.write(ObjectKind::Blob, content).expect("writable");
        let hex = id.to_string();
        let parent = repository.objects().join(&hex[..2]);
        let mode = |path: &std::path::Path| {
            path.metadata().expect("it is there").permissions().mode() & 0o7777
        };
        assert_eq!(mode(&parent.join(&hex[2..])) & file, file, "{name}");
        assert_eq!(mode(&parent.join(&hex[2..])) & 0o222, 0, "{name}");
        if let Some(directory) = directory {
            assert_eq!(mode(&parent) & directory, directory, "{name}");
        }
    }
}

#[test]
fn an_object_that_is_there_is_only_touched() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(1, 5);
    repository.git(&["repack", "-adq"]);
    let store = repository.store();
    for listed in repository.listed_objects() {
        let id = store.write(listed.kind, &listed.content).expect("writable");
        assert_eq!(id, listed.id);
    }
    let loose = git_in(repository.directory.path(), &["count-objects"]);
    assert!(loose.starts_with(b"0 objects"));
}

#[test]
fn a_quarantine_is_seen_by_its_own_store_alone_until_it_is_published() {
    let source = Repository::new(Kind::Sha1);
    source.commit_history(2, 30);
    source.git(&["repack", "-adq"]);
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    let before = store.write(ObjectKind::Blob, b"before").expect("writable");
    for publish in [false, true] {
        let quarantine = Quarantine::begin(&store).expect("it can be made");
        let inside = quarantine.store();
        let loose = inside.write(ObjectKind::Blob, b"loose").expect("writable");
        for extension in ["pack", "idx"] {
            let file = source.pack_file(extension);
            let name = file.file_name().expect("a name");
            std::fs::copy(&file, quarantine.pack_directory().join(name)).expect("a copy");
        }
        let listed = source.listed_objects();
        assert!(inside.contains(&before).expect("it can be read"));
        assert!(inside.contains(&listed[0].id).expect("it can be read"));
        assert!(!store.contains(&listed[0].id).expect("it can be read"));
        assert!(!store.contains(&loose).expect("it can be read"));
        let path = quarantine.path().to_owned();
        if publish {
            quarantine.publish().expect("it can be moved");
            assert!(store.contains(&loose).expect("it can be read"));
            assert_same(&store, &repository.listed_objects());
        } else {
            drop(quarantine);
        }
        assert!(!path.exists());
    }
    repository.git(&["fsck", "--full"]);
    assert_eq!(
        repository.listed_objects().len(),
        source.listed_objects().len() + 2
    );
}

#[test]
fn what_is_there_under_the_same_name_is_compared() {
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    let source = Repository::new(Kind::Sha1);
    source.commit_history(2, 5);
    source.git(&["repack", "-adq"]);
    let pack = source.pack_file("pack");
    let pack_there = repository
        .objects()
        .join("pack")
        .join(pack.file_name().expect("a name"));
    let publish = || {
        let quarantine = Quarantine::begin(&store).expect("it can be made");
        let written = quarantine.store().write(ObjectKind::Blob, b"same");
        let id = written.expect("writable");
        let name = pack.file_name().expect("a name");
        std::fs::copy(&pack, quarantine.pack_directory().join(name)).expect("a copy");
        // The object was added to the real directory after it was written here.
        (id, quarantine)
    };
    let (id, quarantine) = publish();
    repository.git(&["config", "core.compression", "0"]);
    let text = id.to_string();
    let loose = repository.objects().join(&text[..2]).join(&text[2..]);
    git_with_input(
        repository.directory.path(),
        &["hash-object", "-w", "--stdin"],
        b"same",
    );
    let there = std::fs::read(&loose).expect("it is there");
    std::fs::copy(&pack, &pack_there).expect("a copy");
    quarantine.publish().expect("they are the same");
    assert!(
        there == std::fs::read(&loose).expect("it is there"),
        "it stays as it was"
    );

    std::fs::remove_file(&loose).expect("it is ours");
    let (_, quarantine) = publish();
    std::fs::write(&loose, b"damaged").expect("the directory is there");
    quarantine
        .publish()
        .expect("what is damaged does not count");
    assert_eq!(repository.git(&["cat-file", "blob", &text]), b"same");

    let (_, quarantine) = publish();
    let mut other = std::fs::read(&pack).expect("it is there");
    other[100] ^= 1;
    std::fs::remove_file(&pack_there).expect("it is ours");
    std::fs::write(&pack_there, other).expect("it is ours");
    let error = quarantine.publish().expect_err("another pack has the name");
    assert_eq!(error.kind(), ErrorKind::Collision, "{error}");
    assert!(error.to_string().ends_with(&format!(
        "and '{}' differ in contents",
        pack_there.display()
    )));

    std::fs::remove_file(&pack_there).expect("it is ours");
    std::fs::remove_file(&loose).expect("it is ours");
    let (_, quarantine) = publish();
    store
        .write_known(&id, ObjectKind::Blob, b"another")
        .expect("writable");
    let error = quarantine
        .publish()
        .expect_err("another object has the name");
    assert_eq!(error.kind(), ErrorKind::Collision, "{error}");
}

#[test]
fn a_pack_is_indexed_into_a_quarantine() {
    use pronto_pack::indexer::{self, index_stream};
    let source = Repository::new(Kind::Sha1);
    source.commit_history(3, 60);
    source.git(&["repack", "-adfq"]);
    let pack = std::fs::read(source.pack_file("pack")).expect("it can be read");
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    for listed in source.listed_objects().iter().step_by(3) {
        store.write(listed.kind, &listed.content).expect("writable");
    }
    let quarantine = Quarantine::begin(&store).expect("it can be made");
    let inventory = store.inventory().expect("it can be listed");
    let context = indexer::IndexContext {
        existing: Some(&inventory),
        ..indexer::IndexContext::default()
    };
    let options = indexer::Options::default();
    let directory = quarantine.pack_directory();
    let outcome =
        index_stream(&mut &pack[..], &directory, &options, &context).expect("the pack is sound");
    assert_eq!(outcome.objects as usize, source.listed_objects().len());
    quarantine.publish().expect("it can be moved");
    assert_same(&store, &source.listed_objects());
    let index = std::fs::read(repository.pack_file("idx")).expect("it can be read");
    assert!(index == std::fs::read(source.pack_file("idx")).expect("it can be read"));
}

#[test]
fn an_object_that_differs_from_the_one_that_is_there_is_refused() {
    use pronto_pack::indexer::{self, index_stream};
    let source = Repository::new(Kind::Sha1);
    source.commit_history(4, 5);
    source.git(&["repack", "-adfq"]);
    let pack = std::fs::read(source.pack_file("pack")).expect("it can be read");
    let repository = Repository::new(Kind::Sha1);
    let store = repository.store();
    let listed = source.listed_objects();
    let blob = listed
        .iter()
        .find(|listed| listed.kind == ObjectKind::Blob)
        .expect("one");
    store
        .write_known(&blob.id, ObjectKind::Blob, b"another content")
        .expect("it can be written");
    let quarantine = Quarantine::begin(&store).expect("it can be made");
    let inventory = store.inventory().expect("it can be listed");
    let context = indexer::IndexContext {
        existing: Some(&inventory),
        ..indexer::IndexContext::default()
    };
    let error = index_stream(
        &mut &pack[..],
        &quarantine.pack_directory(),
        &indexer::Options::default(),
        &context,
    )
    .expect_err("they collide");
    assert_eq!(error.kind(), pronto_pack::ErrorKind::Collision, "{error}");
}
