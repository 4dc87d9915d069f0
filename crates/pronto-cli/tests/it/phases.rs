//! The phases of progress on a terminal: their order is git's, and each is finished and shown once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::git::reference;
use test_support::{report_missing_reference, skip};

use crate::support::{git, process, pronto_path};

/// The program that runs another one on a terminal.
const SCRIPT: &str = "/usr/bin/script";

/// Phases that pronto does not have, because the work is done within another phase or not at all.
const NOT_OF_PRONTO: &[&str] = &[
    "Checking objects",
    "Clearing commit marks in commit graph",
    "Computing commit graph topological levels",
    "Delta compression using up to",
    "Loading known commits in commit graph",
    "remote: Checking connectivity",
];

/// Phases that pronto only has if there is work: git also counts objects that it copies.
const WITH_WORK: &[&str] = &["Compressing objects", "remote: Compressing objects"];

/// A line at the end of a pack. The server sends it beside the last progress of the client.
const TOTAL_OF_SERVER: &str = "remote: Total";

/// A directory with the repository `source`, which has files, a history, and deltas.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Option<Self> {
        if !Path::new(SCRIPT).exists() {
            skip!("there is no script");
        }
        let stage = Stage(tempfile::tempdir().expect("a directory"));
        let source = stage.path("source");
        fs::create_dir(&source).expect("a directory");
        git(&source, &["init", "-q", "-b", "main"]);
        for round in 0..3 {
            for number in 0..200 {
                let text = format!("{}{number} {round}\n", "a line\n".repeat(40));
                fs::write(source.join(format!("f{number}")), text).expect("a file");
            }
            git(&source, &["add", "-A"]);
            git(&source, &["commit", "-q", "-m", "round"]);
        }
        git(&source, &["repack", "-q", "-a", "-d", "-f"]);
        git(&source, &["config", "gc.auto", "0"]);
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `program` on a terminal in the copy `work` of the source. Returns the text on the terminal.
    fn shown(&self, program: &Path, call: &Call) -> String {
        let _ = fs::remove_dir_all(self.path("area"));
        let area = self.path("area");
        fs::create_dir(&area).expect("a directory");
        let copied = process("cp")
            .args(["-r", "../source", "work"])
            .current_dir(&area)
            .status();
        assert!(copied.expect("cp starts").success());
        let work = area.join("work");
        for preparation in call.before {
            let words: Vec<&str> = preparation.split(' ').collect();
            git(&work, &words);
        }
        let line = format!("'{}' {}", program.display(), call.line);
        let mut command: Command = process(Path::new(SCRIPT));
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(&work)
            .env("HOME", self.0.path())
            .env("TERM", "xterm")
            .env("GIT_PROGRESS_DELAY", "0");
        if program == pronto_path() {
            command.env("PRONTO_NO_FALLBACK", "1");
        }
        let output = command
            .stdin(std::process::Stdio::null())
            .output()
            .expect("it starts");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}: {shown}");
        shown
    }
}

struct Call {
    /// Calls of git in the copy before the measured call.
    before: &'static [&'static str],
    line: &'static str,
    /// Phases of git that this call of pronto lacks.
    lacks: &'static [&'static str],
}

const fn call(before: &'static [&'static str], line: &'static str) -> Call {
    Call {
        before,
        line,
        lacks: &[],
    }
}

const CALLS: &[Call] = &[
    call(&[], "clone --no-local ../../source ../new"),
    call(&[], "clone --bare file://$PWD/../../source ../new"),
    call(&[], "clone ../../source ../new"),
    call(
        &[
            "init -q ../other",
            "-C ../other remote add origin ../../source",
        ],
        "-C ../other fetch origin",
    ),
    call(
        &["clone -q --depth 1 --no-local ../../source ../other"],
        "-C ../other fetch --unshallow",
    ),
    call(&["init -q --bare ../other"], "push ../other main"),
    call(&["read-tree --empty"], "checkout -f main"),
    call(&["read-tree --empty"], "reset --hard"),
    call(&[], "repack -a -d"),
    call(&[], "repack -a -d -f"),
    call(&[], "index-pack -v .git/objects/pack/*.pack -o ../new.idx"),
    call(&[], "commit-graph write --reachable --progress"),
    call(&[], "multi-pack-index write"),
    call(&[], "bundle create ../new --all"),
    call(&[], "prune-packed"),
    call(&[], "gc"),
];

