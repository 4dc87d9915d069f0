//! Valid packs: all written files equal those of git.

use super::support::{Maker, Repository, delta, files, id_of, paths};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_pack::entry::EntryHeader;
use pronto_pack::idx::PackIndexVersion;
use pronto_pack::indexer::{
    InFiles, IndexContext, Inspect, Options, Outcome, index_bytes, index_file, index_stream,
};
use pronto_pack::{Error, ErrorKind};
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use tempfile::TempDir;

fn options(kind: Kind) -> Options {
    let mut options = Options::default();
    options.kind = kind;
    options.sync = pronto_io::sync::SyncMethod::No;
    options
}

fn index(pack: &[u8], options: &Options) -> (TempDir, Result<Outcome, Error>) {
    let directory = TempDir::new().expect("a temporary directory");
    let result = index_stream(
        &mut &pack[..],
        directory.path(),
        options,
        &IndexContext::default(),
    );
    (directory, result)
}

/// Ways to index that must all give the same result.
fn ways(kind: Kind) -> Vec<Options> {
    let mut ways = Vec::new();
    for threads in [1, 4] {
        for (cache, kept) in [(96 << 20, 192 << 20), (0, 192 << 20), (0, 0), (20_000, 0)] {
            for threshold in [512 << 20, 300] {
                let mut way = options(kind);
                way.threads = threads;
                way.base_cache_bytes = cache;
                way.kept_deltas_bytes = kept;
                way.big_file_threshold_bytes = threshold;
                way.in_files = (threshold == 300).then(|| InFiles {
                    directory: std::env::temp_dir(),
                    from_bytes: 400,
                    most_bytes: 1 << 20,
                });
                ways.push(way);
            }
        }
    }
    ways
}

fn check_all_ways(kind: Kind, pack: &[u8]) {
    let expected = Repository::empty(kind).index_with_git(pack, &[]);
    for way in ways(kind) {
        let (directory, outcome) = index(pack, &way);
        let outcome = outcome.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert!(outcome.leftover.is_empty());
        assert!(files(directory.path()) == expected, "{way:?}");
    }
}

#[test]
fn history_with_offset_deltas() {
    let repository = Repository::with_history(Kind::Sha1, 300);
    check_all_ways(Kind::Sha1, &repository.pack(&["--delta-base-offset"]));
}

#[test]
fn history_with_deltas_by_id() {
    let repository = Repository::with_history(Kind::Sha1, 200);
    check_all_ways(Kind::Sha1, &repository.pack(&[]));
}

#[test]
fn long_chains() {
    let repository = Repository::with_history(Kind::Sha1, 400);
    let arguments = ["--depth=4000", "--window=30", "--no-reuse-delta"];
    check_all_ways(Kind::Sha1, &repository.pack(&arguments));
    let pack = repository.pack(&[&arguments[..], &["--delta-base-offset"]].concat());
    check_all_ways(Kind::Sha1, &pack);
}

#[test]
fn sha256() {
    let repository = Repository::with_history(Kind::Sha256, 60);
    check_all_ways(Kind::Sha256, &repository.pack(&["--delta-base-offset"]));
    check_all_ways(Kind::Sha256, &repository.pack(&[]));
}

#[test]
fn nothing_at_all() {
    check_all_ways(Kind::Sha1, &Maker::new(0).finish());
}

#[test]
fn versions_of_the_index() {
    let repository = Repository::with_history(Kind::Sha1, 40);
    let pack = repository.pack(&["--delta-base-offset"]);
    for (argument, version, limit) in [
        ("--index-version=1", PackIndexVersion::One, u64::MAX),
        ("--index-version=2,0x40", PackIndexVersion::Two, 0x40),
        ("--index-version=2,0x1000", PackIndexVersion::Two, 0x1000),
    ] {
        let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[argument]);
        let mut options = options(Kind::Sha1);
        options.index_version = version;
        options.index_offset_limit = limit;
        let (directory, outcome) = index(&pack, &options);
        outcome.expect("the pack is sound");
        assert!(files(directory.path()) == expected, "{argument}");
    }
}

