//! Tests that written packs have the same objects as those of git, are accepted by git, and have a
//! similar size.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pronto::Repository;
use pronto::Watch;
use pronto::pack_objects::{self, Select};
use pronto_hash::ObjectId;
use pronto_odb::packing::{Options, PackCounts};
use pronto_pack::pack::{EntryStarts, LinkTarget, RawEntry};

use crate::support::Sandbox;

/// Creates directories with files that change slightly with each commit, a side branch, and tags.
fn history() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    for number in 0..40 {
        grow(&sandbox, number);
        if number % 9 == 4 {
            git(&["checkout", "-q", "-b", &format!("side{number}"), "HEAD~2"]);
        } else if number % 9 == 8 {
            git(&["merge", "-q", "-X", "ours", "-m", "merge", "main"]);
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
    let directory = sandbox.root.join("r").join(format!("d{}", number % 3));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(format!("f{}", number % 4));
    let mut lines: Vec<String> = match std::fs::read_to_string(&path) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(_) => (0..200)
            .map(|line| format!("{line} of {number}, {}", line * 7919 % 1009))
            .collect(),
    };
    lines[number as usize * 4 % 190] = format!("changed by {number}");
    lines.push(format!("added by {number}"));
    std::fs::write(path, lines.join("\n")).expect("a file");
    // A file that moves between paths.
    std::fs::write(directory.join("moves"), format!("{}\n", number / 7)).expect("a file");
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

/// Runs stock git with `input`.
fn fed(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git can be started");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("git ends");
    let _ = writer.join();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    output.stdout
}

/// Returns the pack of git for the same objects.
fn gits(sandbox: &Sandbox, (wants, haves): (&[&str], &[&str]), more: &[&str]) -> Vec<u8> {
    let mut revs = String::new();
    for name in wants {
        revs.push_str(&format!("{name}\n"));
    }
    for name in haves {
        revs.push_str(&format!("^{name}\n"));
    }
    let arguments = [
        &[
            "pack-objects",
            "--revs",
            "--stdout",
            "-q",
            "--delta-base-offset",
        ],
        more,
    ];
    fed(
        &sandbox.root.join("r"),
        &arguments.concat(),
        revs.as_bytes(),
    )
}

/// Returns the ids of the objects in a pack, without the bases that were added from the repository.
fn contents(sandbox: &Sandbox, pack: &[u8], added: &mut usize) -> BTreeSet<String> {
    let objects = sandbox.root.join("r");
    let scratch = tempfile::tempdir_in(&sandbox.root).expect("a directory");
    let path = scratch.path().join("p.pack");
    let name = path.to_str().expect("it is text");
    let arguments = ["index-pack", "--strict", "--fix-thin", "--stdin", name];
    fed(&objects, &arguments, pack);
    let index = std::fs::read(path.with_extension("idx")).expect("it was written");
    let listed = fed(&objects, &["show-index"], &index);
    let listed = String::from_utf8(listed).expect("it is text");
    let count = u32::from_be_bytes(pack[8..12].try_into().expect("four bytes"));
    *added = listed.lines().count() - count as usize;
    listed
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(str::to_owned)
        .collect()
}

fn ours(
    repository: &Repository,
    sandbox: &Sandbox,
    (wants, haves): (&[&str], &[&str]),
    (select, options): (Select, &Options),
) -> (Vec<u8>, PackCounts) {
    let (wants, haves) = (ids(sandbox, wants), ids(sandbox, haves));
    let watch = Watch::none();
    let selection = pack_objects::select(repository, &wants, &haves, &select, &watch);
    let selection = selection.expect("all is there");
    let mut pack = Vec::new();
    let sent = pack_objects::send(repository, &selection, options, &mut pack, &watch);
    let sent = sent.expect("all is there");
    assert_eq!(sent.streamed.bytes, pack.len() as u64);
    (pack, sent.counts)
}

const QUESTIONS: &[(&[&str], &[&str])] = &[
    (&["main"], &[]),
    (&["main"], &["main~1"]),
    (&["main"], &["main~5"]),
    (&["main", "side13", "again", "leafy"], &[]),
    (&["side22"], &["main"]),
    (&["main"], &["side22", "annotated"]),
    (&["main~4^{tree}", "main:d0/f0"], &["main~6"]),
    (&["main~8"], &["main"]),
    (&["again"], &["main~20"]),
];

fn check(sandbox: &Sandbox) {
    let repository = sandbox.open("r");
    let options = pack_objects::packing_options(&repository).expect("the defaults");
    let (mut theirs_bytes, mut ours_bytes) = (0, 0);
    for question in QUESTIONS {
        for thin in [false, true] {
            let select = Select {
                thin,
                ..Select::default()
            };
            let more: &[&str] = if thin { &["--thin"] } else { &[] };
            let theirs = gits(sandbox, *question, more);
            let (pack, _) = ours(&repository, sandbox, *question, (select, &options));
            let (mut theirs_added, mut added) = (0, 0);
            assert_eq!(
                contents(sandbox, &pack, &mut added).len() - added,
                contents(sandbox, &theirs, &mut theirs_added).len() - theirs_added,
                "{question:?}"
            );
            assert_eq!(pack[..12], theirs[..12], "{question:?} {thin}");
            assert!(thin || added == 0);
            if !thin {
                assert_eq!(
                    contents(sandbox, &pack, &mut added),
                    contents(sandbox, &theirs, &mut theirs_added),
                    "{question:?}"
                );
            }
            theirs_bytes += theirs.len();
            ours_bytes += pack.len();
        }
    }
    assert!(
        ours_bytes * 100 <= theirs_bytes * 105,
        "{ours_bytes} for {theirs_bytes}"
    );
}

#[test]
fn packs_of_loose_objects_are_those_of_git() {
    check(&history());
}

#[test]
fn packs_of_packs_are_those_of_git() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-q", "-a", "-d"]);
    check(&sandbox);
    grow(&sandbox, 40);
    grow(&sandbox, 41);
    sandbox.git("r", &["repack", "-q", "-d"]);
    grow(&sandbox, 42);
    check(&sandbox);
}

