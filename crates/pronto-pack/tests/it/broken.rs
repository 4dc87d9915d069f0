//! Invalid packs give an error with a location, no panic, and leave no files.

use test_support::Random;

use super::support::{Maker, Repository, deflate, delta, id_of, paths};
use gix_object::Kind as ObjectKind;
use pronto_hash::Kind;
use pronto_io::view::ViewAccess;
use pronto_pack::entry::EntryHeader;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::indexer::{IndexContext, Options, index_stream};
use pronto_pack::{Error, ErrorKind};
use tempfile::TempDir;

const BLOB: EntryHeader = EntryHeader::Object(ObjectKind::Blob);

fn fails(pack: &[u8], threads: usize) -> Error {
    let directory = TempDir::new().expect("a temporary directory");
    let mut options = Options::default();
    options.threads = threads;
    options.sync = pronto_io::sync::SyncMethod::No;
    let result = index_stream(
        &mut &pack[..],
        directory.path(),
        &options,
        &IndexContext::default(),
    );
    assert!(paths(directory.path()).is_empty(), "nothing may stay");
    result.expect_err("the pack is broken")
}

/// A pack with a blob and a delta of it.
fn small(change: impl FnOnce(&mut Maker)) -> Vec<u8> {
    let mut maker = Maker::new(2);
    maker.blob(b"0123456789");
    change(&mut maker);
    maker.finish()
}

fn with_delta(delta: &[u8]) -> Vec<u8> {
    small(|maker| {
        let distance = maker.bytes.len() as u64 - maker.offsets[0];
        maker.entry(
            EntryHeader::OffsetDelta { distance },
            delta.len() as u64,
            delta,
        );
    })
}

#[test]
fn each_kind_of_damage_has_its_message() {
    let good = deflate(b"abc");
    let mut flipped = good.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let cases: Vec<(&str, Vec<u8>, ErrorKind, &str)> = vec![
        ("empty", vec![], ErrorKind::Truncated, "early EOF"),
        (
            "not a pack",
            b"KCAP\0\0\0\x02\0\0\0\0".to_vec(),
            ErrorKind::NotAPack,
            "pack signature mismatch at offset 0",
        ),
        (
            "version 4",
            b"PACK\0\0\0\x04\0\0\0\0".to_vec(),
            ErrorKind::PackVersion { version: 4 },
            "pack version 4 unsupported at offset 4",
        ),
        (
            "absurd count",
            {
                let mut maker = Maker::new(u32::MAX - 9);
                maker.blob(b"a");
                maker.finish()
            },
            ErrorKind::Inflate,
            "",
        ),
        (
            "most objects",
            Maker::new(u32::MAX).finish(),
            ErrorKind::Limit,
            "pack has too many objects at offset 8",
        ),
        (
            "one too few",
            {
                let mut maker = Maker::new(1);
                maker.blob(b"a");
                maker.blob(b"b");
                maker.finish()
            },
            ErrorKind::Checksum,
            "pack is corrupted (SHA1 mismatch)",
        ),
        (
            "bad check",
            small(|maker| maker.raw(BLOB, 3, &flipped)),
            ErrorKind::Inflate,
            "inflate returned -3 at offset 31",
        ),
        (
            "no zlib",
            small(|maker| maker.raw(BLOB, 3, b"this is not a stream")),
            ErrorKind::Inflate,
            "inflate returned -3 at offset 31",
        ),
        (
            "size too small",
            small(|maker| maker.raw(BLOB, 2, &good)),
            ErrorKind::Inflate,
            "inflate returned -5 at offset 31",
        ),
        (
            "size too large",
            small(|maker| maker.raw(BLOB, 4, &good)),
            ErrorKind::Inflate,
            "inflate returned 1 at offset 31",
        ),
        (
            "size of 2 GB",
            small(|maker| maker.raw(BLOB, 2 << 30, &good)),
            ErrorKind::Inflate,
            "inflate returned 1 at offset 31",
        ),
        (
            "size of 4 EB",
            small(|maker| maker.raw(BLOB, 1 << 62, &good)),
            ErrorKind::Inflate,
            "inflate returned 1 at offset 31",
        ),
        (
            "tree of 8 EB",
            small(|maker| maker.raw(EntryHeader::Object(ObjectKind::Tree), u64::MAX, &good)),
            ErrorKind::Limit,
            "object is too large for the memory of this machine at offset 31",
        ),
        (
            "type 0",
            small(|maker| maker.bytes.extend_from_slice(b"\0\0\0")),
            ErrorKind::UnknownType { number: 0 },
            "unknown object type 0 at offset 31",
        ),
        (
            "type 5",
            small(|maker| maker.bytes.push(0x50)),
            ErrorKind::UnknownType { number: 5 },
            "unknown object type 5 at offset 31",
        ),
        (
            "long size",
            small(|maker| maker.bytes.extend([0xff; 40])),
            ErrorKind::Corrupt,
            "corrupt pack: an object size exceeds 64 bits at offset 31",
        ),
        (
            "base before the pack",
            small(|maker| maker.raw(EntryHeader::OffsetDelta { distance: 32 }, 3, &good)),
            ErrorKind::BaseOffset,
            "delta base offset is out of bound at offset 31",
        ),
        (
            "base within an entry",
            small(|maker| maker.raw(EntryHeader::OffsetDelta { distance: 5 }, 3, &good)),
            ErrorKind::BaseOffset,
            "delta base offset is out of bound at offset 31",
        ),
        (
            "delta for another base",
            with_delta(&delta(9, b"x")),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: corrupt delta: the base has another size than recorded",
        ),
        (
            "delta out of bounds",
            with_delta(&[10, 8, 0x91, 3, 8]),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: corrupt delta: an instruction exceeds the base or the result",
        ),
        (
            "delta with opcode 0",
            with_delta(&[10, 8, 0]),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: unexpected delta opcode 0",
        ),
        (
            "delta that is cut",
            with_delta(&[10, 8, 0x91]),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: corrupt delta: truncated instruction",
        ),
        (
            "delta that is empty",
            with_delta(&[]),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: corrupt delta: truncated instruction",
        ),
        (
            "delta of 8 EB",
            with_delta(&[
                10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x90, 1,
            ]),
            ErrorKind::Corrupt,
            "failed to apply delta at offset 31: corrupt delta: the result has another size than recorded",
        ),
    ];
    for (name, pack, kind, message) in cases {
        for threads in [1, 2] {
            let error = fails(&pack, threads);
            let text = error.to_string();
            assert_eq!(error.kind(), kind, "{name}: {text}");
            assert!(text.starts_with(message), "{name}: {text}");
        }
    }
}