/// Returns a few bytes at a time, and an error in place of the end.
struct Dribble<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.bytes.is_empty() {
            return Err(std::io::Error::other("read beyond what was needed"));
        }
        let len = self.step.min(buffer.len());
        (&mut self.bytes).take(len as u64).read(buffer)
    }
}

#[test]
fn input_in_drops_is_read_to_its_end_and_not_beyond() {
    let repository = Repository::with_history(Kind::Sha1, 40);
    let pack = repository.pack(&["--delta-base-offset"]);
    let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
    for step in [1, 2, 19, 1000, 65536] {
        let directory = TempDir::new().expect("a temporary directory");
        let mut input = Dribble { bytes: &pack, step };
        let options = options(Kind::Sha1);
        index_stream(
            &mut input,
            directory.path(),
            &options,
            &IndexContext::default(),
        )
        .expect("the pack is sound");
        assert!(files(directory.path()) == expected, "{step}");
    }
}

#[test]
fn objects_larger_than_a_window() {
    let mut random = test_support::Random::new(1);
    let noise: Vec<u8> = (0..3_000_000).map(|_| random.below(256) as u8).collect();
    let mut maker = Maker::new(4);
    maker.blob(&noise);
    maker.blob(b"small");
    maker.blob(&vec![7; 20_000_000]);
    maker.blob(&noise[..2_000_000]);
    let pack = maker.finish();
    let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
    for threshold in [512 << 20, 1 << 20] {
        for step in [4096, 1 << 30] {
            let mut options = options(Kind::Sha1);
            options.big_file_threshold_bytes = threshold;
            let directory = TempDir::new().expect("a temporary directory");
            let mut input = Dribble { bytes: &pack, step };
            index_stream(
                &mut input,
                directory.path(),
                &options,
                &IndexContext::default(),
            )
            .expect("the pack is sound");
            assert!(files(directory.path()) == expected, "{threshold} {step}");
        }
    }
}

#[test]
fn what_follows_is_given_back() {
    let mut maker = Maker::new(1);
    maker.blob(b"content");
    let mut bytes = maker.finish();
    bytes.extend_from_slice(b"0000 and more");
    let (_directory, outcome) = index(&bytes, &options(Kind::Sha1));
    let outcome = outcome.expect("the pack is sound");
    assert_eq!(outcome.leftover, b"0000 and more");
    assert_eq!((outcome.objects, outcome.deltas), (1, 0));
}

#[test]
fn files_are_read_only_and_marked() {
    let mut maker = Maker::new(1);
    maker.blob(b"content");
    let pack = maker.finish();
    let mut options = options(Kind::Sha1);
    options.keep = Some(b"fetch-pack 1 on host\n".to_vec());
    options.promisor = Some(Vec::new());
    options.sync = pronto_io::sync::SyncMethod::Flush;
    let (directory, outcome) = index(&pack, &options);
    let outcome = outcome.expect("the pack is sound");
    for path in [&outcome.pack, &outcome.index] {
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o444);
    }
    let keep = outcome.keep.expect("it was asked for");
    assert_eq!(
        std::fs::read(keep).expect("it is there"),
        b"fetch-pack 1 on host\n"
    );
    assert!(outcome.pack.with_extension("promisor").exists());
    assert_eq!(paths(directory.path()).len(), 5);
    // Once more: all files exist and stay.
    let again = index_stream(
        &mut &pack[..],
        directory.path(),
        &options,
        &IndexContext::default(),
    );
    again.expect("the same is no collision");
    assert_eq!(paths(directory.path()).len(), 5);
}

#[test]
fn another_pack_of_the_same_name_is_a_collision() {
    let mut maker = Maker::new(1);
    maker.blob(b"content");
    let pack = maker.finish();
    let (directory, outcome) = index(&pack, &options(Kind::Sha1));
    let path = outcome.expect("the pack is sound").pack;
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, b"something else").expect("it is writable");
    let again = index_stream(
        &mut &pack[..],
        directory.path(),
        &options(Kind::Sha1),
        &IndexContext::default(),
    );
    let error = again.expect_err("it differs");
    assert_eq!(error.kind(), ErrorKind::Collision);
    assert_eq!(paths(directory.path()).len(), 3);
}

