//! Compares reachable objects, with and without bitmaps, with git's walks.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pronto::ErrorKind;
use pronto::Severity;
use pronto::Watch;
use pronto::bitmaps::{self, Settings};
use pronto_hash::ObjectId;

use crate::support::Sandbox;

/// Creates a repository with directories, tags of several kinds and a side branch.
fn history() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    for number in 0..30 {
        grow(&sandbox, number);
        if number % 7 == 3 {
            git(&["checkout", "-q", "-b", &format!("side{number}"), "HEAD~2"]);
        } else if number % 7 == 6 {
            git(&["merge", "-q", "-m", "merge", "main"]);
            git(&["checkout", "-q", "main"]);
        }
    }
    git(&["tag", "-m", "tag", "annotated", "HEAD~3"]);
    git(&["tag", "-m", "tag of tag", "again", "annotated"]);
    git(&["tag", "-m", "tag of tree", "leafy", "HEAD^{tree}"]);
    git(&["checkout", "-q", "main"]);
    sandbox
}

fn grow(sandbox: &Sandbox, number: u32) {
    let directory = sandbox
        .root
        .join("r")
        .join(format!("d{}/e{}", number % 3, number % 5));
    std::fs::create_dir_all(&directory).expect("a directory");
    let text = format!("{number}\n").repeat(20);
    std::fs::write(directory.join(format!("f{number}")), text).expect("a file");
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-q", "-m", &number.to_string()]);
}

fn ids(sandbox: &Sandbox, names: &[&str]) -> Vec<ObjectId> {
    let id = |name: &&str| {
        let hex = sandbox.git("r", &["rev-parse", name]);
        ObjectId::from_hex(hex.as_bytes()).expect("git prints ids")
    };
    names.iter().map(id).collect()
}

/// Returns the objects reachable from `names` as listed by git.
fn reported(sandbox: &Sandbox, names: &[&str]) -> BTreeSet<ObjectId> {
    if names.is_empty() {
        return BTreeSet::new();
    }
    let text = sandbox.git("r", &[&["rev-list", "--objects"], names].concat());
    let id = |line: &str| {
        let hex = line.split(' ').next().unwrap_or_default();
        ObjectId::from_hex(hex.as_bytes()).expect("git prints ids")
    };
    text.lines().map(id).collect()
}

const QUESTIONS: &[(&[&str], &[&str])] = &[
    (&["main"], &[]),
    (&["main"], &["main~5"]),
    (&["main", "side10", "again", "leafy"], &[]),
    (&["side17"], &["main"]),
    (&["main"], &["side17", "annotated"]),
    (&["main~4^{tree}", "main:d0/e0/f0"], &["main~6"]),
    (&["main~8"], &["main"]),
];

/// Returns the number of objects that were found by bitmaps.
fn check(sandbox: &Sandbox) -> usize {
    let (repository, notices) = sandbox.open_noticing("r");
    let mut packed = 0;
    for (wants, haves) in QUESTIONS {
        let found = repository
            .reachable(&ids(sandbox, wants), &ids(sandbox, haves), &Watch::none())
            .expect("all is there");
        let known = reported(sandbox, haves);
        let mut expected = reported(sandbox, wants);
        expected.retain(|id| !known.contains(id));
        let all = found.packed.iter().chain(&found.others);
        let sorted: BTreeSet<ObjectId> = all.clone().copied().collect();
        assert_eq!(sorted, expected, "{wants:?} without {haves:?}");
        assert_eq!(all.count(), expected.len(), "each once");
        packed += found.packed.len();
    }
    assert!(notices.take_of(Severity::Error).is_empty());
    packed
}

#[test]
fn the_same_objects_are_found_by_walks_and_by_bitmaps() {
    let sandbox = history();
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    assert_eq!(check(&sandbox), 0);
    git(&["-c", "pack.writeBitmapLookupTable=true", "repack", "-adbq"]);
    assert!(check(&sandbox) > 100);
    for number in 40..45 {
        grow(&sandbox, number);
    }
    assert!(check(&sandbox) > 100);
    git(&["repack", "-dq"]);
    assert!(check(&sandbox) > 100);
    git(&["multi-pack-index", "write", "--bitmap"]);
    assert!(check(&sandbox) > 100);
    // Bitmaps are ignored if the history is replaced or cut off.
    git(&["replace", "main~3", "main~4"]);
    assert_eq!(check(&sandbox), 0);
    git(&["replace", "-d", &git(&["rev-parse", "main~3"])]);
}

