//! Negotiations before a push and without a fetch (`push.negotiate`, `--negotiate-only`), between
//! stock git and pronto.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::servers::Daemon;
use crate::support::{process, pronto_path, stderr, stdout};

/// A repository with a long history, and one that has most of it below a ref that pushes do not see.
struct Scene {
    folder: tempfile::TempDir,
    /// The number of commits that have the same date.
    per_second: usize,
}

impl Scene {
    fn new() -> Self {
        Scene::with_dates(1)
    }

    fn with_dates(per_second: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Maintenance in the background would remove the files that a clone links.
        let settings = "[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n";
        std::fs::write(folder.path().join(".gitconfig"), settings).expect("a file");
        let scene = Scene { folder, per_second };
        scene.git(".", &["init", "-q", "-b", "main", "source"]);
        for number in 0..60 {
            scene.commit(number);
        }
        scene.git(".", &["clone", "-q", "--bare", "source", "target.git"]);
        let set = |key: &str, value: &str| scene.git("target.git", &["config", key, value]);
        set("receive.hideRefs", "refs/heads/main");
        set("receive.unpackLimit", "1");
        set("daemon.receivePack", "true");
        for number in 60..63 {
            scene.commit(number);
        }
        scene
    }

    fn commit(&self, number: usize) {
        let file = self.folder.path().join("source").join("file");
        std::fs::write(file, format!("{number}\n").repeat(50)).expect("a file");
        self.git("source", &["add", "."]);
        let date = format!("{} +0000", 1_700_000_000 + number / self.per_second);
        let mut command = self.command("git", "source");
        command.args(["commit", "-q", "-m", &number.to_string()]);
        let dates = [("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)];
        let output = command.envs(dates).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
    }

    fn command(&self, program: &str, directory: &str) -> Command {
        let program: PathBuf = match program {
            "pronto" => pronto_path().to_owned(),
            _ => program.into(),
        };
        let mut command = process(program);
        command
            .current_dir(self.folder.path().join(directory))
            .env("HOME", self.folder.path())
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")]);
        command
    }

    fn run(&self, program: &str, directory: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(program, directory);
        command.args(arguments).output().expect("it starts")
    }

    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.run("git", directory, arguments);
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        stdout(&output)
    }

    /// Returns the indexes of packs in a bare repository.
    fn indexes(&self, repository: &str) -> BTreeSet<PathBuf> {
        let packs = self.folder.path().join(repository).join("objects/pack");
        let entries = std::fs::read_dir(packs).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "idx"))
            .collect()
    }

    /// Returns the number of objects in the only pack that a bare repository has received since it had the
    /// indexes `before`.
    fn received(&self, repository: &str, before: &BTreeSet<PathBuf>) -> usize {
        let now = self.indexes(repository);
        let new: Vec<&PathBuf> = now.difference(before).collect();
        let [path] = new[..] else {
            panic!("{repository} has received {new:?}, not one pack");
        };
        let path = path.to_str().expect("a name in ASCII");
        let listed = self.git(repository, &["verify-pack", "-v", path]);
        let kinds = listed.lines().filter_map(|line| line.split(' ').nth(1));
        kinds
            .filter(|kind| ["commit", "tree", "blob"].contains(kind))
            .count()
    }
}

#[test]
fn a_push_sends_only_what_is_new() {
    let scene = Scene::new();
    let daemon = Daemon::start(scene.folder.path());
    let url = daemon.url("target.git");
    for (place, name) in [("../target.git", "one"), (&url, "two")] {
        let refspec = format!("main:{name}");
        let push = ["-c", "push.negotiate=true", "push", place, &refspec];
        let before = scene.indexes("target.git");
        let output = scene.run("pronto", "source", &push);
        let said = stderr(&output);
        assert!(
            output.status.success() && !said.contains("negotiation"),
            "{said}"
        );
        // Three commits with a tree and a file each.
        assert_eq!(scene.received("target.git", &before), 9, "{place}");
        scene.git("target.git", &["fsck", "--strict"]);
        scene.git(
            "target.git",
            &["update-ref", "-d", &format!("refs/heads/{name}")],
        );
        scene.git(
            "target.git",
            &["-c", "gc.cruftPacks=false", "gc", "-q", "--prune=now"],
        );
    }
}