#[test]
fn a_limit_on_the_size_is_kept() {
    let repository = Repository::with_history(Kind::Sha1, 10);
    let pack = repository.pack(&[]);
    let mut options = options(Kind::Sha1);
    for (limit, fits) in [
        (pack.len(), true),
        (pack.len() - 1, false),
        (100, false),
        (1, false),
    ] {
        options.max_input_size_bytes = Some(limit as u64);
        let (directory, outcome) = index(&pack, &options);
        match outcome {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::PackTooLarge, "{error}");
                assert!(paths(directory.path()).is_empty());
            }
        }
    }
}

#[test]
fn duplicates_are_kept_unless_forbidden() {
    let mut maker = Maker::new(4);
    maker.blob(b"twice");
    maker.blob(b"once");
    maker.blob(b"twice");
    let base = id_of(ObjectKind::Blob, b"twice");
    let delta = delta(5, b"derived");
    let distance = maker.bytes.len() as u64 - maker.offsets[0];
    maker.entry(
        EntryHeader::OffsetDelta { distance },
        delta.len() as u64,
        &delta,
    );
    let pack = maker.finish();
    let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
    let mut options = options(Kind::Sha1);
    let (directory, outcome) = index(&pack, &options);
    outcome.expect("duplicates are allowed");
    assert!(files(directory.path()) == expected);
    options.forbid_duplicates = true;
    let (directory, outcome) = index(&pack, &options);
    let error = outcome.expect_err("duplicates are forbidden");
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    assert_eq!(error.object(), Some(base.to_string().as_str()));
    assert!(paths(directory.path()).is_empty());
}

/// Collects the objects that it is shown.
#[derive(Default)]
struct Collector {
    seen: Mutex<Vec<(String, String, u64)>>,
    refuse: Option<ObjectId>,
}

impl Inspect for Collector {
    fn object(&self, kind: ObjectKind, id: &ObjectId, content: &[u8]) -> Result<(), Error> {
        if self.refuse == Some(*id) {
            return Err(Error::new(ErrorKind::Rejected, "no").on_object(id));
        }
        self.add(kind, id, content.len() as u64);
        Ok(())
    }

    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), Error> {
        self.add(ObjectKind::Blob, id, size_bytes);
        Ok(())
    }
}

impl Collector {
    fn add(&self, kind: ObjectKind, id: &ObjectId, size: u64) {
        let mut seen = self.seen.lock().expect("nobody panics");
        seen.push((id.to_string(), kind.to_string(), size));
    }
}

#[test]
fn every_object_is_shown_once() {
    let repository = Repository::with_history(Kind::Sha1, 100);
    let pack = repository.pack(&["--delta-base-offset"]);
    let copy = Repository::empty(Kind::Sha1);
    copy.index_with_git(&pack, &[]);
    let listing = copy.git(&["cat-file", "--batch-all-objects", "--batch-check"], b"");
    for mut way in ways(Kind::Sha1) {
        way.reverse_index = false;
        let collector = Collector::default();
        let context = IndexContext {
            inspect: Some(&collector),
            ..IndexContext::default()
        };
        let directory = TempDir::new().expect("a temporary directory");
        index_stream(&mut &pack[..], directory.path(), &way, &context).expect("it is sound");
        let mut seen = collector.seen.into_inner().expect("nobody panics");
        seen.sort();
        let lines: String = seen
            .iter()
            .map(|(id, kind, size)| format!("{id} {kind} {size}\n"))
            .collect();
        assert!(lines.as_bytes() == listing, "{way:?}");
        assert_eq!(paths(directory.path()).len(), 2);
    }
}

