//! Files of every type, broken in every way that has its own message.

use std::path::Path;

use pronto_hash::Kind;
use pronto_io::view::{FileView, ViewAccess};
use pronto_pack::bitmap::BitmapFile;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;
use pronto_pack::pack::{PackOrder, PackReader};
use pronto_pack::rev::ReverseIndex;
use pronto_pack::{Error, ErrorKind};

use super::bitmaps::{file, with_history};
use super::support::Repository;

/// A change of a file, and the resulting message.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    kind: ErrorKind,
    message: String,
}

fn case(name: &'static str, bytes: Vec<u8>, kind: ErrorKind, message: impl Into<String>) -> Case {
    let message = message.into();
    Case {
        name,
        bytes,
        kind,
        message,
    }
}

/// Returns `bytes` with those at `at` replaced.
fn patched(bytes: &[u8], at: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + change.len()].copy_from_slice(change);
    bytes
}

/// Asserts that `read` fails for each case with its message and the name of the file.
fn check<T>(file: &str, cases: Vec<Case>, read: impl Fn(Vec<u8>) -> Result<T, Error>) {
    for case in cases {
        let Err(error) = read(case.bytes) else {
            panic!("{}: it was read", case.name);
        };
        let found = (error.kind(), error.message());
        assert_eq!(found, (case.kind, &*case.message), "{}", case.name);
        let shown = error.to_string();
        assert!(shown.contains(file), "{}: {shown}", case.name);
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn read_index(bytes: Vec<u8>) -> Result<(), Error> {
    let index = PackIndex::from_view(FileView::from_bytes(bytes), Path::new("x.idx"), Kind::Sha1)?;
    for row in (0..index.len()).map(IndexPosition) {
        index.id_at(row)?;
        index.offset_at(row)?;
        index.crc_at(row)?;
    }
    index.scan(0..index.len(), |_, _, _| ())
}

#[test]
fn broken_indexes_have_their_messages() {
    use ErrorKind::{Corrupt, FanoutOrder, IndexSize, IndexVersion, Truncated};
    let repository = Repository::with_history(Kind::Sha1, 20);
    repository.git(&["repack", "-adq"], b"");
    let two = std::fs::read(file(&repository, "idx")).expect("it is there");
    let pack = file(&repository, "pack");
    let pack = pack.to_str().expect("it is text");
    let out = repository.path().join("one.idx");
    let out = out.to_str().expect("it is text");
    repository.git(&["index-pack", "--index-version=1", "-o", out, pack], b"");
    let one = std::fs::read(out).expect("git wrote it");
    for whole in [&one, &two] {
        read_index(whole.clone()).expect("it is whole");
    }
    let count = word(&two, 8 + 255 * 4) as usize;
    let offsets = 8 + 1024 + count * 24;
    let small = "index file is too small";
    let size = "wrong index file size";
    let order = "non-monotonic fan-out table";
    let version = "index file is of version 3, which is not known";
    let large = "large offset is out of bounds";
    let longer = |bytes: &[u8], more: usize| [bytes, &vec![0; more]].concat();
    let cases = vec![
        case("nothing", Vec::new(), Truncated, small),
        case("no fan-out", two[..1031].to_vec(), Truncated, small),
        case(
            "version",
            patched(&two, 7, b"\x03"),
            IndexVersion { version: 3 },
            version,
        ),
        case(
            "counts that fall",
            patched(&two, 8, b"\x7f"),
            FanoutOrder,
            order,
        ),
        case(
            "the same in version 1",
            patched(&one, 0, b"\x7f"),
            FanoutOrder,
            order,
        ),
        case(
            "more than there is",
            patched(&two, 8 + 255 * 4, b"\x7f"),
            IndexSize,
            size,
        ),
        case(
            "a count of 4 thousand millions",
            patched(&one, 255 * 4, &[255; 4]),
            IndexSize,
            size,
        ),
        case("cut", two[..two.len() - 1].to_vec(), IndexSize, size),
        case(
            "cut in version 1",
            one[..one.len() - 1].to_vec(),
            IndexSize,
            size,
        ),
        case("longer in version 1", longer(&one, 8), IndexSize, size),
        case(
            "longer by less than an offset",
            longer(&two, 3),
            IndexSize,
            size,
        ),
        case(
            "longer by more offsets than objects",
            longer(&two, count * 8),
            IndexSize,
            size,
        ),
        case(
            "an offset beyond",
            patched(&two, offsets, b"\x80\0\0\0"),
            Corrupt,
            large,
        ),
        case(
            "one far beyond",
            patched(&two, offsets, &[255; 4]),
            Corrupt,
            large,
        ),
    ];
    check("x.idx", cases, read_index);
}

fn read_multi_index(bytes: Vec<u8>) -> Result<(), Error> {
    let view = FileView::from_bytes(bytes);
    let index = MultiIndex::from_view(view, Path::new("x.midx"), Kind::Sha1)?;
    for row in (0..index.len()).map(IndexPosition) {
        index.id_at(row)?;
        index.location_at(row)?;
        index.position_at_place(row.0)?;
    }
    index.id_at(IndexPosition(index.len())).map(drop)
}

#[test]
fn broken_tables_of_multi_pack_indexes_have_their_messages() {
    use ErrorKind::{Corrupt, Truncated};
    let repository = with_history(Kind::Sha1, &[]);
    repository.git(&["multi-pack-index", "write", "--bitmap"], b"");
    let path = repository.path().join("objects/pack/multi-pack-index");
    let whole = std::fs::read(path).expect("it is there");
    let row = |name: &[u8]| {
        let found = whole[..120].windows(4).position(|bytes| bytes == name);
        found.expect("the chunk is there")
    };
    let start = |name: &[u8]| word(&whole, row(name) + 8) as usize;
    let moved = |name: &[u8], by: i64| {
        let offset = (start(name) as i64 + by) as u64;
        patched(&whole, row(name) + 4, &offset.to_be_bytes())
    };
    let count = usize::from(whole[6]);
    let end = 12 + count * 12;
    // The last chunk becomes a table of large offsets that is too small for the offset of an
    // object.
    let mut large = patched(&whole, row(b"RIDX"), b"LOFF");
    large = patched(&large, start(b"OOFF") + 4, &[255; 4]);
    // Its first slot exceeds the size of any file.
    let mut absurd = patched(&large, start(b"OOFF") + 4, b"\x80\0\0\0");
    absurd = patched(&absurd, start(b"RIDX"), &[255; 8]);
    let beyond = "multi-pack-index large offset out of bounds";
    let fanout = "multi-pack-index OID fanout is of the wrong size";
    let lookup = "multi-pack-index OID lookup chunk is the wrong size";
    let offsets = "multi-pack-index object offset chunk is the wrong size";
    let names = "multi-pack-index pack-name chunk is too short";
    let first = word(&whole, start(b"OIDF")) & 0xff_ffff | 0x7f00_0000;
    let falls = format!(
        "oid fanout out of order: fanout[0] = {first:x} > {:x} = fanout[1]",
        word(&whole, start(b"OIDF") + 4)
    );
    let duplicate = format!(
        "duplicate chunk ID {:x} found",
        u32::from_be_bytes(*b"OIDL")
    );
    let improper = format!(
        "improper chunk offset(s) {:x} and {:x}",
        u64::MAX,
        start(b"OIDF")
    );
    let last = "final chunk has non-zero id 58585858";
    let none = "position is out of range in the multi-pack-index";
    let cases = vec![
        case("a row that is not there", whole.clone(), Corrupt, none),
        case(
            "fan-out that falls",
            patched(&whole, start(b"OIDF"), b"\x7f"),
            Corrupt,
            falls,
        ),
        case("fan-out that is moved", moved(b"OIDF", -4), Corrupt, fanout),
        case("ids that are moved", moved(b"OIDL", -4), Corrupt, fanout),
        case(
            "offsets that are moved",
            moved(b"OOFF", -4),
            Corrupt,
            lookup,
        ),
        case(
            "the end of offsets that is moved",
            moved(b"RIDX", -4),
            Corrupt,
            offsets,
        ),
        case(
            "twice",
            patched(&whole, row(b"OOFF"), b"OIDL"),
            Truncated,
            duplicate,
        ),
        case(
            "far away",
            patched(&whole, row(b"PNAM") + 4, &[255; 8]),
            Truncated,
            improper,
        ),
        case(
            "no end of chunks",
            patched(&whole, end, b"XXXX"),
            Truncated,
            last,
        ),
        case(
            "names without an end",
            {
                let mut bytes = patched(&whole, 8, &2u32.to_be_bytes());
                let range = start(b"PNAM")..start(b"OIDF");
                bytes[range]
                    .iter_mut()
                    .filter(|byte| **byte == 0)
                    .for_each(|byte| *byte = b'x');
                bytes
            },
            Corrupt,
            names,
        ),
        case("no such large offset", large, Corrupt, beyond),
        case("a large offset of 16 EB", absurd, Corrupt, beyond),
    ];
    check("x.midx", cases, read_multi_index);
}

#[test]
fn reverse_indexes_that_do_not_fit_have_their_messages() {
    use ErrorKind::{Corrupt, Truncated, Unsupported};
    let repository = with_history(Kind::Sha1, &["-c", "pack.writeReverseIndex=true"]);
    let whole = std::fs::read(file(&repository, "rev")).expect("it is there");
    let access = ViewAccess::Auto;
    let pack = PackReader::open(file(&repository, "pack"), Kind::Sha1, access).expect("a pack");
    let index = PackIndex::open(file(&repository, "idx"), Kind::Sha1, access).expect("an index");
    let count = index.len();
    let read = |count: u32| {
        let (pack, index) = (&pack, &index);
        move |bytes: Vec<u8>| {
            let path = Path::new("x.rev");
            let view = FileView::from_bytes(bytes);
            let reverse = ReverseIndex::from_view(view, path, Kind::Sha1, count)?;
            PackOrder::from_reverse(pack, index, &reverse).map_err(|error| error.at_path(path))?;
            reverse.row_at(count).map(drop)
        }
    };
    let short = "reverse-index file is corrupt";
    let swapped = {
        let (first, second) = (whole[12..16].to_vec(), whole[16..20].to_vec());
        patched(&patched(&whole, 12, &second), 16, &first)
    };
    let twice = patched(&whole, 16, &whole[12..16]);
    let follow = "reverse-index file does not match the pack";
    let none = "corrupt reverse index: an entry is out of range";
    let beyond = patched(&whole, 12, &count.to_be_bytes());
    let hash = "reverse-index file has unsupported hash id 2";
    let version = "reverse-index file has unsupported version 16777217";
    let cases = vec![
        case(
            "a place that is not there",
            whole.clone(),
            Corrupt,
            "position is out of range in the reverse index",
        ),
        case(
            "nothing",
            Vec::new(),
            Truncated,
            "reverse-index file is too small",
        ),
        case("longer", [&whole[..], &[0]].concat(), Corrupt, short),
        case("another order", swapped, Corrupt, follow),
        case("a row twice", twice, Corrupt, follow),
        case("a row behind the last", beyond, Corrupt, none),
        case(
            "another hash",
            patched(&whole, 11, b"\x02"),
            Unsupported,
            hash,
        ),
        case(
            "a version of four bytes",
            patched(&whole, 4, b"\x01"),
            Unsupported,
            version,
        ),
    ];
    check("x.rev", cases, read(count));
    // A file without the last object.
    let fewer = [&whole[..whole.len() - 44], &whole[whole.len() - 40..]].concat();
    let reverse = ReverseIndex::from_view(
        FileView::from_bytes(fewer),
        Path::new("x.rev"),
        Kind::Sha1,
        count - 1,
    );
    let read = reverse.and_then(|reverse| PackOrder::from_reverse(&pack, &index, &reverse));
    let error = read.expect_err("an object is missing");
    assert!([none, short].contains(&error.message()), "{error}");
}

/// Returns the positions of the entries of a bitmap file.
fn bitmap_entries(bytes: &[u8]) -> Vec<usize> {
    let skip = |at: usize| at + 12 + word(bytes, at + 4) as usize * 8;
    let mut at = (0..4).fold(32, |at, _| skip(at));
    let mut starts = Vec::new();
    for _ in 0..word(bytes, 8) {
        starts.push(at);
        at = skip(at + 6);
    }
    starts
}

fn read_bitmaps(count: u32) -> impl Fn(Vec<u8>) -> Result<(), Error> {
    move |bytes| {
        let view = FileView::from_bytes(bytes);
        let bitmaps = BitmapFile::from_view(view, Path::new("x.bitmap"), Kind::Sha1, count)?;
        for row in (0..count).map(IndexPosition) {
            bitmaps.reachable_from(row)?;
            bitmaps.name_hash(row);
        }
        Ok(())
    }
}

#[test]
fn broken_entries_of_bitmaps_have_their_messages() {
    use ErrorKind::Corrupt;
    let repository = with_history(Kind::Sha1, &["-c", "pack.writeBitmapLookupTable=false"]);
    let whole = std::fs::read(file(&repository, "bitmap")).expect("it is there");
    let index = PackIndex::open(file(&repository, "idx"), Kind::Sha1, ViewAccess::Auto);
    let count = index.expect("it is well formed").len();
    let starts = bitmap_entries(&whole);
    let (first, third) = (starts[0], starts[2]);
    let load = |number: usize| format!("failed to load bitmap for entry {number} (corrupted?)");
    let range = format!("corrupt ewah bitmap: commit index {count} out of range");
    let xor = "corrupted bitmap pack index";
    let more = word(&whole, 8) + 10_000;
    let cut = format!(
        "corrupt ewah bitmap: truncated header for entry {}",
        starts.len()
    );
    let merges = "corrupted bitmap index file (too short to fit pseudo-merge extension)";
    // Only the type bitmaps, in too little space.
    let kinds = whole[32..].len() - count as usize * 4 - 20;
    let kinds = [
        &whole[..32],
        &vec![0; kinds.min(11)],
        &whole[whole.len() - 20..],
    ]
    .concat();
    let none = "failed to load bitmap of a kind of objects (corrupted?)";
    let cases = vec![
        case(
            "a commit that is not there",
            patched(&whole, first, &count.to_be_bytes()),
            Corrupt,
            range,
        ),
        case(
            "combined with one before the first",
            patched(&whole, first + 4, b"\x01"),
            Corrupt,
            xor,
        ),
        case(
            "combined with one too far away",
            patched(&whole, third + 4, b"\xa1"),
            Corrupt,
            xor,
        ),
        case(
            "more bits than objects",
            patched(&whole, first + 6, &[255; 4]),
            Corrupt,
            load(0),
        ),
        case(
            "more words than there are",
            patched(&whole, third + 10, &[255; 4]),
            Corrupt,
            load(2),
        ),
        case(
            "a run of too many words",
            patched(&whole, third + 14, &[255; 8]),
            Corrupt,
            load(2),
        ),
        case(
            "more entries than there are",
            {
                let end = whole.len() - 20 - count as usize * 4;
                let bytes = [&whole[..end], &[0; 3], &whole[end..]].concat();
                patched(&bytes, 8, &more.to_be_bytes())
            },
            Corrupt,
            cut,
        ),
        case(
            "pseudo-merges that are larger than the file",
            {
                let end = whole.len() - 20 - count as usize * 4;
                patched(&patched(&whole, 7, b"\x25"), end - 8, &[255; 8])
            },
            Corrupt,
            merges,
        ),
        case(
            "pseudo-merges and nothing else",
            {
                let short = [&whole[..7], b"\x21", &whole[8..30]].concat();
                [&short[..], &[0; 22]].concat()
            },
            Corrupt,
            merges,
        ),
        case(
            "no room for kinds",
            patched(&kinds, 7, b"\x01"),
            Corrupt,
            none,
        ),
    ];
    check("x.bitmap", cases, read_bitmaps(count));
}

#[test]
fn broken_tables_of_bitmaps_have_their_messages() {
    use ErrorKind::Corrupt;
    let repository = with_history(Kind::Sha1, &["-c", "pack.writeBitmapLookupTable=true"]);
    let whole = std::fs::read(file(&repository, "bitmap")).expect("it is there");
    let index = PackIndex::open(file(&repository, "idx"), Kind::Sha1, ViewAccess::Auto);
    let count = index.expect("it is well formed").len();
    let entries = word(&whole, 8) as usize;
    let table = whole.len() - 20 - count as usize * 4 - entries * 16;
    let row = |number: usize| table + number * 16;
    // The one that is XORed with an earlier one.
    let combined = (0..entries)
        .find(|number| word(&whole, row(*number) + 12) != u32::MAX)
        .expect("bitmaps have much in common");
    let base = word(&whole, row(combined) + 12) as usize;
    let circle = {
        let itself = (combined as u32).to_be_bytes();
        patched(&whole, row(combined) + 12, &itself)
    };
    let round = patched(&whole, row(base) + 12, &(combined as u32).to_be_bytes());
    let back = "corrupt bitmap: xor chain does not end at an earlier entry";
    let load = "failed to load bitmap for commit (corrupted?)";
    let start = (table as u64 - 6).to_be_bytes();
    let short = "corrupted bitmap index file (too short to fit hash cache)";
    let cases = vec![
        case("combined with itself", circle, Corrupt, back),
        case("combined in a circle", round, Corrupt, back),
        case(
            "a start behind the last",
            patched(&whole, row(0) + 4, &start),
            Corrupt,
            load,
        ),
        case(
            "more bits than objects",
            {
                let start = bitmap_entries(&whole)[0];
                patched(&whole, start + 6, &[255; 4])
            },
            Corrupt,
            load,
        ),
    ];
    check("x.bitmap", cases, read_bitmaps(count));
    let cases = vec![case("those of a smaller pack", whole, Corrupt, short)];
    check("x.bitmap", cases, read_bitmaps(count * 100));
}
