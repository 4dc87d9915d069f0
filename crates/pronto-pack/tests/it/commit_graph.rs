//! Commit-graphs of stock git, compared with git's data of the commits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::view::{FileView, ViewAccess};
use pronto_pack::commit_graph::{ChangedPaths, CommitGraph, GraphPosition, Options, Remark, bloom};

use test_support::Random;

use super::support::{Repository, forking_history};

fn options(kind: Kind) -> Options {
    let mut options = Options::default();
    options.kind = kind;
    options
}

/// A repository with only a packed history that forks.
fn repository(kind: Kind, commits: u32) -> Repository {
    let repository = Repository::empty(kind);
    let history = forking_history(7, commits);
    repository.git(&["fast-import", "--quiet", "--force"], history.as_bytes());
    repository.git(&["repack", "-adq"], b"");
    repository
}

fn objects(repository: &Repository) -> PathBuf {
    repository.path().join("objects")
}

fn open(repository: &Repository) -> CommitGraph {
    let kind = match repository.git(&["rev-parse", "--show-object-format"], b"")[3] {
        b'2' => Kind::Sha256,
        _ => Kind::Sha1,
    };
    let (graph, remarks) = CommitGraph::open(&[objects(repository)], &options(kind));
    assert_eq!(remarks, []);
    graph.expect("there is a graph")
}

/// Asserts that the graph and `git log` agree on all commits.
fn check(repository: &Repository, graph: &CommitGraph) {
    let log = repository.git(&["log", "--all", "--format=%H %T %ct %P"], b"");
    let log = String::from_utf8(log).expect("it is text");
    let id = |hex: &str| ObjectId::from_hex(hex.as_bytes()).expect("git prints ids");
    let mut parents = Vec::new();
    let mut generations: HashMap<ObjectId, (u64, u32)> = HashMap::new();
    let mut children = Vec::new();
    let mut count = 0;
    for line in log.lines() {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let mut next = || words.next().expect("git prints all of them");
        let (commit, tree, time) = (id(next()), id(next()), next());
        let position = graph.find(&commit).expect("read").expect("it is there");
        assert_eq!(graph.id_at(position).expect("read"), commit);
        let found = graph.commit_at(position, &mut parents).expect("read");
        assert_eq!(found.tree, tree);
        assert_eq!(found.time.to_string(), time);
        assert_eq!(graph.commit_alone_at(position).expect("read"), found);
        let expected: Vec<ObjectId> = words.map(id).collect();
        let parents = parents.iter().map(|parent| graph.id_at(*parent));
        let parents: Vec<_> = parents.map(|id| id.expect("read")).collect();
        assert_eq!(parents, expected);
        generations.insert(commit, (found.generation, found.level));
        children.push((commit, parents));
        count += 1;
    }
    assert_eq!(graph.len(), count);
    for (child, parents) in children {
        let most = parents.iter().map(|parent| generations[parent]);
        let level = most.clone().map(|(_, level)| level).max().unwrap_or(0);
        let generation = most.map(|(generation, _)| generation).max().unwrap_or(0);
        assert_eq!(generations[&child].1, level + 1);
        assert!(generations[&child].0 > generation);
    }
    assert_eq!(graph.find(&ObjectId::null(Kind::Sha1)).expect("read"), None);
}

#[test]
fn a_single_file_says_what_git_says() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let repository = repository(kind, 300);
        repository.git(&["commit-graph", "write", "--reachable"], b"");
        let graph = open(&repository);
        check(&repository, &graph);
        assert_eq!(graph.layer_count(), 1);
        assert!(graph.has_corrected_dates() && graph.has_generations());
        let mut levels = options(kind);
        levels.generation_version = 1;
        levels.access = ViewAccess::Positional;
        let (graph, _) = CommitGraph::open(&[objects(&repository)], &levels);
        let graph = graph.expect("there is a graph");
        check(&repository, &graph);
        assert!(!graph.has_corrected_dates());
    }
}

