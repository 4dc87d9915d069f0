//! Bitmaps and reverse indexes of stock git, compared with git's walks.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::{FileView, ViewAccess};
use pronto_pack::bitmap::BitmapFile;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;
use pronto_pack::pack::{PackOrder, PackPosition, PackReader};
use pronto_pack::rev::ReverseIndex;
use pronto_pack::{Error, ErrorKind};

use test_support::Random;

use super::support::{Repository, forking_history, paths};

pub(crate) fn with_history(kind: Kind, options: &[&str]) -> Repository {
    let repository = Repository::empty(kind);
    let history = forking_history(11, 150);
    repository.git(&["fast-import", "--quiet", "--force"], history.as_bytes());
    let repack = ["repack", "-adbq"];
    repository.git(&[options, &repack].concat(), b"");
    repository
}

pub(crate) fn file(repository: &Repository, extension: &str) -> PathBuf {
    let directory = repository.path().join("objects/pack");
    let mut found = paths(&directory).into_iter();
    found
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .unwrap_or_else(|| panic!("git wrote no .{extension}"))
}

/// Returns the objects reachable from `commit` as listed by git.
fn reported(repository: &Repository, commit: &ObjectId) -> BTreeSet<ObjectId> {
    let arguments = ["rev-list", "--objects", &commit.to_string()];
    let text = repository.git(&arguments, b"");
    let text = String::from_utf8_lossy(&text);
    let id = |line: &str| {
        let hex = line.split(' ').next().unwrap_or_default();
        ObjectId::from_hex(hex.as_bytes()).expect("git prints ids")
    };
    text.lines().map(id).collect()
}

/// Asserts that all bitmaps agree with git. `ids` are the objects by their bits, with their
/// positions in the index.
fn check(repository: &Repository, bitmaps: &BitmapFile, ids: &[(ObjectId, IndexPosition)]) {
    let kinds = repository.git(
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname) %(objecttype)",
        ],
        b"",
    );
    let kinds = String::from_utf8_lossy(&kinds);
    let kinds: HashMap<&str, &str> = kinds
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let mut found = 0;
    for (bit, (id, position)) in ids.iter().enumerate() {
        let kind = kinds[id.to_string().as_str()];
        for (name, sort) in [
            ("commit", ObjectKind::Commit),
            ("tree", ObjectKind::Tree),
            ("blob", ObjectKind::Blob),
            ("tag", ObjectKind::Tag),
        ] {
            assert_eq!(
                bitmaps.of_kind(sort).contains(bit as u32),
                kind == name,
                "{id}"
            );
        }
        let Some(bits) = bitmaps.reachable_from(*position).expect("it can be read") else {
            continue;
        };
        found += 1;
        assert_eq!(kind, "commit");
        let reachable: BTreeSet<ObjectId> = bits.iter().map(|bit| ids[bit as usize].0).collect();
        assert_eq!(reachable, reported(repository, id), "{id}");
    }
    assert_eq!(found, bitmaps.len());
    assert!(found > 3);
}

fn check_pack(repository: &Repository, access: ViewAccess, has_table: bool) {
    let kind = match repository.git(&["rev-parse", "--show-object-format"], b"")[3] {
        b'2' => Kind::Sha256,
        _ => Kind::Sha1,
    };
    let pack = PackReader::open(file(repository, "pack"), kind, access).expect("a pack");
    let index = PackIndex::open(file(repository, "idx"), kind, access).expect("an index");
    let order = PackOrder::new(&pack, &index).expect("it can be read");
    let path = file(repository, "bitmap");
    let bitmaps = BitmapFile::open(path, kind, index.len(), access).expect("it is well formed");
    assert_eq!(bitmaps.has_lookup_table(), has_table);
    assert_eq!(bitmaps.checksum(), pack.checksum().expect("it can be read"));
    let id = |place| {
        let (_, row) = order
            .get(PackPosition(place))
            .expect("it is below the length");
        (index.id_at(row).expect("it can be read"), row)
    };
    let ids: Vec<_> = (0..order.len()).map(id).collect();
    check(repository, &bitmaps, &ids);
    let hashes = (0..index.len()).map(|row| bitmaps.name_hash(IndexPosition(row)));
    assert!(hashes.flatten().any(|hash| hash != 0), "names are hashed");
}