#[test]
fn objects_come_in_the_order_of_their_pack() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-adbq"]);
    let repository = sandbox.open("r");
    let wants = ids(&sandbox, &["main"]);
    let found = repository.reachable(&wants, &[], &Watch::none());
    let store = repository.objects().expect("it can be opened");
    let places = found.expect("all is there").packed.into_iter();
    let places: Vec<_> = places.map(|id| store.position(&id)).collect();
    assert!(places.is_sorted() && places.len() > 50);
}

#[test]
fn what_is_broken_or_missing() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-adbq"]);
    let pack = sandbox.root.join("r/.git/objects/pack");
    let bitmap = std::fs::read_dir(&pack)
        .expect("a directory")
        .map(|entry| entry.expect("it can be listed").path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "bitmap")
        })
        .expect("git wrote one");
    std::fs::remove_file(&bitmap).expect("it is there");
    std::fs::write(&bitmap, "no bitmaps").expect("it can be written");
    let (repository, notices) = sandbox.open_noticing("r");
    let wants = ids(&sandbox, &["main"]);
    let found = repository.reachable(&wants, &[], &Watch::none());
    let found = found.expect("the walk does without");
    assert_eq!(found.others.len(), reported(&sandbox, &["main"]).len());
    let notices = notices.take_of(Severity::Error);
    let first = notices[0].to_string();
    assert!(
        first.contains("corrupted bitmap index (too small)"),
        "{first}"
    );
    let nothing = [ObjectId::null(wants[0].kind())];
    let error = repository.reachable(&nothing, &[], &Watch::none());
    let error = error.expect_err("it is not there");
    assert_eq!(error.message(), format!("bad object {}", nothing[0]));
    assert!(
        repository
            .reachable(&wants, &nothing, &Watch::none())
            .is_ok()
    );
}

fn pack_index(sandbox: &Sandbox) -> PathBuf {
    let directory = sandbox.root.join("r/.git/objects/pack");
    let entries = std::fs::read_dir(directory).expect("it is there");
    let mut paths = entries.map(|entry| entry.expect("it is readable").path());
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "idx"))
        .expect("git packed")
}

#[test]
fn bitmaps_written_for_a_pack_say_what_git_walks() {
    let sandbox = history();
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    git(&["repack", "-adq", "--no-write-bitmap-index"]);
    let count = git(&["rev-list", "--count", "--objects", "--all"]);
    for (name_hashes, lookup_table) in [(true, true), (true, false), (false, true)] {
        let repository = sandbox.open("r");
        let mut settings = Settings::default();
        settings.name_hashes = name_hashes;
        settings.lookup_table = lookup_table;
        let tips = bitmaps::tips(&repository).expect("references can be read");
        let written = bitmaps::write(
            &repository,
            &pack_index(&sandbox),
            &tips,
            &settings,
            &Watch::none(),
        )
        .expect("the pack is whole");
        git(&["rev-list", "--test-bitmap", "main"]);
        git(&["rev-list", "--test-bitmap", "side10"]);
        let counted = git(&[
            "rev-list",
            "--count",
            "--objects",
            "--use-bitmap-index",
            "--all",
        ]);
        assert_eq!(counted, count);
        assert!(check(&sandbox) > 100);
        let ours = std::fs::read(&written).expect("it was written");
        let table = format!("pack.writeBitmapLookupTable={lookup_table}");
        let hashes = format!("pack.writeBitmapHashCache={name_hashes}");
        // The file has the size of git's: the same commits, XORed in the same way.
        git(&["-c", &table, "-c", &hashes, "repack", "-adbfq"]);
        let theirs = std::fs::read(pack_index(&sandbox).with_extension("bitmap"));
        assert_eq!(ours.len(), theirs.expect("git wrote it").len());
        std::fs::remove_file(pack_index(&sandbox).with_extension("bitmap")).expect("it is there");
    }
}

