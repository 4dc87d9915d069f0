//! Tests that objects with unexpected content are detected and named.

use std::fs;
use std::path::{Path, PathBuf};

use pronto::Watch;
use pronto_store::{ErrorKind, StoreProblem};

use super::support::{Server, id};

/// Returns the files below the repository whose names end with `ending`, sorted.
fn files(folder: &Path, directory: &str, ending: &str) -> Vec<PathBuf> {
    let directory = folder.join("team/r.git").join(directory);
    let entries = fs::read_dir(&directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}

fn problems(server: &Server, digests: bool) -> Vec<StoreProblem> {
    let watch = Watch::none();
    let verified = server.store.wait(server.repository.verify(digests, &watch));
    verified.expect("readable").problems
}

fn world() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().expect("a directory");
    let server = Server::new(folder.path());
    server.create();
    server
        .push("refs/heads/main", None, "a")
        .expect("committed");
    server
        .push("refs/heads/main", Some(id("a")), "b")
        .expect("committed");
    assert_eq!(problems(&server, true), []);
    (folder, server)
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("writable");
}

#[test]
fn a_flipped_bit_is_found_and_never_served() {
    let (folder, server) = world();
    let packs = files(folder.path(), "pack", ".pack");
    flip(&packs[0]);
    assert_eq!(problems(&server, false), [], "the size is right");
    let found = problems(&server, true);
    let name = packs[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        matches!(&found[..], [StoreProblem::Changed { name: changed, .. }] if changed.ends_with(&name)),
        "{found:?}"
    );
    let newest = server
        .store
        .wait(server.repository.latest())
        .expect("readable");
    let view = folder.path().join("view");
    let watch = Watch::none();
    let written = server.repository.write_view(&newest, &view, None, &watch);
    let error = server.store.wait(written).expect_err("a changed pack");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(&name), "{error}");
    assert!(!view.exists());
}

#[test]
fn a_truncated_or_missing_object_is_found() {
    let (folder, server) = world();
    let packs = files(folder.path(), "pack", ".idx");
    fs::write(&packs[0], b"").expect("writable");
    fs::remove_file(&packs[1]).expect("a file");
    let found = problems(&server, false);
    assert_eq!(found.len(), 2, "{found:?}");
    let newest = server
        .store
        .wait(server.repository.latest())
        .expect("readable");
    for pack in &newest.manifest.packs {
        for object in pack
            .objects()
            .filter(|object| object.name.ends_with(".idx"))
        {
            let read = server
                .store
                .wait(server.repository.object(&object, 1 << 20));
            let kind = read.expect_err("damaged").kind();
            assert!(
                matches!(kind, ErrorKind::Missing | ErrorKind::Corrupt),
                "{kind:?}"
            );
        }
    }
}

#[test]
fn a_changed_manifest_is_found() {
    let (folder, server) = world();
    // The newest generation is first.
    let generations = files(folder.path(), "generation", "");
    flip(&generations[0]);
    let fresh = Server::new(folder.path());
    let error = fresh
        .store
        .wait(fresh.repository.latest())
        .expect_err("a changed manifest");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("generation/"), "{error}");
    let found = problems(&server, false);
    assert!(
        matches!(found[..], [StoreProblem::Manifest { number: 3, .. }]),
        "{found:?}"
    );
}

#[test]
fn an_older_bucket_is_noticed() {
    let (folder, server) = world();
    let generations = files(folder.path(), "generation", "");
    fs::remove_file(&generations[0]).expect("a file");
    // Another server starts with the older state and commits on top of it, so the number is the
    // same and the content differs.
    let other = Server::new(folder.path());
    other
        .push("refs/heads/main", Some(id("a")), "c")
        .expect("committed");
    other
        .push("refs/heads/main", Some(id("c")), "d")
        .expect("committed");
    let error = server
        .store
        .wait(server.repository.latest())
        .expect_err("another history");
    assert_eq!(error.kind(), ErrorKind::Restored);
    let error = server
        .push("refs/heads/x", None, "x")
        .expect_err("another history");
    assert_eq!(error.kind(), ErrorKind::Restored);
}

#[test]
fn a_gap_in_the_generations_is_found() {
    let (folder, server) = world();
    let generations = files(folder.path(), "generation", "");
    fs::remove_file(&generations[1]).expect("a file");
    assert_eq!(
        problems(&server, false),
        [StoreProblem::NoGenerations { first: 2, last: 2 }]
    );
}