#[test]
fn bitmaps_of_a_pack_with_and_without_a_table() {
    let plain = with_history(Kind::Sha1, &["-c", "pack.writeBitmapLookupTable=false"]);
    let table = with_history(Kind::Sha1, &["-c", "pack.writeBitmapLookupTable=true"]);
    for access in [ViewAccess::Mapped, ViewAccess::Positional] {
        check_pack(&plain, access, false);
        check_pack(&table, access, true);
    }
    let sha256 = with_history(Kind::Sha256, &["-c", "pack.writeBitmapLookupTable=true"]);
    check_pack(&sha256, ViewAccess::Auto, true);
}

#[test]
fn bitmaps_of_a_multi_pack_index() {
    let repository = Repository::empty(Kind::Sha1);
    for seed in [3, 4] {
        let history = forking_history(seed, 80);
        repository.git(&["fast-import", "--quiet", "--force"], history.as_bytes());
        repository.git(&["repack", "-dq"], b"");
    }
    let directory = repository.path().join("objects/pack");
    repository.git(&["multi-pack-index", "write", "--bitmap"], b"");
    let path = directory.join("multi-pack-index");
    let index = MultiIndex::open(path, Kind::Sha1, ViewAccess::Auto).expect("it is well formed");
    assert!(index.has_order() && index.pack_names().len() > 1);
    let checksum = index.checksum().expect("it can be read");
    assert!(index.checksum_holds().expect("it can be read"));
    let path = directory.join(format!("multi-pack-index-{checksum}.bitmap"));
    let bitmaps = BitmapFile::open(path, Kind::Sha1, index.len(), ViewAccess::Auto);
    let bitmaps = bitmaps.expect("it is well formed");
    assert_eq!(bitmaps.checksum(), checksum);
    let id = |place| {
        let position = index.position_at_place(place).expect("it can be read");
        let position = position.expect("it has an order");
        (index.id_at(position).expect("it can be read"), position)
    };
    let ids: Vec<_> = (0..index.len()).map(id).collect();
    check(&repository, &bitmaps, &ids);
    assert!(index.position_at_place(index.len()).is_err());
}

#[test]
fn a_reverse_index_says_what_sorting_says() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let repository = with_history(kind, &["-c", "pack.writeReverseIndex=true"]);
        let access = ViewAccess::Auto;
        let pack = PackReader::open(file(&repository, "pack"), kind, access).expect("a pack");
        let index = PackIndex::open(file(&repository, "idx"), kind, access).expect("an index");
        let path = file(&repository, "rev");
        let reverse = ReverseIndex::open(path, kind, index.len(), access).expect("well formed");
        assert_eq!(
            reverse.pack_checksum().expect("it can be read"),
            pack.checksum().expect("it can be read")
        );
        let sorted = PackOrder::new(&pack, &index).expect("it can be read");
        let read = PackOrder::from_reverse(&pack, &index, &reverse).expect("they fit");
        for place in 0..=sorted.len() {
            let place = PackPosition(place);
            assert_eq!(sorted.get(place), read.get(place));
        }
    }
}

/// Asserts that a change of the bytes gives an error of this kind with this message.
fn broken<T>(
    open: impl Fn(Vec<u8>) -> Result<T, Error>,
    bytes: &[u8],
    (at, change): (usize, &[u8]),
    (kind, message): (ErrorKind, &str),
) {
    let mut bytes = bytes.to_vec();
    bytes[at..at + change.len()].copy_from_slice(change);
    let error = open(bytes)
        .err()
        .unwrap_or_else(|| panic!("no '{message}'"));
    assert_eq!((error.kind(), error.message()), (kind, message));
}

