//! Compares walks of history, with and without a commit-graph, with git.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use pronto::Repository;
use pronto::Watch;
use pronto::pack::Remark;
use pronto::{Notice, Severity};
use pronto_hash::ObjectId;
use test_support::Random;

use crate::support::Sandbox;

/// The errors of the clocks in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clocks {
    Right,
    /// Errors of a few minutes.
    Drifting,
    /// Errors of years in both directions.
    Wrong,
}

/// Creates a history of `count` commits with merges, each with its number as a tag.
fn history(sandbox: &Sandbox, count: u64, clocks: Clocks) {
    sandbox.git("", &["init", "-q", "-b", "main", "r"]);
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut text = String::new();
    for number in 0..count {
        let skew = match clocks {
            Clocks::Right => 0,
            Clocks::Drifting => random.below(300),
            Clocks::Wrong if random.below(6) == 0 => random.below(600_000_000),
            Clocks::Wrong => 300_000_000,
        };
        let time = 1_000_000_000 + number * 60 + skew;
        let _ = write!(
            text,
            "commit refs/tags/t{number}\nmark :{}\ncommitter C <c@d> {time} +0000\ndata 3\n{number:03}\n",
            number + 1
        );
        if number > 0 {
            let near = |random: &mut Random| number - random.below(number.min(8));
            let first = near(&mut random);
            let _ = writeln!(text, "from :{first}");
            let second = near(&mut random);
            if random.below(3) == 0 && second != first {
                let _ = writeln!(text, "merge :{second}");
                let third = near(&mut random);
                if random.below(3) == 0 && third != first && third != second {
                    let _ = writeln!(text, "merge :{third}");
                }
            }
        }
        text.push('\n');
    }
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet", "--force"])
        .current_dir(sandbox.root.join("r"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git can be started");
    let mut input = import.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("git reads it");
    drop(input);
    assert!(import.wait().expect("it ends").success());
}

fn id(repository: &Repository, number: u64) -> ObjectId {
    let name = format!("refs/tags/t{number}");
    let found = repository.refs().id_of(&name).expect("it can be read");
    found.expect("each commit has a tag")
}

type Found = (u64, u64, (usize, usize), Vec<ObjectId>);

/// Returns the relations of pairs of commits.
fn walk(sandbox: &Sandbox, count: u64) -> Vec<Found> {
    let repository = sandbox.open("r");
    let mut random = Random::new(77);
    (0..60)
        .map(|_| {
            let (left, right) = (random.below(count), random.below(count));
            let (ours, theirs) = (id(&repository, left), id(&repository, right));
            let counts = pronto::status::ahead_behind(&repository, ours, theirs, &Watch::none())
                .expect("walked");
            let bases = repository.merge_bases(ours, theirs).expect("walked");
            (left, right, (counts.ahead, counts.behind), bases)
        })
        .collect()
}

fn has_graph(sandbox: &Sandbox) -> bool {
    let (repository, notices) = sandbox.open_noticing("r");
    let found = repository.commit_graph().expect("it can be looked for");
    assert!(notices.take_of(Severity::Error).is_empty());
    found.is_some()
}

/// Asserts that the results of `walk` equal those of git with its own graph.
fn check(sandbox: &Sandbox, found: &[Found], clocks: Clocks) {
    for (left, right, counts, bases) in found {
        let pair = [format!("t{left}"), format!("t{right}")];
        let mut expected: Vec<String> = sandbox
            .git_or_nothing("r", &["merge-base", "--all", &pair[0], &pair[1]])
            .lines()
            .map(str::to_owned)
            .collect();
        expected.sort();
        let mut actual: Vec<String> = bases.iter().map(ToString::to_string).collect();
        actual.sort();
        assert_eq!(actual, expected, "{pair:?}, clocks {clocks:?}");
        // Not `A...B`, which stops early if clocks are wrong.
        let only = |a: &str, b: &str| {
            let both = sandbox.git("r", &["rev-list", "--topo-order", a]);
            let other = sandbox.git("r", &["rev-list", "--topo-order", b]);
            let other: std::collections::HashSet<&str> = other.lines().collect();
            both.lines().filter(|line| !other.contains(line)).count()
        };
        let exact = (only(&pair[0], &pair[1]), only(&pair[1], &pair[0]));
        assert_eq!(*counts, exact, "{pair:?}, clocks {clocks:?}");
    }
}

#[test]
fn walks_find_the_same_with_and_without_a_graph() {
    const COUNT: u64 = 150;
    for clocks in [Clocks::Right, Clocks::Drifting, Clocks::Wrong] {
        let sandbox = Sandbox::new();
        history(&sandbox, COUNT, clocks);
        assert!(!has_graph(&sandbox));
        let without = walk(&sandbox, COUNT);
        sandbox.git("r", &["commit-graph", "write", "--reachable"]);
        assert!(has_graph(&sandbox));
        let with = walk(&sandbox, COUNT);
        check(&sandbox, &with, clocks);
        assert_eq!(with, without, "clocks {clocks:?}");
        sandbox.git(
            "r",
            &[
                "-c",
                "commitGraph.generationVersion=1",
                "commit-graph",
                "write",
                "--reachable",
            ],
        );
        assert_eq!(with, walk(&sandbox, COUNT), "levels, clocks {clocks:?}");
        // A graph of a part of the history. The rest is read from objects.
        std::fs::remove_file(sandbox.root.join("r/.git/objects/info/commit-graph"))
            .expect("git wrote it");
        let part = "for n in 20 41 77; do git rev-parse t$n; done | git commit-graph write \
                    --stdin-commits --split=no-merge";
        let done = Command::new("sh")
            .args(["-c", part])
            .current_dir(sandbox.root.join("r"))
            .status()
            .expect("sh starts");
        assert!(done.success() && has_graph(&sandbox));
        assert_eq!(with, walk(&sandbox, COUNT), "a part, clocks {clocks:?}");
    }
}

#[test]
fn ancestors_are_named_by_a_graph_as_by_objects() {
    let sandbox = Sandbox::new();
    history(&sandbox, 150, Clocks::Drifting);
    let names = [
        "t149~1",
        "t149~20",
        "t149~1000",
        "t149^2",
        "t145^2",
        "t145^3",
        "t120^1~4^0",
        "t0~1",
        "t0^1",
    ];
    let expected: Vec<Option<ObjectId>> = names
        .iter()
        .map(|name| {
            let hex = sandbox.git_or_nothing("r", &["rev-parse", "-q", "--verify", name]);
            ObjectId::from_hex(hex.as_bytes()).ok()
        })
        .collect();
    let found = || -> Vec<Option<ObjectId>> {
        let repository = sandbox.open("r");
        let resolve =
            |name: &&str| repository.try_resolve(name, pronto::revision::ExpectedType::Anything);
        names
            .iter()
            .map(|name| resolve(name).expect("resolved"))
            .collect()
    };
    assert!(expected.iter().flatten().count() > 2);
    assert_eq!(found(), expected);
    sandbox.git("r", &["commit-graph", "write", "--reachable"]);
    assert!(has_graph(&sandbox));
    assert_eq!(found(), expected);
}

#[test]
fn a_graph_does_not_count_where_history_is_not_as_written() {
    let sandbox = Sandbox::new();
    history(&sandbox, 20, Clocks::Right);
    sandbox.git("r", &["commit-graph", "write", "--reachable"]);
    let git_dir = sandbox.root.join("r/.git");
    assert!(has_graph(&sandbox));
    sandbox.git("r", &["config", "core.commitGraph", "false"]);
    assert!(!has_graph(&sandbox));
    sandbox.git("r", &["config", "core.commitGraph", "true"]);
    let tip = sandbox.git("r", &["rev-parse", "t19"]);
    std::fs::write(git_dir.join("shallow"), format!("{tip}\n")).expect("written");
    assert!(!has_graph(&sandbox));
    std::fs::remove_file(git_dir.join("shallow")).expect("it is there");
    std::fs::write(git_dir.join("info/grafts"), format!("{tip}\n")).expect("written");
    assert!(!has_graph(&sandbox));
    std::fs::remove_file(git_dir.join("info/grafts")).expect("it is there");
    sandbox.git("r", &["replace", "t3", "t2"]);
    assert!(!has_graph(&sandbox));
    sandbox.git("r", &["replace", "-d", "t3"]);
    assert!(has_graph(&sandbox));
    let graph = git_dir.join("objects/info/commit-graph");
    // It is read-only.
    std::fs::remove_file(&graph).expect("it is there");
    std::fs::write(&graph, "no graph").expect("written");
    let (repository, notices) = sandbox.open_noticing("r");
    assert!(repository.commit_graph().expect("looked for").is_none());
    let notices = notices.take_of(Severity::Error);
    assert!(
        matches!(notices.as_slice(), [Notice::CommitGraph(Remark::TooSmall)]),
        "{notices:?}"
    );
}
