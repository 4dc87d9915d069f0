//! Sync of real repositories. The result equals that of fetches in both directions.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{process, pronto_path, stderr, stdout, write_program};

/// Two repositories, `one` and `other`, with some shared history.
pub(super) struct Pair {
    folder: tempfile::TempDir,
}

impl Pair {
    pub(super) fn empty(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pair = Pair { folder };
        for name in ["one", "other"] {
            let format = format!("--object-format={format}");
            pair.git(".", &["init", "-q", "-b", "main", &format, name]);
        }
        pair
    }

    pub(super) fn new() -> Self {
        let pair = Pair::empty("sha1");
        pair.commit("one", "base", "base\n");
        pair.git("one", &["tag", "-m", "tagged", "v1"]);
        pair.git("other", &["pull", "-q", "../one", "main"]);
        pair
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn run(&self, program: &Path, place: &str, arguments: &[&str]) -> Output {
        process(program)
            .args(arguments)
            .current_dir(self.path(place))
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .env("GIT_SSH_COMMAND", self.path("ssh"))
            .output()
            .expect("it can be started")
    }

    pub(super) fn git(&self, place: &str, arguments: &[&str]) -> String {
        let output = self.run(Path::new("git"), place, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    pub(super) fn commit(&self, place: &str, file: &str, content: &str) {
        let path = self.path(place).join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
        self.git(place, &["add", "."]);
        self.git(place, &["commit", "-q", "-m", file]);
    }

    pub(super) fn sync(&self, arguments: &[&str]) -> Output {
        let arguments = [&["sync"], arguments].concat();
        self.run(pronto_path(), "one", &arguments)
    }

    pub(super) fn synced(&self, arguments: &[&str]) -> String {
        let output = self.sync(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        stdout(&output)
    }

    /// Asserts that both are sound, that no temporary file is left, and that each has the refs of a
    /// fetch.
    pub(super) fn check(&self) {
        for (here, there) in [("one", "other"), ("other", "one")] {
            assert_eq!(
                self.git(here, &["fsck", "--full", "--strict", "--no-dangling"]),
                ""
            );
            let url = format!("../{there}");
            let branches = format!("+refs/heads/*:refs/fetched/{there}/*");
            self.git(here, &["fetch", "-q", "--no-tags", &url, &branches]);
            let list = |prefix: &str| {
                let format = "--format=%(objectname) %(refname:lstrip=3)";
                self.git(here, &["for-each-ref", format, prefix])
            };
            let ours = list(&format!("refs/remotes/{there}/"));
            let ours: Vec<&str> = ours
                .lines()
                .filter(|line| !line.contains(" tags/"))
                .collect();
            let fetched = list(&format!("refs/fetched/{there}/"));
            assert_eq!(ours, fetched.lines().collect::<Vec<_>>());
            self.git(
                here,
                &["for-each-ref", "--format=delete %(refname)", "refs/fetched"],
            );
            let kept = self.path(here).join(".git/objects/netsync");
            let left = std::fs::read_dir(kept).into_iter().flatten().flatten();
            let left = left.flat_map(|peer| std::fs::read_dir(peer.path()).into_iter().flatten());
            let left: Vec<_> = left.flatten().map(|file| file.file_name()).collect();
            assert!(
                left.iter().all(|name| name == "lock" || name == "peer"),
                "{left:?}"
            );
            for name in std::fs::read_dir(self.path(here).join(".git/objects")).expect("a folder") {
                let name = name.expect("a name").file_name();
                assert!(!name.to_string_lossy().starts_with("tmp_"), "{name:?}");
            }
        }
    }
}

#[test]
fn diverged_histories_are_exchanged() {
    let pair = Pair::new();
    pair.commit("one", "a/deep/file", "one\n");
    pair.commit("other", "b/file", "other\n");
    pair.git("other", &["checkout", "-q", "-b", "topic"]);
    pair.commit("other", "b/other", "topic\n");
    pair.git("other", &["mv", "b", "c"]);
    pair.commit("other", "moved", "x\n");
    assert_eq!(
        pair.synced(&["../other"]),
        "From other\n\
         \x20* new      main -> other/main\n\
         \x20* new      topic -> other/topic\n\
         To other\n\
         \x20* new      main -> one/main\n\
         \x20* new      tags/v1 -> one/tags/v1\n\
         main and other/main have diverged\n"
    );
    pair.check();
    assert_eq!(
        pair.synced(&["../other"]),
        "Already up to date.\nmain and other/main have diverged\n"
    );
    // A merge on one side is a fast-forward on the other side. The checked out branch does not
    // change.
    pair.git("one", &["merge", "-q", "-m", "both", "other/main"]);
    pair.commit("one", "after", "merge\n");
    let reported = pair.synced(&["../other"]);
    assert_eq!(
        reported,
        "To other\n\x20  forward  main -> one/main\nmain is ahead of other/main\n"
    );
    pair.check();
    // Rewritten history is taken over, but only in the tracking refs of the peer.
    pair.git("other", &["reset", "-q", "--hard", "HEAD~1"]);
    pair.commit("other", "again", "y\n");
    assert!(
        pair.synced(&["../other"])
            .contains("+ forced   topic -> other/topic")
    );
    pair.check();
}

#[test]
fn empty_and_sha256_repositories_are_synced() {
    for format in ["sha1", "sha256"] {
        let pair = Pair::empty(format);
        for at in 0..30 {
            pair.commit("other", &format!("d{}/f{at}", at % 3), &"line\n".repeat(at));
        }
        pair.synced(&["../other"]);
        pair.check();
        pair.git("one", &["checkout", "-q", "-b", "main", "other/main"]);
        pair.commit("one", "own", "own\n");
        pair.synced(&["../other"]);
        pair.check();
    }
}

#[test]
fn branches_move_only_on_request_and_not_if_checked_out() {
    let pair = Pair::new();
    pair.git("one", &["branch", "side"]);
    pair.git("other", &["checkout", "-q", "-b", "side"]);
    pair.commit("other", "new", "new\n");
    pair.git("other", &["branch", "-f", "main", "side"]);
    let before = pair.git("one", &["rev-parse", "side"]);
    assert!(
        pair.synced(&["../other"])
            .ends_with("main is behind other/main\nside is behind other/side\n")
    );
    assert_eq!(pair.git("one", &["rev-parse", "side"]), before);
    let reported = pair.synced(&["--ff", "../other"]);
    assert!(
        reported.starts_with(
            "main is behind other/main, and checked out\nside was moved forward to other/side\n"
        ),
        "{reported}"
    );
    assert_eq!(
        pair.git("one", &["rev-parse", "side"]),
        pair.git("other", &["rev-parse", "side"])
    );
    assert_eq!(pair.git("one", &["rev-parse", "main"]), before);
    assert_eq!(pair.git("one", &["status", "--porcelain"]), "");
    // The other side receives it with the next sync.
    assert!(
        pair.synced(&["../other"])
            .contains("  forward  side -> one/side\n")
    );
    pair.check();
}

#[test]
fn a_dry_run_reports_and_globs_select() {
    let pair = Pair::new();
    pair.commit("one", "mine", "mine\n");
    pair.git("other", &["branch", "secret"]);
    pair.commit("other", "theirs", "theirs\n");
    let before = pair.git("one", &["for-each-ref"]);
    let reported = pair.synced(&["-n", "../other", "--exclude", "secret"]);
    assert!(
        reported.starts_with("Would receive 1 commit, 3 objects of "),
        "{reported}"
    );
    assert!(
        reported.contains(" bytes:\n main\nWould send "),
        "{reported}"
    );
    assert_eq!(pair.git("one", &["for-each-ref"]), before);
    let reported = pair.synced(&["../other", "--pull", "--include", "m*", "--json"]);
    assert!(
        reported.contains(",\"peer\":\"other\",\"as\":\"one\",\"dry_run\":false,"),
        "{reported}"
    );
    let remotes = |place: &str| {
        pair.git(
            place,
            &["for-each-ref", "--format=%(refname)", "refs/remotes"],
        )
    };
    assert_eq!(remotes("one"), "refs/remotes/other/main\n");
    assert_eq!(remotes("other"), "");
}

#[test]
fn impossible_syncs_are_refused_with_a_hint() {
    let pair = Pair::new();
    let fails = |arguments: &[&str], parts: &[&str]| {
        let output = pair.sync(arguments);
        assert_eq!(output.status.code(), Some(128));
        for part in parts {
            assert!(stderr(&output).contains(part), "{}", stderr(&output));
        }
    };
    fails(
        &["../nowhere"],
        &["does not appear to be a git repository", "hint: check that"],
    );
    fails(&["https://example.com/x"], &["invalid peer address"]);
    fails(&["../other", "--name", "a/b"], &["invalid peer name 'a/b'"]);
    // Strangers.
    pair.git(".", &["init", "-q", "-b", "main", "stranger"]);
    pair.commit("stranger", "x", "x\n");
    fails(
        &["../stranger"],
        &["no common commit", "hint: use --allow-unrelated"],
    );
    pair.synced(&["../stranger", "--allow-unrelated"]);
    pair.git("one", &["rev-parse", "stranger/main"]);
    // Shallow repositories, and other object formats.
    let url = format!("file://{}", pair.path("one").display());
    pair.commit("one", "second", "second\n");
    pair.git(".", &["clone", "-q", "--depth=1", &url, "cut"]);
    fails(&["../cut"], &["cannot sync a shallow repository"]);
    pair.git(".", &["init", "-q", "--object-format=sha256", "long"]);
    fails(&["../long"], &["different object formats: sha256 and sha1"]);
}

impl Pair {
    /// A replacement for ssh, whose output goes through `filter`.
    fn write_ssh(&self, filter: &str) {
        let script = format!("#!/bin/sh\ntest \"$1\" = laptop || exit 9\nsh -c \"$2\" {filter}\n");
        let path = self.path("ssh");
        write_program(&path, &script);
    }

    fn over_ssh(&self, arguments: &[&str]) -> Output {
        let url = format!("ssh://laptop{}", self.path("other").display());
        let pronto = pronto_path().display().to_string();
        let options = [&url, "--as", "desk", "--remote-program", &pronto];
        self.sync(&[&options, arguments].concat())
    }
}

#[test]
fn a_peer_behind_ssh_is_reached() {
    let pair = Pair::new();
    pair.commit("other", "it's", "quoted\n");
    pair.write_ssh("");
    let reported = pair.over_ssh(&[]);
    assert!(
        stdout(&reported).contains("* new      main -> laptop/main"),
        "{}",
        stderr(&reported)
    );
    assert_eq!(
        pair.git("other", &["rev-parse", "refs/remotes/desk/main"]),
        pair.git("one", &["rev-parse", "main"])
    );
}

#[test]
fn an_interrupted_sync_resumes() {
    let pair = Pair::new();
    let mut noise = 1u64;
    let mut bytes = Vec::new();
    while bytes.len() < 12 << 20 {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bytes.extend_from_slice(&noise.to_be_bytes());
    }
    std::fs::write(pair.path("other").join("large"), &bytes).expect("a file");
    for at in 0..6 {
        let part = &bytes[at << 20..(at + 3) << 20];
        std::fs::write(pair.path("other").join(format!("part{at}")), part).expect("a file");
    }
    pair.commit("other", "small", "small\n");
    let before = pair.git("one", &["for-each-ref"]);
    pair.write_ssh("| stdbuf -o0 head -c 14000000");
    let cut = pair.over_ssh(&[]);
    assert_eq!(cut.status.code(), Some(128));
    assert!(
        stderr(&cut).contains("the received objects have been kept"),
        "{}",
        stderr(&cut)
    );
    assert_eq!(pair.git("one", &["for-each-ref"]), before);
    let kept = pair
        .path("one")
        .join(".git/objects/netsync/laptop/objects/pack");
    let packs = std::fs::read_dir(kept).expect("it is kept").flatten();
    let packs = packs.filter(|file| file.path().extension().is_some_and(|end| end == "pack"));
    assert_eq!(packs.count(), 1);
    assert_eq!(pair.git("one", &["fsck", "--full", "--strict"]), "");
    // The history has 30 MiB, of which 12 MiB were received.
    pair.write_ssh("");
    let reported = stdout(&pair.over_ssh(&["--json", "--name", "laptop"]));
    let (_, after) = reported
        .split_once("\"received_bytes\":")
        .expect("it is told");
    let (count, _) = after.split_once(',').expect("a number ends");
    let count: u64 = count.parse().expect("a number");
    assert!((10 << 20..19 << 20).contains(&count), "{reported}");
    pair.git("one", &["fsck", "--full", "--strict"]);
    assert_eq!(
        pair.git("one", &["rev-parse", "laptop/main^{tree}"]),
        pair.git("other", &["rev-parse", "main^{tree}"])
    );
}

#[test]
fn repositories_of_other_users_are_not_served() {
    let pair = Pair::new();
    let serve = |variables: &[(&str, &str)], place: &str| {
        process(pronto_path())
            .args(["serve", "--netsync", "--stdio", "--peer", "p", place])
            .current_dir(pair.path("."))
            .envs(variables.iter().copied())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("it can be started")
    };
    for place in ["other", "other/.git"] {
        let output = serve(&[("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")], place);
        assert_eq!(output.status.code(), Some(128));
        let said = stderr(&output);
        assert!(said.contains("detected dubious ownership"), "{said}");
        assert!(!stderr(&serve(&[], place)).contains("dubious"));
    }
    // The named directory itself, not a repository around it.
    std::fs::create_dir(pair.path("other/inner")).expect("a folder");
    let said = stderr(&serve(&[], "other/inner"));
    assert!(
        said.contains("does not appear to be a git repository"),
        "{said}"
    );
}

#[test]
fn two_peers_do_not_share_a_name() {
    let pair = Pair::new();
    pair.git(".", &["clone", "-q", "other", "third"]);
    pair.commit("third", "third", "third\n");
    pair.synced(&["../other", "--name", "friend"]);
    // The same one through another path, and another one.
    let real = pair.path("other").join(".git").display().to_string();
    pair.synced(&[&real, "--name", "friend"]);
    let output = pair.sync(&["../third", "--name", "friend"]);
    assert_eq!(output.status.code(), Some(128));
    let said = stderr(&output);
    assert!(
        said.contains("the peer name 'friend' already belongs to another repository"),
        "{said}"
    );
    assert!(said.contains("pronto netsync forget friend"), "{said}");
    // The other side has the same rule.
    let output = pair.run(pronto_path(), "third", &["sync", "../other", "--as", "one"]);
    assert_eq!(output.status.code(), Some(128), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(
        said.contains("the peer reports: the peer name 'one' already belongs"),
        "{said}"
    );
    let forgotten = pair.run(pronto_path(), "one", &["netsync", "forget", "friend"]);
    assert!(forgotten.status.success(), "{}", stderr(&forgotten));
    let reported = pair.synced(&["../third", "--name", "friend"]);
    assert!(
        reported.contains("  forward  main -> friend/main"),
        "{reported}"
    );
    pair.git("one", &["fsck", "--full", "--strict"]);
}

#[test]
fn replace_refs_do_not_affect_a_sync() {
    let pair = Pair::new();
    pair.commit("one", "second", "second\n");
    pair.git("one", &["checkout", "-q", "-b", "away"]);
    pair.git("other", &["pull", "-q", "../one", "main"]);
    pair.git("other", &["checkout", "-q", "--orphan", "strange"]);
    pair.commit("other", "strange", "strange\n");
    pair.git("other", &["branch", "-f", "main", "strange"]);
    pair.git("one", &["fetch", "-q", "../other", "main:kept"]);
    // With this refspec the branch of the peer would seem to be ahead.
    let theirs = pair.git("one", &["rev-parse", "kept"]);
    let ours = pair.git("one", &["rev-parse", "main"]);
    pair.git("one", &["replace", "--graft", theirs.trim(), ours.trim()]);
    let reported = pair.synced(&["--ff", "../other", "--allow-unrelated"]);
    assert!(
        reported.contains("main and other/main have diverged"),
        "{reported}"
    );
    assert_eq!(pair.git("one", &["rev-parse", "main"]), ours);
    pair.git("one", &["replace", "-d", theirs.trim()]);
    pair.git("other", &["fsck", "--full", "--strict"]);
}

/// Fetched commits are kept, merged or not.
#[test]
fn a_second_pull_gets_new_commits() {
    let pair = Pair::new();
    let received = || {
        let reported = pair.synced(&["--json", "--pull", "../other"]);
        let (_, after) = reported
            .split_once("\"received_bytes\":")
            .expect("it is told");
        let (count, _) = after.split_once(',').expect("a number ends");
        count.parse::<usize>().expect("a number")
    };
    let mut number = 1_u64;
    let mut line = |_| {
        number = number.wrapping_mul(6_364_136_223_846_793_005) ^ 0x2545_F491;
        format!("{number:016x}\n")
    };
    let large: String = (0..20_000).map(&mut line).collect();
    pair.commit("other", "large", &large);
    let first = received();
    assert!(first > 100_000, "{first} bytes of what does not deflate");
    pair.commit("other", "small", "one line\n");
    let second = received();
    assert!(second < 4_000, "{second} bytes for one line");
    // Also for a rewritten branch.
    pair.git(
        "other",
        &["commit", "-q", "--amend", "-m", "another message"],
    );
    let third = received();
    assert!(third < 4_000, "{third} bytes for a message");
    let fourth = received();
    assert!(fourth < 1_000, "{fourth} bytes for nothing");
    let (ours, theirs) = ("other/main", "main");
    assert_eq!(
        pair.git("one", &["rev-parse", ours]),
        pair.git("other", &["rev-parse", theirs])
    );
    pair.git("one", &["fsck", "--full", "--strict"]);
}

/// Stored deltas are sent as deltas, even if the base is only on the receiving side.
#[test]
fn a_sync_transfers_no_more_than_a_thin_pack() {
    let pair = Pair::new();
    let line = |at: usize| format!("line {} of many\n", at * at * 7919 % 1_000_003);
    let text: String = (0..4000).map(line).collect();
    for at in 0..8 {
        let changed = text.replace(&line(at * 13), &format!("changed {at}\n"));
        pair.commit("other", &format!("folder/file{at}"), &changed);
    }
    pair.git("other", &["gc", "-q"]);
    let base = pair.git("other", &["rev-parse", "main"]);
    for copy in ["copy1", "copy2"] {
        pair.git(".", &["clone", "-q", "--bare", "--no-local", "other", copy]);
    }
    for at in 0..20 {
        let changed = text.replace(&line(at * 31), &format!("again {at}\n"));
        pair.commit("other", &format!("folder/file{}", at % 8), &changed);
    }
    for copy in ["copy1", "copy2"] {
        if copy == "copy2" {
            pair.git("other", &["gc", "-q"]);
        }
        let arguments = ["sync", "../other", "--json", "--pull"];
        let reported = pair.run(pronto_path(), copy, &arguments);
        assert!(reported.status.success(), "{}", stderr(&reported));
        let reported = stdout(&reported);
        let (_, after) = reported
            .split_once("\"received_bytes\":")
            .expect("it is told");
        let (count, _) = after.split_once(',').expect("a number ends");
        let count: usize = count.parse().expect("a number");
        let revisions = pair.path("revisions");
        std::fs::write(&revisions, format!("main\n^{base}")).expect("a file");
        let script = "git pack-objects --revs --thin --stdout --delta-base-offset -q <../revisions";
        let thin = process("sh")
            .args(["-c", script])
            .current_dir(pair.path("other"))
            .output()
            .expect("it runs");
        let thin = thin.stdout.len();
        assert!(
            count <= thin + thin / 20 + 64,
            "{count} where git sends {thin}"
        );
        pair.git(copy, &["fsck", "--full", "--strict"]);
    }
}