#[test]
fn a_push_goes_on_without_a_negotiation() {
    let scene = Scene::new();
    for (setting, reason) in [
        (
            "protocol.version=0",
            "--negotiate-only requires protocol v2",
        ),
        ("protocol.version=2", ""),
    ] {
        let name = format!("main:{}", reason.len());
        let push = [
            "-c",
            setting,
            "-c",
            "push.negotiate",
            "push",
            "../target.git",
            &name,
        ];
        let output = scene.run("pronto", "source", &push);
        let said = stderr(&output);
        assert!(output.status.success() && said.contains(reason), "{said}");
        let failed = "warning: push negotiation failed; proceeding anyway with push\n";
        assert_eq!(said.contains(failed), !reason.is_empty(), "{said}");
    }
    // A deletion has nothing to negotiate about.
    let push = ["-c", "push.negotiate", "push", "../target.git", ":0"];
    let output = scene.run("pronto", "source", &push);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn the_common_commits_are_those_of_git() {
    // Servers of older releases acknowledge ancestors of common commits, too.
    let Some(reference) = test_support::git::reference() else {
        test_support::report_missing_reference(&"git 2.55 is missing");
        return;
    };
    let reference = reference.to_str().expect("a name in UTF-8");
    // The order of equally old commits decides which ones are common when the walk ends.
    for per_second in [1, 2, 3, 5, 1000] {
        compare_common(reference, per_second);
    }
}

/// Compares what pronto and `reference` find to be common in histories of which so many commits have the same date.
fn compare_common(reference: &str, per_second: usize) {
    let scene = Scene::with_dates(per_second);
    scene.git("source", &["checkout", "-q", "-b", "side", "HEAD~20"]);
    scene.commit(100);
    scene.git("source", &["branch", "old", "HEAD~30"]);
    for tips in [
        &["main"][..],
        &["side"],
        &["old"],
        &["main", "old"],
        &["refs/heads/*"],
        &["main~2", "side~1"],
        &["nothing*", "main"],
    ] {
        let mut arguments = vec!["-c", "protocol.version=2", "fetch", "--negotiate-only"];
        let options: Vec<String> = tips
            .iter()
            .map(|tip| format!("--negotiation-tip={tip}"))
            .collect();
        arguments.extend(options.iter().map(String::as_str));
        let serve = format!("--upload-pack='{reference}' upload-pack");
        arguments.extend([&*serve, "../target.git"]);
        let run = |program: &str| {
            let output = scene.run(program, "source", &arguments);
            let text = stdout(&output);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            (output.status.code(), lines)
        };
        let (ours, theirs) = (run("pronto"), run(reference));
        assert_eq!(
            ours, theirs,
            "{tips:?}, {per_second} commits for each second"
        );
        assert!(!ours.1.is_empty());
    }
    for arguments in [
        &["fetch", "--negotiate-only", "../target.git"][..],
        &[
            "-c",
            "protocol.version=0",
            "fetch",
            "--negotiate-only",
            "--negotiation-tip=main",
            "../target.git",
        ],
    ] {
        let code = |program: &str| scene.run(program, "source", arguments).status.code();
        assert_eq!(code("pronto"), code(reference), "{arguments:?}");
    }
}

#[test]
fn nothing_in_common_is_an_answer() {
    let Some(reference) = test_support::git::reference() else {
        test_support::report_missing_reference(&"git 2.55 is missing");
        return;
    };
    let scene = Scene::new();
    scene.git("source", &["checkout", "-q", "--orphan", "other"]);
    scene.commit(200);
    let server = format!("--upload-pack='{}' upload-pack", reference.display());
    for (tips, expected) in [(&["other"][..], 0), (&["other", "main"], 1)] {
        let mut arguments = vec!["-c", "protocol.version=2", "fetch", "--negotiate-only"];
        let options = tips.iter().map(|tip| format!("--negotiation-tip={tip}"));
        let options: Vec<String> = options.collect();
        arguments.extend(options.iter().map(String::as_str));
        arguments.extend([&*server, "../target.git"]);
        let output = scene.run("pronto", "source", &arguments);
        assert!(output.status.success(), "{tips:?}: {}", stderr(&output));
        assert_eq!(stdout(&output).lines().count(), expected, "{tips:?}");
    }
    let push = ["-c", "push.negotiate", "push", "../target.git", "other"];
    let output = scene.run("pronto", "source", &push);
    let said = stderr(&output);
    assert!(
        output.status.success() && !said.contains("warning"),
        "{said}"
    );
}

#[test]
fn a_fetch_offers_only_the_chosen_history() {
    let scene = Scene::new();
    scene.git("source", &["branch", "base", "main~30"]);
    scene.git("source", &["branch", "more", "main~5"]);
    scene.git(".", &["init", "-q", "-b", "main", "reader"]);
    let both = ["fetch", "-q", "../source", "base:base", "more:more"];
    scene.git("reader", &both);
    // A ref that both sides have is offered whatever was chosen.
    scene.git("source", &["branch", "-D", "base", "more"]);
    // The objects that the source sends: a commit, a tree and a file for each commit that it does not know to be
    // there.
    for (algorithm, chosen, all) in [
        ("default", 3 * 30, 3 * 5),
        ("consecutive", 3 * 30, 3 * 5),
        ("skipping", 3 * 30, 3 * 5),
        ("noop", 3 * 63, 3 * 63),
    ] {
        for (tip, expected) in [(Some("--negotiation-tip=base"), chosen), (None, all)] {
            for program in ["git", "pronto"] {
                let kind = if tip.is_some() { "chosen" } else { "all" };
                let copy = format!("{program}-{algorithm}-{kind}");
                scene.git(".", &["clone", "-q", "--bare", "reader", &copy]);
                let before = scene.indexes(&copy);
                let mut command = scene.command(program, &copy);
                let algorithm = format!("fetch.negotiationAlgorithm={algorithm}");
                command.args(["-c", "fetch.unpackLimit=1", "-c", &algorithm]);
                // Maintenance in the background would replace the pack.
                command.args(["-c", "maintenance.auto=false"]);
                command.args(["fetch", "-q"]).args(tip);
                command.args(["../source", "main:main2"]);
                let output = command.output().expect("it starts");
                assert!(output.status.success(), "{copy}: {}", stderr(&output));
                assert_eq!(scene.received(&copy, &before), expected, "{copy}");
            }
        }
    }
}
