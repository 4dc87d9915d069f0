//! Writes the same index as stock git, which accepts it.

use crate::support::{KINDS, Repository, listing};
use pronto_hash::Kind;
use pronto_index::{
    CachedTree, Entry, EntryRef, ErrorKind, Flags, Index, IndexEdit, IndexLock, IndexVersion,
    OffsetTable, Stat, Writer, mode,
};
use pronto_io::sync::SyncMethod;

fn rewrite(repository: &Repository, writer: &Writer) -> Vec<u8> {
    let index = repository.index();
    let edit = IndexEdit::new(&index);
    writer.encode(&edit.content()).expect("it is sound")
}

fn on_disk(repository: &Repository) -> Vec<u8> {
    std::fs::read(repository.index_path()).expect("git wrote it")
}

#[test]
fn an_unchanged_index_comes_out_as_it_went_in() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        repository.git(&["update-index", "--force-untracked-cache"]);
        repository.git(&["status"]);
        for version in ["2", "4", "3"] {
            repository.git(&["update-index", "--index-version", version]);
            assert_eq!(
                rewrite(&repository, &Writer::default()),
                on_disk(&repository)
            );
        }
        repository.git(&["update-index", "--skip-worktree", "empty"]);
        assert_eq!(
            rewrite(&repository, &Writer::default()),
            on_disk(&repository)
        );
    }
}

#[test]
fn marks_are_taken_off_in_memory() {
    for kind in KINDS {
        for setting in [&["--index-version", "2"], &["--index-version", "4"]] {
            let repository = Repository::with_files(kind);
            repository.git(&[&["update-index"][..], setting].concat());
            repository.git(&["update-index", "--skip-worktree", "empty", "link"]);
            repository.git(&["update-index", "--no-skip-worktree", "empty", "link"]);
            let before = on_disk(&repository);
            repository.git(&["update-index", "--skip-worktree", "empty", "link"]);
            let mut index = repository.index();
            index.unskip(&[]);
            let marked = ["empty", "link"].map(|path| index.find(path.into(), 0).expect("there"));
            assert!(index.entry(marked[0]).flags.contains(Flags::SKIP_WORKTREE));
            index.unskip(&marked);
            // Entries without a mark do not change.
            index.unskip(&[0]);
            assert!(!index.entry(marked[0]).flags.contains(Flags::SKIP_WORKTREE));
            let encoded = Writer::default().encode(&IndexEdit::new(&index).content());
            assert_eq!(encoded.expect("it is sound"), before);
            assert_eq!(repository.index().timestamp(), index.timestamp());
        }
    }
}

#[test]
fn offsets_for_threads_are_those_of_git() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        for version in ["2", "4"] {
            for threads in [2, 3, 7] {
                repository.git(&["update-index", "--index-version", version]);
                let setting = format!("index.threads={threads}");
                repository.git(&["-c", &setting, "update-index", "--force-write-index"]);
                let offset_table = OffsetTable {
                    threads: Some(threads),
                    cores: 2,
                    ..OffsetTable::default()
                };
                let writer = Writer {
                    offset_table,
                    ..Writer::default()
                };
                assert_eq!(rewrite(&repository, &writer), on_disk(&repository));
            }
        }
    }
}

#[test]
fn changes_are_merged() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        let index = repository.index();
        let id = index.entry(0).id.to_owned();
        let mut edit = IndexEdit::new(&index);
        for (path, stage) in [("a", 0), ("dir1/new", 0), ("zz", 2), ("zz", 3)] {
            edit.set(Entry {
                path: path.into(),
                id,
                mode: mode::FILE,
                flags: Flags::default().with_stage(stage),
                stat: Stat::default(),
            });
        }
        edit.remove_path("empty".into());
        edit.set(Entry {
            path: "link".into(),
            flags: Flags::SKIP_WORKTREE,
            ..index
                .entry(index.find("link".into(), 0).expect("there"))
                .to_owned()
        });
        let bytes = Writer::default()
            .encode(&edit.content())
            .expect("it is sound");
        let lock = IndexLock::acquire(&repository.index_path()).expect("nobody has it");
        lock.commit(&bytes).expect("it can be written");
        let written = repository.index();
        assert_eq!(written.version(), 3);
        assert_eq!(
            repository.git(&["ls-files", "--stage", "--debug"]),
            listing(&written)
        );
        assert!(written.find("empty".into(), 0).is_err());
        assert!(written.find("a".into(), 0).is_ok());
        assert_eq!(written.stages("zz".into()).len(), 2);
        let tree = written.cached_tree().expect("it stays");
        assert!(tree.root().id().is_none());
        assert!(tree.lookup("dir1".into()).expect("it stays").id().is_none());
        assert!(tree.lookup("dir2".into()).expect("it stays").id().is_some());
        repository.git(&["fsck"]);
    }
}

