//! Reads every version and extension that stock git writes.

use crate::support::{KINDS, Repository, listing};
use pronto_hash::Kind;
use pronto_index::{ErrorKind, Flags, Index, IndexEdit, Writer};

fn assert_read(repository: &Repository) {
    // A flag that git uses only in memory, for split indexes.
    let expected = repository
        .git(&["ls-files", "--stage", "--debug"])
        .replace("flags: 8000000", "flags: 0");
    assert_eq!(listing(&repository.index()), expected);
}

#[test]
fn all_versions_and_kinds() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        for version in ["2", "4", "3"] {
            repository.git(&["update-index", "--index-version", version]);
            assert_read(&repository);
            repository.index().verify().expect("the digest is right");
        }
        repository.git(&["update-index", "--skip-worktree", "empty"]);
        repository.write("later", "x");
        repository.git(&["add", "-N", "later"]);
        repository.git(&["update-index", "--assume-unchanged", "dir1/sub1/file1"]);
        for version in ["3", "4"] {
            repository.git(&["update-index", "--index-version", version]);
            assert_read(&repository);
        }
        let index = repository.index();
        let at = index.find("later".into(), 0).expect("it is there");
        assert!(index.entry(at).flags.contains(Flags::INTENT_TO_ADD));
    }
}

#[test]
fn a_file_cut_short_under_its_reader_is_an_error() {
    for version in ["2", "4"] {
        let repository = Repository::with_files(Kind::Sha1);
        for number in 0..500 {
            repository.write(&format!("many/file{number}"), "content");
        }
        repository.git(&["add", "."]);
        repository.git(&["update-index", "--index-version", version]);
        let index = repository.index();
        let before = listing(&index);
        index.intact().expect("nobody has touched it");
        let file = std::fs::File::options()
            .write(true)
            .open(repository.index_path());
        file.expect("it is ours").set_len(5000).expect("it is ours");
        // The result is arbitrary, but reading succeeds.
        let changed = listing(&index) != before;
        assert_eq!(changed, version == "2");
        let error = index.intact().expect_err("it is not what it was");
        let path = repository.index_path();
        assert_eq!(
            error.to_string(),
            format!(
                "unable to read index file '{}': the file was truncated while it was in use",
                path.display()
            )
        );
        let edit = IndexEdit::new(&index);
        let encoded = Writer::default().encode(&edit.content());
        encoded.expect_err("zeros are not written as an index");
    }
}

#[test]
fn a_missing_file_is_an_empty_index() {
    let repository = Repository::new(Kind::Sha1);
    assert!(repository.index().is_empty());
    assert_eq!(repository.index().identity(), None);
}

#[test]
fn entries_are_found_by_path_and_directory() {
    let repository = Repository::with_files(Kind::Sha1);
    let index = repository.index();
    for (position, entry) in index.iter().enumerate() {
        assert_eq!(index.find(entry.path, 0), Ok(position));
        assert_eq!(index.stages(entry.path), position..position + 1);
    }
    assert!(index.find("dir0".into(), 0).is_err());
    let below = index.below("dir1".into());
    assert_eq!(
        below.len(),
        repository.git(&["ls-files", "dir1"]).lines().count()
    );
    assert!(
        below
            .into_iter()
            .all(|at| index.path(at).starts_with(b"dir1/"))
    );
    assert!(index.below("dir".into()).is_empty());
    assert_eq!(index.below("".into()), 0..index.len());
}

#[test]
fn split_indexes_are_merged() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        repository.git(&["update-index", "--split-index"]);
        assert_read(&repository);
        assert!(repository.index().is_split());
        repository.write("dir0/sub0/file0", "changed and longer");
        repository.write("added/first", "x");
        repository.write("zzz", "x");
        repository.git(&["add", "."]);
        repository.git(&["rm", "-q", "dir1/sub1/file1", "dir2/sub2/file2"]);
        assert_read(&repository);
        let index = repository.index();
        assert!(index.is_split());
        let bytes = std::fs::read(repository.index_path()).expect("it is there");
        let error = Index::from_bytes(bytes, kind).expect_err("half is missing");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn conflicts_and_their_undoing() {
    let repository = Repository::with_files(Kind::Sha1);
    repository.git(&["checkout", "-qb", "other"]);
    repository.write("dir0/sub0/file0", "theirs");
    repository.git(&["commit", "-qam", "theirs"]);
    repository.git(&["checkout", "-q", "-"]);
    repository.write("dir0/sub0/file0", "ours");
    repository.git(&["commit", "-qam", "ours"]);
    assert!(!repository.try_git(&["merge", "other"]).status.success());
    assert_read(&repository);
    let index = repository.index();
    assert_eq!(index.stages("dir0/sub0/file0".into()).len(), 3);
    repository.git(&["add", "dir0/sub0/file0"]);
    let undo = repository
        .index()
        .resolve_undo()
        .expect("sound")
        .expect("one is there");
    assert_eq!(undo.paths.len(), 1);
    assert_eq!(undo.paths[0].path, "dir0/sub0/file0");
    assert!(undo.paths[0].stages.iter().all(Option::is_some));
}

#[test]
fn cached_trees_are_those_of_the_commit() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        repository.git(&["read-tree", "HEAD"]);
        let tree = repository
            .index()
            .cached_tree()
            .expect("read-tree makes it");
        for path in ["", "dir0", "dir0/sub3", "long"] {
            let directory = tree.lookup(path.into()).expect("it is known");
            let id = repository.git(&["rev-parse", &format!("HEAD:{path}")]);
            assert_eq!(directory.id().expect("it is valid").to_string(), id.trim());
        }
        repository.write("dir0/sub0/file0", "changed");
        repository.git(&["update-index", "dir0/sub0/file0"]);
        let tree = repository.index().cached_tree().expect("it stays");
        assert!(
            tree.lookup("dir0/sub0".into())
                .expect("it stays")
                .id()
                .is_none()
        );
        assert!(tree.lookup("dir1".into()).expect("it stays").id().is_some());
    }
}

#[test]
fn offsets_untracked_cache_and_sparse_directories() {
    let repository = Repository::with_files(Kind::Sha1);
    repository.git(&[
        "-c",
        "index.threads=3",
        "update-index",
        "--force-write-index",
    ]);
    assert_read(&repository);
    let bytes = std::fs::read(repository.index_path()).expect("it is there");
    let holds = |signature: &[u8]| bytes.windows(4).any(|window| window == signature);
    assert!(holds(b"IEOT") && holds(b"EOIE"));
    repository.git(&["update-index", "--force-untracked-cache"]);
    repository.git(&["status"]);
    assert!(repository.index().untracked_cache().is_some());
    repository.git(&["update-index", "--no-untracked-cache"]);
    repository.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "dir0"]);
    let index = repository.index();
    assert!(index.is_sparse());
    assert!(index.iter().any(|entry| entry.is_sparse_directory()));
    assert_eq!(
        listing(&index),
        repository.git(&["ls-files", "--sparse", "--stage", "--debug"])
    );
}