/// Returns the titles in the text of a terminal, each where it first occurs, and checks that pronto
/// finishes each meter once.
fn titles(text: &str, is_pronto: bool) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    let mut finished: Vec<String> = Vec::new();
    for part in text.replace("\x1b[K", "").split(['\r', '\n']) {
        let part = part.trim();
        let Some((title, rest)) = part.rsplit_once(": ").filter(|(_, rest)| is_count(rest)) else {
            let known = ["Delta compression using up to", "Total", TOTAL_OF_SERVER];
            if let Some(title) = known.iter().find(|title| part.starts_with(**title)) {
                titles.push((*title).to_owned());
            }
            continue;
        };
        if rest.contains("done.") && !title.starts_with("remote: ") {
            assert!(
                !is_pronto || !finished.contains(&title.to_owned()),
                "{title} twice: {text}"
            );
            finished.push(title.to_owned());
        }
        if !titles.iter().any(|known| known == title) {
            titles.push(title.to_owned());
        }
    }
    let open = |title: &&String| !title.starts_with("remote: ") && !title.starts_with("Total");
    let mut open = titles
        .iter()
        .filter(open)
        .filter(|title| !finished.contains(title));
    assert!(!is_pronto || open.next().is_none(), "not finished: {text}");
    titles
}

/// Returns whether `text` begins like the counters of a meter: `3, done.`, `  5% (1/20)`.
fn is_count(text: &str) -> bool {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &text[digits..];
    digits > 0 && (rest.is_empty() || rest.starts_with([',', '%']))
}

#[test]
fn phases_are_in_the_order_of_git() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let Some(reference) = reference() else {
        return report_missing_reference(&"phases_are_in_the_order_of_git");
    };
    let mut differences = String::new();
    for call in CALLS {
        let expected = titles(&stage.shown(reference, call), false);
        let found = titles(&stage.shown(pronto_path(), call), true);
        let is_compared = |title: &&String| {
            let title = title.as_str();
            let is_lacking = NOT_OF_PRONTO.contains(&title) || call.lacks.contains(&title);
            let has_no_work = WITH_WORK.contains(&title) && !found.iter().any(|it| it == title);
            title != TOTAL_OF_SERVER && !is_lacking && !has_no_work
        };
        let expected: Vec<&String> = expected.iter().filter(is_compared).collect();
        let compared: Vec<&String> = found.iter().filter(is_compared).collect();
        if expected != compared {
            differences += &format!(
                "{}\n  git:    {expected:?}\n  pronto: {compared:?}\n",
                call.line
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn remote_lines_precede_the_pack() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let text = stage.shown(pronto_path(), &CALLS[0]);
    let found = titles(&text, true);
    let first: Vec<&str> = found.iter().map(String::as_str).take(3).collect();
    let expected = [
        "remote: Enumerating objects",
        "remote: Counting objects",
        "Receiving objects",
    ];
    assert_eq!(first, expected, "{text}");
    assert!(found.iter().any(|title| title == TOTAL_OF_SERVER), "{text}");
}

#[test]
fn a_failure_leaves_no_meter_behind() {
    let Some(stage) = Stage::new() else {
        return;
    };
    // The pack ends early: the line of the meter is ended before the error.
    let source = stage.path("source");
    let packs = fs::read_dir(source.join(".git/objects/pack")).expect("it can be listed");
    let mut packs = packs.flatten().map(|entry| entry.path());
    let pack = packs.find(|path| path.extension().is_some_and(|it| it == "pack"));
    let bytes = fs::read(pack.expect("a pack")).expect("a pack");
    let cut = stage.path("cut.pack");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("a file");
    let line = format!(
        "'{}' index-pack -v --stdin <../cut.pack",
        pronto_path().display()
    );
    let output = process(Path::new(SCRIPT))
        .args(["-qec", &line, "/dev/null"])
        .current_dir(&source)
        .env("TERM", "xterm")
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fatal = text.find("fatal: ").expect(&text);
    assert!(text[..fatal].ends_with('\n'), "{text:?}");
    assert!(text[..fatal].contains("Receiving objects: "), "{text:?}");
}