#[test]
fn deltas_in_a_circle_are_never_resolved() {
    let (one, two) = (b"one".as_slice(), b"two".as_slice());
    let mut maker = Maker::new(2);
    for (content, base) in [(one, two), (two, one)] {
        let base = id_of(ObjectKind::Blob, base);
        let delta = delta(3, content);
        maker.entry(EntryHeader::RefDelta { base }, delta.len() as u64, &delta);
    }
    let pack = maker.finish();
    for threads in [1, 3] {
        let error = fails(&pack, threads);
        assert_eq!(error.to_string(), "pack has 2 unresolved deltas");
        assert_eq!(error.kind(), ErrorKind::Unresolved);
    }
    // A copy of one of them breaks the circle.
    let mut maker = Maker::new(3);
    for (content, base) in [(one, two), (two, one)] {
        let base = id_of(ObjectKind::Blob, base);
        let delta = delta(3, content);
        maker.entry(EntryHeader::RefDelta { base }, delta.len() as u64, &delta);
    }
    maker.blob(one);
    let pack = maker.finish();
    let directory = TempDir::new().expect("a temporary directory");
    let options = Options::default();
    let outcome = index_stream(
        &mut &pack[..],
        directory.path(),
        &options,
        &IndexContext::default(),
    )
    .expect("it is sound");
    let index = PackIndex::open(&outcome.index, Kind::Sha1, ViewAccess::Auto).expect("it is sound");
    let ids: Vec<_> = (0..index.len())
        .map(|row| index.id_at(IndexPosition(row)).expect("it is there"))
        .collect();
    let (one, two) = (id_of(ObjectKind::Blob, one), id_of(ObjectKind::Blob, two));
    assert_eq!(ids, [two.min(one), one, one.max(two)]);
}

#[test]
fn a_pack_cut_anywhere_is_truncated() {
    let repository = Repository::with_history(Kind::Sha1, 3);
    let pack = repository.pack(&["--delta-base-offset"]);
    assert!(pack.len() > 500);
    let step = pack.len() / 400 + 1;
    for end in (0..pack.len()).step_by(step).chain([pack.len() - 1]) {
        let error = fails(&pack[..end], 1);
        assert_eq!(error.kind(), ErrorKind::Truncated, "{end}: {error}");
    }
}

#[test]
fn damage_anywhere_is_found() {
    let repository = Repository::with_history(Kind::Sha1, 5);
    let pack = repository.pack(&["--delta-base-offset"]);
    let mut random = Random::new(5);
    for _ in 0..300 {
        let mut broken = pack.clone();
        let at = random.below(pack.len() as u64) as usize;
        broken[at] ^= 1 << random.below(8);
        fails(&broken, 1 + random.below(2) as usize);
    }
}

#[test]
fn damage_under_a_right_trailer_is_found_or_harmless() {
    let repository = Repository::with_history(Kind::Sha1, 5);
    let pack = repository.pack(&[]);
    let mut random = Random::new(6);
    for round in 0..300 {
        let mut broken = pack[..pack.len() - 20].to_vec();
        for _ in 0..=random.below(2) {
            let at = random.below(broken.len() as u64) as usize;
            broken[at] = random.below(256) as u8;
        }
        let mut digester = pronto_hash::TrailerDigester::new(Kind::Sha1);
        digester.update(&broken);
        broken.extend_from_slice(digester.finish().as_slice());
        let directory = TempDir::new().expect("a temporary directory");
        let mut options = Options::default();
        options.sync = pronto_io::sync::SyncMethod::No;
        options.threads = 1 + round % 2;
        let ours = index_stream(
            &mut &broken[..],
            directory.path(),
            &options,
            &IndexContext::default(),
        );
        // Few changes pass the checks of zlib. git accepts the same ones.
        if ours.is_ok() {
            let files = Repository::empty(Kind::Sha1).index_with_git(&broken, &[]);
            assert!(super::support::files(directory.path()) == files);
        }
    }
}

#[test]
fn claims_allocate_nothing() {
    // The same test with an address space that is too small for any false size.
    let this = std::env::current_exe().expect("it runs");
    let status = std::process::Command::new("sh")
        .arg("-c")
        .arg("ulimit -v 1500000 && exec \"$0\" --exact \"$1\" --test-threads=1 -q >/dev/null")
        .arg(this)
        .arg("broken::each_kind_of_damage_has_its_message")
        .status()
        .expect("there is a shell");
    assert!(status.success());
}