#[test]
fn a_chain_says_what_git_says() {
    let repository = repository(Kind::Sha1, 200);
    let all = repository.git(&["rev-list", "--all", "--topo-order", "--reverse"], b"");
    let all: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    for part in all.chunks(50) {
        let write = [
            "commit-graph",
            "write",
            "--split=no-merge",
            "--stdin-commits",
        ];
        repository.git(&write, &part.concat());
    }
    let graph = open(&repository);
    check(&repository, &graph);
    assert_eq!(graph.layer_count(), 4);

    // The same through an alternate, and with the lowest layers in another directory.
    let borrower = Repository::empty(Kind::Sha1);
    let directories = [objects(&borrower), objects(&repository)];
    let (graph, remarks) = CommitGraph::open(&directories, &options(Kind::Sha1));
    assert_eq!(remarks, []);
    check(&repository, &graph.expect("the alternate has one"));
    let (ours, theirs) = (chains(&borrower), chains(&repository));
    std::fs::create_dir_all(&ours).expect("it can be made");
    let list = std::fs::read_to_string(theirs.join("commit-graph-chain")).expect("a list");
    let last = list.lines().last().expect("it lists four");
    for name in ["commit-graph-chain".into(), format!("graph-{last}.graph")] {
        std::fs::rename(theirs.join(&name), ours.join(&name)).expect("it can be moved");
    }
    let (graph, remarks) = CommitGraph::open(&directories, &options(Kind::Sha1));
    assert_eq!(remarks, []);
    check(&repository, &graph.expect("the layers are found"));
}

fn chains(repository: &Repository) -> PathBuf {
    objects(repository).join("info/commit-graphs")
}

#[test]
fn filters_know_what_commits_changed() {
    let repository = repository(Kind::Sha1, 200);
    repository.git(
        &["commit-graph", "write", "--reachable", "--changed-paths"],
        b"",
    );
    let graph = open(&repository);
    let settings = graph.bloom_settings().expect("there are filters");
    assert_eq!(settings, bloom::Settings::default());
    let (mut filter, mut large, mut refused) = (Vec::new(), 0, 0);
    for position in (0..graph.len()).map(GraphPosition) {
        assert_eq!(
            graph.filter_at(position, &mut filter).expect("read"),
            Some(settings)
        );
        let id = graph.id_at(position).expect("read").to_string();
        let tree = [
            "diff-tree",
            "-r",
            "--root",
            "--name-only",
            "--no-commit-id",
            "-z",
        ];
        let parent = format!("{id}^1");
        let arguments = match repository.try_git(&["rev-parse", "--verify", &parent], b"") {
            Ok(_) => [&tree[..], &[&parent, &id]].concat(),
            Err(_) => [&tree[..], &[&id]].concat(),
        };
        let paths = repository.git(&arguments, b"");
        large += usize::from(filter == [0xff]);
        for path in paths
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
        {
            let ends = (0..path.len()).filter(|at| path[*at] == b'/');
            for path in ends.map(|at| &path[..at]).chain([path]) {
                assert!(bloom::BloomKey::new(path, &settings).may_be_in(&filter));
            }
        }
        refused += usize::from(!bloom::BloomKey::new(b"not/there", &settings).may_be_in(&filter));
    }
    assert!(large > 0, "a commit changed more than a filter holds");
    assert!(refused > 150, "filters say no");
    let mut ignoring = options(Kind::Sha1);
    ignoring.changed_paths = ChangedPaths::Ignore;
    let (graph, _) = CommitGraph::open(&[objects(&repository)], &ignoring);
    assert_eq!(graph.expect("there is a graph").bloom_settings(), None);
}

/// Returns a small valid file with the positions of its chunks.
fn sound() -> (Vec<u8>, HashMap<[u8; 4], usize>) {
    let repository = repository(Kind::Sha1, 120);
    repository.git(
        &["commit-graph", "write", "--reachable", "--changed-paths"],
        b"",
    );
    let path = objects(&repository).join("info/commit-graph");
    let bytes = std::fs::read(path).expect("git wrote it");
    let mut chunks = HashMap::new();
    for number in 0..usize::from(bytes[6]) {
        let row = &bytes[8 + number * 12..][..12];
        let offset = u64::from_be_bytes(row[4..].try_into().expect("eight bytes"));
        chunks.insert(row[..4].try_into().expect("four bytes"), offset as usize);
    }
    (bytes, chunks)
}