#[test]
fn what_the_trees_of_a_pack_lead_to_is_what_they_say() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-q", "-a", "-d"]);
    let repository = sandbox.open("r");
    let store = repository.objects().expect("a store");
    let watch = Watch::none();
    let linked = |commits| {
        store
            .tree_links(commits, watch.interrupt())
            .expect("it is whole")
    };
    assert!(linked(15).is_none(), "too few to be worth it");
    let pack = linked(100).expect("most of the pack");
    let (mut trees, mut deltas, mut content) = (0, 0, Vec::new());
    for row in 0..pack.len() {
        let id = pack.id(row).expect("a row");
        let kind = store.find(&id, &mut content).expect("it is whole");
        let (mut expected, mut starts) = (Vec::new(), EntryStarts::default());
        if kind == Some(gix_object::Kind::Tree) {
            let visit =
                |entry: RawEntry<'_>| expected.push((entry.name.to_vec(), entry.id.to_vec()));
            starts.whole(&content, 20, visit).expect("a tree");
            trees += 1;
        }
        let mut found = Vec::new();
        let is_known = pack.links().each_new(
            row,
            |_| false,
            |_| false,
            |_, to, name| {
                let id = match to {
                    LinkTarget::Row(row) => pack.id(row).expect("a row"),
                    LinkTarget::Outside(id) => *id,
                };
                found.push((name.to_vec(), id.as_slice().to_vec()));
            },
        );
        assert_eq!(is_known, kind == Some(gix_object::Kind::Tree));
        assert_eq!(found, expected);
        let base = pack.links().get(row).and_then(|tree| tree.base());
        if let Some(base) = base {
            deltas += 1;
            // After the base only bytes that are not copied remain.
            let mut left = 0;
            let is_done = |row| row == base;
            pack.links()
                .each_new(row, |_| false, is_done, |_, _, _| left += 1);
            assert!(left <= found.len());
        }
    }
    assert!(trees > 80 && deltas > 0, "{trees} {deltas}");
}

#[test]
fn a_pack_that_is_wanted_whole_goes_out_as_it_is() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-q", "-a", "-d"]);
    let repository = sandbox.open("r");
    let all = sandbox.git("r", &["for-each-ref", "--format=%(refname)"]);
    let all: Vec<&str> = all.lines().collect();
    let options = Options::default();
    let choice = (Select::default(), &options);
    let (pack, counts) = ours(&repository, &sandbox, (&all, &[]), choice);
    let directory = sandbox.root.join("r/.git/objects/pack");
    let stored = std::fs::read_dir(directory).expect("it is there");
    let paths = stored.map(|entry| entry.expect("it is listed").path());
    let path = paths.filter(|path| path.extension().is_some_and(|name| name == "pack"));
    let path = path.last().expect("there is a pack");
    assert!(std::fs::read(path).expect("it is there") == pack);
    assert_eq!(counts.whole_pack, counts.objects);
    assert_eq!(counts.reused_bytes, pack.len() as u64);
}

#[test]
fn nothing_is_reused_if_so_wished() {
    let sandbox = history();
    sandbox.git("r", &["repack", "-q", "-a", "-d"]);
    let repository = sandbox.open("r");
    let question: (&[&str], &[&str]) = (&["main"], &[]);
    for (reuse_deltas, reuse_objects, offset_deltas) in [
        (false, true, true),
        (false, false, true),
        (true, true, false),
    ] {
        let mut options = Options::default();
        options.reuse_deltas = reuse_deltas;
        options.reuse_objects = reuse_objects;
        options.offset_deltas = offset_deltas;
        let choice = (Select::default(), &options);
        let (pack, counts) = ours(&repository, &sandbox, question, choice);
        let theirs = gits(&sandbox, question, &["--no-reuse-delta"]);
        let mut added = 0;
        assert_eq!(
            contents(&sandbox, &pack, &mut added),
            contents(&sandbox, &theirs, &mut added)
        );
        assert!(reuse_deltas || counts.reused_deltas == 0);
        assert!(reuse_objects || counts.reused == 0);
        let allowed = if offset_deltas { 105 } else { 150 };
        assert!(pack.len() * 100 <= theirs.len() * allowed);
    }
}