#[test]
fn a_pack_that_lacks_something_gets_no_bitmaps() {
    let sandbox = history();
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    git(&["repack", "-adq", "--no-write-bitmap-index"]);
    let whole = pack_index(&sandbox);
    grow(&sandbox, 50);
    git(&["repack", "-dq"]);
    let directory = sandbox.root.join("r/.git/objects/pack");
    let paths = std::fs::read_dir(&directory).expect("it is there");
    let small = paths
        .map(|entry| entry.expect("it is readable").path())
        .find(|path| path.extension().is_some_and(|found| found == "idx") && *path != whole);
    let repository = sandbox.open("r");
    let tips = bitmaps::tips(&repository).expect("references can be read");
    let settings = bitmaps::settings(&repository).expect("no wrong values");
    let error = bitmaps::write(
        &repository,
        &small.expect("git packed again"),
        &tips,
        &settings,
        &Watch::none(),
    )
    .expect_err("the parents are elsewhere");
    let parent = git(&["rev-parse", "main~1"]);
    let message = format!(
        "Failed to write bitmap index. Packfile doesn't have full closure \
        (object {parent} is missing)"
    );
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Refused, &*message)
    );
    let left = std::fs::read_dir(&directory).expect("it is there");
    assert_eq!(left.count(), 4, "nothing was left behind");
}

#[test]
fn every_tip_has_a_bitmap_if_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    let commit = |number: u32| {
        let from = if number == 0 {
            "from refs/heads/main^0\n"
        } else {
            ""
        };
        let time = 1_700_000_000 + number;
        format!(
            "commit refs/heads/main\ncommitter A <a@b> {time} +0000\ndata 1\nc\n{from}\
             M 644 inline f{number}\ndata 1\n.\n"
        )
    };
    let stream: String = (0..600).map(commit).collect();
    let file = sandbox.root.join("stream");
    std::fs::write(&file, stream).expect("a file");
    let import = std::process::Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(sandbox.root.join("r"))
        .stdin(std::fs::File::open(&file).expect("it was written"))
        .status();
    assert!(import.expect("git runs").success());
    // Old ones, of which few have a bitmap; the last is the oldest.
    let old: Vec<String> = (0..40)
        .map(|number| format!("main~{}", 300 + number * 7))
        .collect();
    for (number, commit) in old.iter().enumerate() {
        git(&["tag", &format!("t{number}"), commit]);
    }
    git(&["repack", "-adq", "--no-write-bitmap-index"]);
    let bitmapped = |every: usize| {
        let repository = sandbox.open("r");
        let mut tips = bitmaps::tips(&repository).expect("references can be read");
        tips.bitmapped_tips = every;
        let settings = bitmaps::settings(&repository).expect("no wrong values");
        let index = pack_index(&sandbox);
        let written = bitmaps::write(&repository, &index, &tips, &settings, &Watch::none())
            .expect("the pack is whole");
        git(&["rev-list", "--test-bitmap", "main"]);
        let listed = git(&[
            "rev-list",
            "--count",
            "--objects",
            "--use-bitmap-index",
            "--all",
        ]);
        assert_eq!(listed, git(&["rev-list", "--count", "--objects", "--all"]));
        let repository = sandbox.open("r");
        let store = repository.objects().expect("objects");
        let bitmaps = store.bitmaps().expect("readable").expect("written");
        let tips = ids(
            &sandbox,
            &old.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        let found = tips.iter().map(|tip| {
            let bits = bitmaps.reachable_from(tip).expect("readable");
            bits.is_some()
        });
        let found: Vec<bool> = found.collect();
        std::fs::remove_file(written).expect("it is there");
        found
    };
    assert!(bitmapped(0).iter().filter(|has| **has).count() < 20);
    let some = bitmapped(21);
    assert!(
        some[..20].iter().all(|has| *has),
        "the youngest, after main"
    );
    assert!(some.iter().any(|has| !has));
    assert!(bitmapped(41).iter().all(|has| *has));
}
