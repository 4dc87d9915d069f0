//! The untracked cache and the file system monitor extension as written by git.

use crate::support::{KINDS, Repository};
use bstr::ByteSlice as _;
use pronto_hash::Kind;
use pronto_index::{
    Fsmonitor, Index, IndexEdit, IndexLock, IndexOutline, UntrackedCache, UntrackedList, Writer,
};

/// A repository with untracked files and an untracked cache.
fn with_untracked(kind: Kind) -> Repository {
    let repository = Repository::with_files(kind);
    repository.write(".gitignore", "*.o\n");
    repository.write("dir0/.gitignore", "!keep.o\n");
    for path in ["new", "dir0/new", "d/e/f", "dir1/sub1/x.o", "dir0/keep.o"] {
        repository.write(path, path);
    }
    std::fs::create_dir(repository.path("hollow")).expect("a directory");
    repository.git(&["config", "core.untrackedCache", "true"]);
    repository.git(&["status"]);
    repository.git(&["status"]);
    repository
}

fn raw(repository: &Repository) -> Vec<u8> {
    let bytes = std::fs::read(repository.index_path()).expect("git wrote it");
    let at = bytes.windows(4).position(|four| four == b"UNTR");
    let at = at.expect("git wrote the extension");
    let size = u32::from_be_bytes(bytes[at + 4..at + 8].try_into().expect("four bytes"));
    bytes[at + 8..][..size as usize].to_vec()
}

#[test]
fn what_git_cached_is_read_and_written_the_same() {
    for kind in KINDS {
        let repository = with_untracked(kind);
        let index = repository.index();
        let cache = index.untracked_cache().expect("it is sound");
        assert_eq!(cache.flags, UntrackedCache::NORMAL);
        assert!(cache.ident.starts_with(b"Location /"));
        let top = cache.directory(0);
        assert!(top.name.is_empty() && !top.exclude_id.is_null());
        let names: Vec<_> = top.untracked.iter().map(ToString::to_string).collect();
        assert!(names.contains(&"new".to_owned()) && names.contains(&"d/".to_owned()));
        let below: Vec<_> = cache
            .children(0)
            .map(|at| cache.directory(at).name.to_string())
            .collect();
        assert_eq!(below, ["d", "dir0", "dir1", "dir2", "hollow", "long"]);
        let mut encoded = Vec::new();
        cache.encode(&mut encoded);
        assert_eq!(encoded, raw(&repository));
        for cut in 0..encoded.len() {
            let _ = UntrackedCache::parse(&encoded[..cut], kind);
        }
        let mut copy = cache.successor();
        let top = copy.open(cache.directory(0).clone());
        for child in cache.children(0) {
            copy.copy(&cache, child);
        }
        copy.close(top);
        assert_eq!(copy, cache);
    }
}

#[test]
fn a_list_of_untracked_files_is_read_for_the_index_it_was_written_for() {
    for kind in KINDS {
        let repository = Repository::with_files(kind);
        for path in ["new", "dir0/new", "d/e/f"] {
            repository.write(path, path);
        }
        repository.git(&["config", "core.untrackedCache", "true"]);
        repository.git(&["config", "status.showUntrackedFiles", "all"]);
        repository.git(&["status"]);
        repository.git(&["status"]);
        let index = repository.index();
        let cache = index.untracked_cache().expect("it is sound");
        assert_eq!(cache.flags, UntrackedCache::ALL);
        let outline = index.outline();
        assert_eq!(outline.read_untracked_list(), None);
        let tracked = (0..cache.len()).map(|at| [at as u8; 16]).collect();
        let list = UntrackedList::new(outline, b"token".as_bstr().into(), tracked, cache);
        let list = list.expect("the index is a file");
        for _ in 0..2 {
            (outline.write_untracked_list(&list)).expect("the directory is writable");
        }
        let bytes = outline.read_untracked_list().expect("it was written");
        let read = UntrackedList::parse(&bytes, kind).expect("it is sound");
        assert_eq!(read, list);
        assert!(read.is_for(outline));
        for cut in 0..bytes.len() {
            assert_eq!(UntrackedList::parse(&bytes[..cut], kind), None);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(UntrackedList::parse(&damaged, kind), None);
        }
        repository.git(&["add", "new"]);
        assert!(!read.is_for(repository.index().outline()));
    }
}