/// Opens `bytes`, reads everything, and returns warnings and the first error.
fn use_all(bytes: Vec<u8>) -> (Vec<Remark>, Option<String>) {
    let view = FileView::from_bytes(bytes);
    let (graph, remarks) = CommitGraph::from_view(view, Path::new("g"), &options(Kind::Sha1));
    let Some(graph) = graph else {
        return (remarks, None);
    };
    let (mut parents, mut filter, mut first) = (Vec::new(), Vec::new(), None);
    for position in (0..graph.len().min(200)).map(GraphPosition) {
        let id = graph.id_at(position);
        let found = id.and_then(|id| graph.find(&id)).map(|_| ());
        let commit = graph.commit_at(position, &mut parents).map(|_| ());
        let filter = graph.filter_at(position, &mut filter).map(|_| ());
        if let Err(error) = found.and(commit).and(filter) {
            first.get_or_insert(error.message().to_owned());
        }
    }
    (remarks, first)
}

/// Bytes that overwrite a valid file at a position, and the resulting message.
type Case = (&'static str, usize, Vec<u8>, &'static [&'static str]);

#[test]
fn each_kind_of_damage_is_told() {
    let (bytes, at) = sound();
    let row = |number: usize| 8 + number * 12;
    let fanout = at[b"OIDF"];
    let cases: Vec<Case> = vec![
        (
            "signature",
            0,
            b"CGPX".to_vec(),
            &["commit-graph signature 43475058 does not match signature 43475048"],
        ),
        (
            "version",
            4,
            vec![9],
            &["commit-graph version 9 does not match version 1"],
        ),
        (
            "hash",
            5,
            vec![2],
            &["commit-graph hash version 2 does not match version 1"],
        ),
        (
            "too few chunks",
            6,
            vec![3],
            &["final chunk has non-zero id 47444132"],
        ),
        (
            "too many chunks",
            6,
            vec![30],
            &["terminating chunk id appears earlier than expected"],
        ),
        (
            "chunk beyond the end",
            row(2) + 4,
            vec![0x7f],
            &["improper chunk offset(s) "],
        ),
        (
            "chunk twice",
            row(1),
            b"OIDF".to_vec(),
            &["duplicate chunk ID 4f494446 found"],
        ),
        (
            "no fan-out",
            row(0),
            b"XXXX".to_vec(),
            &["commit-graph required OID fanout chunk missing or corrupted"],
        ),
        (
            "no ids",
            row(1),
            b"XXXX".to_vec(),
            &["commit-graph required OID lookup chunk missing or corrupted"],
        ),
        (
            "no commits",
            row(2),
            b"XXXX".to_vec(),
            &["commit-graph required commit data chunk missing or corrupted"],
        ),
        (
            "fan-out falls",
            fanout,
            vec![1, 0, 0, 0],
            &[
                "commit-graph fanout values out of order",
                "commit-graph required OID fanout chunk missing or corrupted",
            ],
        ),
        (
            "fan-out counts more",
            fanout + 1020,
            vec![0, 0, 9, 9],
            &[
                "commit-graph OID lookup chunk is the wrong size",
                "commit-graph required OID lookup chunk missing or corrupted",
            ],
        ),
        (
            "parent out of bounds",
            at[b"CDAT"] + 20,
            vec![0x6f, 0xff, 0xff, 0xff],
            &["invalid parent position 1879048191"],
        ),
        (
            "edge out of bounds",
            at[b"CDAT"] + 20,
            vec![0, 0, 0, 1, 0x8f, 0xff, 0xff, 0xff],
            &["commit-graph extra-edges pointer out of bounds"],
        ),
        (
            "overflow out of bounds",
            at[b"GDA2"],
            vec![0x80, 0xff, 0, 0],
            &["commit-graph overflow generation data is too small"],
        ),
        ("filter out of bounds", at[b"BIDX"], vec![0xff; 4], &[]),
        (
            "filter ends before it begins",
            at[b"BIDX"] + 4,
            vec![0; 4],
            &[],
        ),
    ];
    for (name, place, change, expected) in cases {
        let mut broken = bytes.clone();
        broken[place..place + change.len()].copy_from_slice(&change);
        let (remarks, error) = use_all(broken);
        assert!(remarks.iter().all(Remark::is_error), "{name}");
        let messages = remarks
            .into_iter()
            .map(|remark| remark.to_string())
            .chain(error);
        let messages: Vec<_> = messages.collect();
        let pairs = messages.iter().zip(expected);
        let alike = pairs.filter(|(message, expected)| message.starts_with(**expected));
        let counts = (alike.count(), messages.len());
        assert_eq!(
            counts,
            (expected.len(), expected.len()),
            "{name}: {messages:?}"
        );
    }
    for len in [0, 7, 100, 1000] {
        let remarks = use_all(bytes[..len].to_vec()).0;
        assert_eq!(remarks[0], Remark::TooSmall);
    }
}

#[test]
fn random_damage_does_no_harm() {
    let (bytes, _) = sound();
    let mut random = Random::new(3);
    for _ in 0..3000 {
        let mut broken = bytes.clone();
        for _ in 0..1 + random.below(4) {
            // Mostly in the tables of positions.
            let limit = [140, 1300, broken.len() as u64][random.below(3) as usize];
            let place = random.below(limit) as usize;
            broken[place] = random.below(256) as u8;
        }
        broken.truncate(broken.len() - random.below(2) as usize * random.below(3000) as usize);
        let _ = use_all(broken);
    }
}

#[test]
fn chains_that_do_not_fit_end_early() {
    let repository = repository(Kind::Sha1, 60);
    let all = repository.git(&["rev-list", "--all", "--topo-order", "--reverse"], b"");
    let all: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    for part in all.chunks(all.len().div_ceil(3)) {
        let write = [
            "commit-graph",
            "write",
            "--split=no-merge",
            "--stdin-commits",
        ];
        repository.git(&write, &part.concat());
    }
    let list = chains(&repository).join("commit-graph-chain");
    let text = std::fs::read_to_string(&list).expect("git wrote it");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let said = |text: String, layers: usize| {
        // The file is read-only, so it is replaced, as git does.
        std::fs::remove_file(&list).expect("it is there");
        std::fs::write(&list, text).expect("it can be written");
        let (graph, remarks) = CommitGraph::open(&[objects(&repository)], &options(Kind::Sha1));
        assert_eq!(graph.map_or(0, |graph| graph.layer_count()), layers);
        remarks
            .into_iter()
            .map(|remark| remark.to_string())
            .collect::<Vec<_>>()
    };
    let unfound = "unable to find all commit-graph files";
    assert_eq!(
        said("short".into(), 0),
        ["commit-graph chain file too small"]
    );
    assert!(said(String::new(), 0).is_empty());
    let bad = "g".repeat(40);
    let expected = format!("invalid commit-graph chain: line '{bad}' not a hash");
    assert_eq!(said(format!("{}{bad}\n", lines[0]), 1), [expected]);
    let unmatched = ["commit-graph base graphs chunk is too small", unfound];
    assert_eq!(said([lines[0], lines[1], lines[1]].concat(), 2), unmatched);
    let higher = [lines[1], lines[2]].concat();
    let unmatched = ["commit-graph chain does not match", unfound];
    assert_eq!(said(higher, 1), unmatched);
    let without = [lines[0], lines[0]].concat();
    assert_eq!(
        said(without, 1),
        ["commit-graph has no base graphs chunk", unfound]
    );
    let missing = format!("{}{}\n", lines[0], "0".repeat(40));
    assert_eq!(said(missing, 1), [unfound]);
}

#[test]
fn opening_costs_the_same_whatever_the_size() {
    // Ten million commits. Only the header and the fan-out exist, the rest is a hole in the file.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("info/commit-graph");
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    let count: u64 = 10_000_000;
    let ids = 8 + 4 * 12 + 1024;
    let mut header = b"CGPH\x01\x01\x03\0".to_vec();
    let places = [(b"OIDF", 56), (b"OIDL", ids), (b"CDAT", ids + count * 20)];
    for (name, offset) in places {
        header.extend_from_slice(name);
        header.extend_from_slice(&offset.to_be_bytes());
    }
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&(ids + count * 56).to_be_bytes());
    for byte in 0..256u64 {
        header.extend_from_slice(&((count * byte / 255) as u32).to_be_bytes());
    }
    std::fs::write(&path, header).expect("it can be written");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("it is there");
    file.set_len(ids + count * 56 + 20)
        .expect("a hole costs nothing");
    let (graph, remarks) = CommitGraph::open(&[directory.path()], &options(Kind::Sha1));
    let graph = graph.expect("it looks sound");
    assert_eq!(remarks, []);
    assert_eq!(u64::from(graph.len()), count);
    let nobody = TrailerDigester::new(Kind::Sha1).finish();
    assert_eq!(graph.find(&nobody).expect("read"), None);
}