#[test]
fn broken_reverse_indexes_have_their_messages() {
    let repository = with_history(Kind::Sha1, &["-c", "pack.writeReverseIndex=true"]);
    let bytes = std::fs::read(file(&repository, "rev")).expect("it is there");
    let count = ((bytes.len() - 52) / 4) as u32;
    let open = |bytes: Vec<u8>| {
        let view = FileView::from_bytes(bytes);
        let reverse = ReverseIndex::from_view(view, Path::new("x.rev"), Kind::Sha1, count)?;
        (0..count).try_for_each(|place| reverse.row_at(place).map(drop))
    };
    open(bytes.clone()).expect("it is well formed");
    let cases: [(usize, &[u8], ErrorKind, &str); 4] = [
        (
            0,
            b"X",
            ErrorKind::Corrupt,
            "reverse-index file has unknown signature",
        ),
        (
            7,
            b"\x09",
            ErrorKind::Unsupported,
            "reverse-index file has unsupported version 9",
        ),
        (
            11,
            b"\x07",
            ErrorKind::Unsupported,
            "reverse-index file has unsupported hash id 7",
        ),
        (
            12,
            b"\xff\xff\xff\xff",
            ErrorKind::Corrupt,
            "corrupt reverse index: an entry is out of range",
        ),
    ];
    for (at, change, kind, message) in cases {
        broken(open, &bytes, (at, change), (kind, message));
    }
    let cut = |len: usize| open(bytes[..len].to_vec()).expect_err("it is cut off");
    assert_eq!(cut(40).message(), "reverse-index file is too small");
    assert_eq!(
        cut(bytes.len() - 1).message(),
        "reverse-index file is corrupt"
    );
    let error = cut(bytes.len() - 1).to_string();
    assert!(error.contains("x.rev"), "{error}");
}

#[test]
fn broken_bitmaps_have_their_messages() {
    for table in ["true", "false"] {
        let option = format!("pack.writeBitmapLookupTable={table}");
        let repository = with_history(Kind::Sha1, &["-c", &option]);
        let bytes = std::fs::read(file(&repository, "bitmap")).expect("it is there");
        let index = PackIndex::open(file(&repository, "idx"), Kind::Sha1, ViewAccess::Auto);
        let count = index.expect("it is well formed").len();
        let open = |bytes: Vec<u8>| {
            let view = FileView::from_bytes(bytes);
            let bitmaps = BitmapFile::from_view(view, Path::new("x.bitmap"), Kind::Sha1, count)?;
            for row in 0..count {
                bitmaps.reachable_from(IndexPosition(row))?;
            }
            Ok::<_, Error>(())
        };
        open(bytes.clone()).expect("it is well formed");
        let corrupt = ErrorKind::Corrupt;
        let kinds = "failed to load bitmap of a kind of objects (corrupted?)";
        let mut cases: Vec<(usize, &[u8], ErrorKind, &str)> = vec![
            (
                0,
                b"X",
                corrupt,
                "corrupted bitmap index file (wrong header)",
            ),
            (
                5,
                b"\x02",
                ErrorKind::Unsupported,
                "unsupported version '2' for bitmap index file",
            ),
            (
                7,
                b"\0",
                ErrorKind::Unsupported,
                "unsupported options for bitmap index file (Git requires BITMAP_OPT_FULL_DAG)",
            ),
            (32, b"\xff\xff\xff\xff", corrupt, kinds),
            (36, b"\xff\xff\xff\xff", corrupt, kinds),
        ];
        // The rows of the table precede the name hashes and the checksum.
        let rows = bytes.len() - 20 - count as usize * 4 - entries(&bytes) * 16;
        if table == "true" {
            let message = "corrupted bitmap index file (too short to fit lookup table)";
            cases.push((8, b"\x0f\xff\xff\xff", corrupt, message));
            let message = "corrupt bitmap lookup table: offset out of range";
            cases.push((rows + 4, b"\x7f", corrupt, message));
            let message = "corrupt bitmap lookup table: xor position out of range";
            cases.push((rows + 12, b"\x7f\0\0\0", corrupt, message));
        } else {
            let message = "corrupted bitmap index file (too short to fit hash cache)";
            let short = [&bytes[..80], &bytes[bytes.len() - 20..]].concat();
            assert_eq!(open(short).expect_err("it is short").message(), message);
        }
        for (at, change, kind, message) in cases {
            broken(open, &bytes, (at, change), (kind, message));
        }
        let error = open(bytes[..50].to_vec()).expect_err("it is cut off");
        assert_eq!(error.message(), "corrupted bitmap index (too small)");
        assert!(error.to_string().contains("x.bitmap"), "{error}");
        shaken(&bytes, |bytes| drop(open(bytes)));
    }
}