#[test]
fn a_new_index_is_as_read_tree_makes_it() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        std::fs::remove_file(repository.index_path()).expect("it is there");
        repository.git(&["read-tree", "HEAD"]);
        let old = repository.index();
        let empty = Index::empty(kind);
        let mut edit = IndexEdit::new(&empty);
        for entry in old.iter() {
            edit.set(entry.to_owned());
        }
        edit.set_cached_tree(Some(trees(&repository)));
        let bytes = Writer::default()
            .encode(&edit.content())
            .expect("it is sound");
        assert_eq!(bytes, on_disk(&repository));
    }
}

/// Returns the trees of `HEAD` in the order of a walk.
fn trees(repository: &Repository) -> CachedTree {
    let id = |spec: &str| {
        let id = repository.git(&["rev-parse", spec]);
        pronto_hash::ObjectId::from_hex(id.trim().as_bytes()).expect("an id")
    };
    let mut builder = CachedTree::builder(id("HEAD:"));
    let mut depth = 0;
    for line in repository.git(&["ls-tree", "-rt", "HEAD"]).lines() {
        let (columns, path) = line.split_once('\t').expect("two columns");
        let parents = path.matches('/').count();
        (parents..depth).for_each(|_| builder.leave());
        depth = parents;
        if columns.contains(" tree ") {
            let name = path.rsplit('/').next().expect("it has a name");
            builder.enter(name.into(), id(&format!("HEAD:{path}")));
            depth += 1;
        } else {
            builder.add_entries(1);
        }
    }
    builder.finish()
}

#[test]
fn other_versions_and_no_digest() {
    let repository = Repository::with_files(Kind::Sha1);
    let writer = Writer {
        force_version: Some(IndexVersion::Four),
        skip_hash: true,
        ..Writer::default()
    };
    let bytes = rewrite(&repository, &writer);
    let before = listing(&repository.index());
    IndexLock::acquire(&repository.index_path())
        .expect("free")
        .commit(&bytes)
        .expect("written");
    let index = repository.index();
    assert_eq!((index.version(), listing(&index)), (4, before));
    assert!(index.checksum().expect("it has an end").is_null());
    index.verify().expect("zeros are not checked");
    repository.git(&["-c", "index.skipHash=true", "status"]);
}

#[test]
fn a_lock_is_seen_and_given_back() {
    let repository = Repository::with_files(Kind::Sha1);
    let path = repository.index_path();
    let lock = IndexLock::acquire(&path).expect("nobody has it");
    let error = IndexLock::acquire(&path).expect_err("it is taken");
    assert_eq!(error.kind(), ErrorKind::Locked);
    let text = error.to_string();
    assert!(text.starts_with("Unable to create '") && text.contains("index.lock': File exists."));
    assert!(!repository.try_git(&["add", "."]).status.success());
    drop(lock);
    repository.git(&["add", "."]);
    let index = repository.index();
    repository.write("another", "x");
    repository.git(&["add", "."]);
    let before = on_disk(&repository);
    let held = IndexLock::acquire(&path).expect("nobody has it");
    let now = repository.index();
    assert!(
        !pronto_index::replace(&path, b"", &now, SyncMethod::No).expect("somebody else is writing")
    );
    drop(held);
    assert!(
        !pronto_index::replace(&path, b"", &index, SyncMethod::No)
            .expect("somebody else has written")
    );
    assert!(
        pronto_index::replace(&path, &before, &now, SyncMethod::Flush).expect("it is writable")
    );
    assert_eq!(on_disk(&repository), before);
    assert!(!repository.path(".git/index.lock").exists());
}

#[test]
fn racily_clean_entries_are_smudged_when_they_differ() {
    let repository = Repository::with_files(Kind::Sha1);
    let index = repository.index();
    let edit = IndexEdit::new(&index);
    let mut content = edit.content();
    let mut asked = 0;
    content.smudge(|entry| {
        asked += 1;
        entry.path == "dir0/sub0/file0"
    });
    let racy = |entry: &EntryRef<'_>| entry.stat.is_racy_by_second(index.timestamp());
    assert_eq!(asked, index.iter().filter(racy).count());
    // The second may have passed while the files were written.
    let is_racy = index
        .iter()
        .any(|entry| entry.path == "dir0/sub0/file0" && racy(&entry));
    let smudged = content
        .entries
        .iter()
        .filter(|entry| entry.stat.size_bytes == 0 && entry.path == "dir0/sub0/file0");
    assert_eq!(smudged.count(), usize::from(is_racy));
}

#[test]
fn unsorted_or_empty_entries_are_refused() {
    let empty = Index::empty(Kind::Sha1);
    let mut edit = IndexEdit::new(&empty);
    edit.set(Entry {
        path: "a".into(),
        id: Kind::Sha1.null(),
        mode: mode::FILE,
        flags: Flags::default(),
        stat: Stat::default(),
    });
    let error = Writer::default()
        .encode(&edit.content())
        .expect_err("it has no object");
    assert_eq!(error.message(), "cache entry has null sha1: a");
}