#[test]
fn an_object_that_is_refused_refuses_the_pack() {
    let repository = Repository::with_history(Kind::Sha1, 100);
    let pack = repository.pack(&["--delta-base-offset"]);
    let tree = repository.git(&["rev-parse", "main~70^{tree}"], b"");
    for way in ways(Kind::Sha1) {
        let collector = Collector {
            refuse: ObjectId::from_hex(tree.trim_ascii()).ok(),
            ..Collector::default()
        };
        let context = IndexContext {
            inspect: Some(&collector),
            ..IndexContext::default()
        };
        let directory = TempDir::new().expect("a temporary directory");
        let error = index_stream(&mut &pack[..], directory.path(), &way, &context)
            .expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Rejected, "{way:?}");
        assert!(paths(directory.path()).is_empty());
    }
}

#[test]
fn an_interrupt_leaves_nothing() {
    let repository = Repository::with_history(Kind::Sha1, 10);
    let pack = repository.pack(&[]);
    let interrupt = Interrupt::new();
    interrupt.trigger();
    let context = IndexContext {
        interrupt: Some(&interrupt),
        ..IndexContext::default()
    };
    let directory = TempDir::new().expect("a temporary directory");
    let error = index_stream(
        &mut &pack[..],
        directory.path(),
        &options(Kind::Sha1),
        &context,
    )
    .expect_err("it is interrupted");
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(paths(directory.path()).is_empty());
}

/// Keeps the created meters.
#[derive(Default)]
struct Watcher(Mutex<Vec<Meter>>);

impl Progress for Watcher {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        self.0.lock().expect("nobody panics").push(meter.clone());
        meter
    }

    fn message(&self, _: ProgressMessage<'_>) {}
}

#[test]
fn meters_end_at_their_totals() {
    let repository = Repository::with_history(Kind::Sha1, 100);
    let pack = repository.pack(&["--delta-base-offset"]);
    for way in ways(Kind::Sha1) {
        let watcher = Watcher::default();
        let context = IndexContext {
            progress: &watcher,
            ..IndexContext::default()
        };
        let directory = TempDir::new().expect("a temporary directory");
        let outcome =
            index_stream(&mut &pack[..], directory.path(), &way, &context).expect("it is sound");
        let meters = watcher.0.into_inner().expect("nobody panics");
        let states: Vec<_> = meters
            .iter()
            .map(|meter| {
                (
                    meter.title(),
                    meter.total(),
                    meter.done(),
                    meter.is_finished(),
                )
            })
            .collect();
        let (objects, deltas) = (u64::from(outcome.objects), outcome.deltas);
        assert_eq!(
            states,
            [
                ("Receiving objects", Some(objects), objects, true),
                ("Resolving deltas", Some(deltas), deltas, true),
            ]
        );
        assert_eq!(meters[0].bytes(), pack.len() as u64);
    }
}

#[test]
fn a_pack_that_is_a_file_stays_and_gets_its_indexes() {
    let repository = Repository::with_history(Kind::Sha1, 100);
    let pack = repository.pack(&["--delta-base-offset"]);
    let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
    for way in ways(Kind::Sha1) {
        let directory = TempDir::new().expect("a temporary directory");
        let (path, index) = (
            directory.path().join("a.pack"),
            directory.path().join("a.idx"),
        );
        std::fs::write(&path, &pack).expect("it is writable");
        std::fs::write(&index, b"an old one").expect("it is writable");
        let outcome =
            index_file(&path, &index, &way, &IndexContext::default()).expect("it is sound");
        assert_eq!((&outcome.pack, &outcome.index), (&path, &index));
        assert!(files(directory.path()) == expected, "{way:?}");
        let bytes = index_bytes(&pack, &way, &IndexContext::default()).expect("it is sound");
        assert!(expected.contains(&("idx".to_owned(), bytes)));
        let mut junk = pack.clone();
        junk.push(0);
        std::fs::write(&path, &junk).expect("it is writable");
        let error = index_file(&path, &index, &way, &IndexContext::default()).expect_err("junk");
        assert_eq!(
            error.to_string(),
            format!("pack has junk at the end at offset {}", pack.len())
        );
    }
}