#[test]
fn entries_that_come_and_go_are_forgotten_above() {
    let repository = with_untracked(Kind::Sha1);
    let index = repository.index();
    let mut edit = IndexEdit::new(&index);
    edit.remove_path("dir1/sub1/file1".into());
    let bytes = Writer::default().encode(&edit.content()).expect("sound");
    let lock = IndexLock::acquire(&repository.index_path()).expect("nobody has it");
    lock.commit(&bytes).expect("it is writable");
    let after = repository.index();
    let cache = after.untracked_cache().expect("it is sound");
    let valid = |path: &str| {
        let mut at = 0;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = cache.child(at, name.into()).expect("it is known");
        }
        cache.directory(at).is_valid
    };
    assert!(!valid("") && !valid("dir1") && !valid("dir1/sub1"));
    assert!(valid("dir0") && valid("dir1/sub0") && valid("d"));
    let cached = repository.git(&["status", "--porcelain"]);
    let bare = ["-c", "core.untrackedCache=false", "status", "--porcelain"];
    assert_eq!(cached, repository.git(&bare));
    assert!(cached.contains("?? dir1/sub1/file1"));
}

#[test]
fn what_a_monitor_said_is_kept_for_what_stays() {
    let repository = Repository::with_files(Kind::Sha1);
    let index = repository.index();
    let mut edit = IndexEdit::new(&index);
    edit.set_fsmonitor(Some(&Fsmonitor::new("token".into(), [3, 5])));
    let write = |edit: &IndexEdit<'_>| {
        let bytes = Writer::default().encode(&edit.content()).expect("sound");
        let lock = IndexLock::acquire(&repository.index_path()).expect("nobody has it");
        lock.commit(&bytes).expect("it is writable");
        repository.index()
    };
    let index = write(&edit);
    let fsmonitor = index.fsmonitor().expect("sound").expect("it is there");
    assert_eq!(fsmonitor.token, "token");
    assert_eq!(fsmonitor.dirty.iter().collect::<Vec<_>>(), [3, 5]);
    let mut edit = IndexEdit::new(&index);
    let mut entry = index.entry(9).to_owned();
    edit.remove_path(index.path(4));
    entry.stat.mtime.seconds += 1;
    edit.set(entry);
    let index = write(&edit);
    let fsmonitor = index.fsmonitor().expect("sound").expect("it is there");
    assert_eq!(fsmonitor.dirty.iter().collect::<Vec<_>>(), [3, 4, 8]);
    repository.git(&["status"]);
}

#[test]
fn with_a_monitor_no_entry_is_looked_at_before_it_is_asked_for() {
    for kind in KINDS {
        let repository = with_untracked(kind);
        let index = repository.index();
        let mut edit = IndexEdit::new(&index);
        edit.set_fsmonitor(Some(&Fsmonitor::new("token".into(), [])));
        let bytes = Writer::default().encode(&edit.content()).expect("sound");
        let path = repository.path("other");
        let open = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            IndexOutline::open(&path, kind)
        };
        let outline = open(&bytes).expect("it is sound");
        let fsmonitor = outline.fsmonitor().expect("sound").expect("it is there");
        assert_eq!(
            (fsmonitor.token, fsmonitor.dirty.is_empty()),
            ("token".into(), true)
        );
        assert_eq!(outline.len(), index.len());
        assert_eq!(outline.untracked_cache(), index.untracked_cache());
        let root = index.cached_tree().map(|tree| {
            let root = tree.root();
            root.id().map(ToOwned::to_owned).zip(root.entry_count())
        });
        assert_eq!(outline.root_tree(), root.flatten());
        // First the length of a path is not read, then it is.
        let mut broken = bytes.clone();
        let flags = 12 + 40 + kind.len_in_bytes();
        broken[flags..flags + 2].copy_from_slice(&[0x0f, 0x00]);
        assert!(Index::of(open(&broken).expect("its ends are sound")).is_err());
        // The extension with the end of the entries is ignored if anything in it is wrong.
        let end = bytes.len() - kind.len_in_bytes();
        let fsmonitor = end - kind.len_in_bytes() - 4;
        for at in [
            fsmonitor,
            fsmonitor + 3,
            fsmonitor + 4,
            fsmonitor - 1,
            fsmonitor - 5,
            8,
        ] {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            if let Ok(outline) = open(&broken) {
                assert!(at != 8, "there are not as many entries");
                let located = Index::of(outline).expect("it was located");
                assert_eq!(located.len(), index.len());
            }
        }
        open(&bytes).expect("it is sound");
        std::fs::rename(&path, repository.index_path()).expect("both are there");
        repository.git(&["fsck", "--strict"]);
        assert!(repository.git(&["ls-files", "-t"]).contains("H empty\n"));
    }
}