fn entries(bytes: &[u8]) -> usize {
    u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize
}

/// Random changes and cuts must never cause a panic.
fn shaken(bytes: &[u8], open: impl Fn(Vec<u8>)) {
    let mut random = Random::new(5);
    for _ in 0..300 {
        let mut broken = bytes.to_vec();
        for _ in 0..=random.below(3) {
            let limit = [60, 400, broken.len() as u64][random.below(3) as usize];
            let place = random.below(limit) as usize;
            broken[place] = random.below(256) as u8;
        }
        broken.truncate(broken.len() - random.below(2) as usize * random.below(200) as usize);
        open(broken);
    }
}

#[test]
fn broken_multi_pack_indexes_have_their_messages() {
    let repository = with_history(Kind::Sha1, &[]);
    repository.git(&["multi-pack-index", "write", "--bitmap"], b"");
    let path = repository.path().join("objects/pack/multi-pack-index");
    let bytes = std::fs::read(path).expect("it is there");
    let open = |bytes: Vec<u8>| {
        let view = FileView::from_bytes(bytes);
        let index = MultiIndex::from_view(view, Path::new("midx"), Kind::Sha1)?;
        for row in 0..index.len() {
            let position = IndexPosition(row);
            index.id_at(position)?;
            index.location_at(position)?;
            index.position_at_place(row)?;
        }
        Ok::<_, Error>(())
    };
    open(bytes.clone()).expect("it is well formed");
    let corrupt = ErrorKind::Corrupt;
    let chunk = |name: &[u8]| {
        let found = bytes[..120].windows(4).position(|bytes| bytes == name);
        let row = found.expect("the chunk is there");
        let offset = bytes[row + 8..row + 12].try_into().expect("four bytes");
        (row, u32::from_be_bytes(offset) as usize)
    };
    let cases: Vec<(usize, &[u8], ErrorKind, &str)> = vec![
        (
            0,
            b"X",
            corrupt,
            "multi-pack-index signature 0x58494458 does not match signature 0x4d494458",
        ),
        (
            4,
            b"\x07",
            ErrorKind::Unsupported,
            "multi-pack-index version 7 not recognized",
        ),
        (
            5,
            b"\x02",
            ErrorKind::OtherHash,
            "multi-pack-index hash version 2 does not match version 1",
        ),
        (
            chunk(b"PNAM").0,
            b"XXXX",
            corrupt,
            "multi-pack-index required pack-name chunk missing or corrupted",
        ),
        (
            chunk(b"OIDF").0,
            b"XXXX",
            corrupt,
            "multi-pack-index required OID fanout chunk missing or corrupted",
        ),
        (
            chunk(b"OIDL").0,
            b"XXXX",
            corrupt,
            "multi-pack-index required OID lookup chunk missing or corrupted",
        ),
        (
            chunk(b"OOFF").0,
            b"XXXX",
            corrupt,
            "multi-pack-index required object offsets chunk missing or corrupted",
        ),
        (
            chunk(b"OIDF").0,
            b"\0\0\0\0",
            ErrorKind::Truncated,
            "terminating chunk id appears earlier than expected",
        ),
        (
            8,
            b"\0\0\x7f\0",
            corrupt,
            "multi-pack-index has an invalid pack name",
        ),
        (
            chunk(b"PNAM").1,
            b"/",
            corrupt,
            "multi-pack-index has an invalid pack name",
        ),
        (chunk(b"OOFF").1, b"\x01", corrupt, "bad pack-int-id"),
        (
            chunk(b"RIDX").1,
            b"\x7f",
            corrupt,
            "position is out of range in the multi-pack-index",
        ),
    ];
    for (at, change, kind, message) in cases {
        broken(open, &bytes, (at, change), (kind, message));
    }
    let error = open(bytes[..11].to_vec()).expect_err("it is cut off");
    assert_eq!(error.message(), "multi-pack-index file is too small");
    shaken(&bytes, |bytes| drop(open(bytes)));
}
