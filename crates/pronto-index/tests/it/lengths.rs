//! The file of entry positions beside the index: used only for that index, and never trusted.

use crate::support::{KINDS, Repository, listing};
use pronto_hash::Kind;
use pronto_index::Index;
use std::path::PathBuf;

/// Enough entries for a file beside the index.
const ENTRIES: usize = 5000;
/// The bytes before the lengths, without the digest of the index.
const HEAD_BYTES: usize = 4 + 4 + 5 * 8 + 4;

/// A repository with an index of many entries, some of which are extended.
fn with_many(kind: Kind) -> Repository {
    let repository = Repository::new(kind);
    let id = pronto_hash::ObjectId::empty_blob(kind);
    let mut lines = String::new();
    for number in 0..ENTRIES {
        let name = "n".repeat(number % 97);
        lines.push_str(&format!("100644 {id}\td{}/{name}{number}\n", number % 41));
    }
    repository.write("lines", &lines);
    repository.write("announced", "");
    repository.write("empty", "");
    repository.git(&["hash-object", "-w", "empty"]);
    let list = std::fs::File::open(repository.path("lines")).expect("it was written");
    let mut command = repository.command();
    let status = command
        .args(["update-index", "--index-info"])
        .stdin(list)
        .status();
    assert!(status.expect("git runs").success());
    repository.git(&["add", "-N", "announced"]);
    repository.git(&["write-tree"]);
    repository
}

fn beside(repository: &Repository) -> PathBuf {
    repository.path(".git/index.pronto")
}

/// Returns whether the index is read with the file beside it. Only then the file is not written
/// again.
fn is_known(repository: &Repository) -> bool {
    let index = repository.index();
    let kept = std::fs::read(beside(repository)).expect("it is there");
    std::fs::remove_file(beside(repository)).expect("it is there");
    index.keep_lengths();
    let is_known = !beside(repository).exists();
    std::fs::write(beside(repository), kept).expect("a file");
    is_known
}

#[test]
fn an_index_is_the_same_with_and_without_it() {
    for kind in KINDS {
        let repository = with_many(kind);
        let before = repository.index();
        assert!(before.len() > ENTRIES, "{}", before.len());
        before.keep_lengths();
        assert!(is_known(&repository));
        let after = repository.index();
        assert_eq!(listing(&before), listing(&after));
        assert!(after.cached_tree().is_some());
        assert_eq!(before.cached_tree(), after.cached_tree());
        repository.git(&["fsck"]);
    }
}

#[test]
fn it_is_used_for_the_very_index_that_it_was_kept_for() {
    for skip in ["false", "true"] {
        let repository = with_many(Kind::Sha1);
        repository.git(&["config", "index.skipHash", skip]);
        repository.git(&["add", "lines"]);
        repository.index().keep_lengths();
        assert!(is_known(&repository));
        let copy = std::fs::read(repository.index_path()).expect("it is there");
        repository.git(&["rm", "-q", "--cached", "lines"]);
        assert!(!is_known(&repository), "another index");
        // The same bytes in another file.
        std::fs::write(repository.path("copy"), copy).expect("a file");
        std::fs::rename(repository.path("copy"), repository.index_path()).expect("renamed");
        assert!(!is_known(&repository), "another file");
        repository.index().keep_lengths();
        assert!(is_known(&repository));
    }
}

#[test]
fn where_it_does_not_help_there_is_none() {
    let repository = with_many(Kind::Sha1);
    repository.git(&["update-index", "--index-version", "4"]);
    repository.index().keep_lengths();
    assert!(!beside(&repository).exists(), "version 4");
    let few = Repository::with_files(Kind::Sha1);
    few.index().keep_lengths();
    assert!(!beside(&few).exists(), "few entries");
    let link = with_many(Kind::Sha1);
    link.write("other", "mine");
    std::os::unix::fs::symlink("../other", beside(&link)).expect("a link");
    link.index().keep_lengths();
    let other = std::fs::read(link.path("other")).expect("it is there");
    assert_eq!(other, b"mine", "nothing is written through a link");
    assert!(is_known(&link), "the link is replaced");
}

/// Returns all properties of the entries.
fn look_at_all(index: &Index) {
    for number in 0..index.len() {
        let _ = index.entry(number);
        let _ = index.path(number);
        let _ = index.c_path(number, 1);
        let _ = index.plain(number, 0);
    }
    let _ = index.find("d7/x".into(), 0);
    let _ = index.below("d7".into());
    let _ = index.cached_tree();
    let _ = pronto_index::IndexEdit::new(index).content();
}

#[test]
fn damage_costs_time_and_nothing_else() {
    let repository = with_many(Kind::Sha1);
    let index = repository.index();
    let sound = listing(&index);
    index.keep_lengths();
    let kept = std::fs::read(beside(&repository)).expect("it is there");
    let len = kept.len();
    let try_with = |bytes: &[u8]| {
        std::fs::write(beside(&repository), bytes).expect("a file");
        repository.index()
    };
    for at in [
        0,
        4,
        8,
        16,
        24,
        32,
        40,
        48,
        67,
        68,
        72,
        2000,
        len - 5,
        len - 1,
    ] {
        let mut broken = kept.clone();
        broken[at] ^= 1;
        assert_eq!(listing(&try_with(&broken)), sound, "byte {at}");
    }
    for cut in [0, 3, 71, 72, 1000, len - 1] {
        assert_eq!(listing(&try_with(&kept[..cut])), sound, "cut at {cut}");
    }
    // A file with a valid checksum is intentional.
    let lengths = HEAD_BYTES + 20..len - 4;
    for (round, by) in [1, 2, 7, 100, 255].into_iter().enumerate() {
        let mut forged = kept.clone();
        for at in lengths.clone().step_by(round + 1) {
            forged[at] = forged[at].wrapping_add(by);
        }
        // The checksum is right, but the entries are not.
        let mut moved = kept.clone();
        moved[lengths.start + round] += by.min(100);
        let other = lengths.end - 1 - round;
        moved[other] = moved[other].saturating_sub(by.min(100)).max(8);
        for mut bytes in [forged, moved] {
            let crc = crc32fast::hash(&bytes[..len - 4]);
            bytes[len - 4..].copy_from_slice(&crc.to_le_bytes());
            look_at_all(&try_with(&bytes));
        }
    }
}
