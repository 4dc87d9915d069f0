//! Untrusted names on a terminal and in a pipe.

use std::path::Path;
use std::process::{Command, Output};

use test_support::git::isolated;
use test_support::skip;

use crate::support::{process, pronto_path};

/// The program that runs another one on a terminal.
const SCRIPT: &str = "/usr/bin/script";

/// A title for the window, a colour, and a C1 control character.
const EVIL: &[u8] = b"a\x1b]0;title\x07\x1b[8m\xc2\x9bz";

fn git(at: &Path, arguments: &[&str]) -> Output {
    let output = isolated(at, arguments, b"");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// A repository with a file of an evil name, and a bundle with a ref of one.
fn scene() -> Option<tempfile::TempDir> {
    if !Path::new(SCRIPT).exists() {
        skip!("there is no script");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    git(at, &["init", "-q", "-b", "main"]);
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(EVIL);
    std::fs::write(at.join(name), "x").expect("a file");
    git(at, &["add", "."]);
    git(at, &["commit", "-qm", "x"]);
    git(at, &["bundle", "create", "good", "main"]);
    let bundle = std::fs::read(at.join("good")).expect("a file");
    let (word, evil) = (&b"refs/heads/main"[..], [b"refs/heads/", EVIL].concat());
    let place = bundle.windows(word.len()).position(|found| found == word);
    let place = place.expect("it is there");
    let changed = [&bundle[..place], &evil, &bundle[place + word.len()..]].concat();
    std::fs::write(at.join("evil"), changed).expect("a file");
    Some(folder)
}

fn isolate(command: &mut Command, at: &Path) -> Output {
    command.current_dir(at).env("HOME", at).env("TERM", "xterm");
    command
        .env("PRONTO_NO_FALLBACK", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command.output().expect("it starts")
}

/// Runs pronto on a terminal. Returns what the terminal gets.
fn shown(at: &Path, arguments: &str) -> Vec<u8> {
    let line = format!("'{}' {arguments}", pronto_path().display());
    let mut command = process(Path::new(SCRIPT));
    command.args(["-qec", &line, "/dev/null"]);
    isolate(&mut command, at).stdout
}

/// The calls that print names of others.
const CALLS: [&str; 6] = [
    "bundle list-heads evil",
    "bundle verify evil",
    "archive -v -o x.tar main",
    "ls-remote ./evil",
    "ls-files -z",
    "cat-file -p main^{tree}",
];

#[test]
fn a_terminal_gets_no_control_characters_of_others() {
    let Some(folder) = scene() else { return };
    for call in CALLS {
        let text = shown(folder.path(), call);
        let is_evil = |text: &[u8]| {
            text.windows(2)
                .any(|pair| pair == b"\x1b]" || pair == b"\xc2\x9b")
        };
        assert!(
            !is_evil(&text) && !text.contains(&7),
            "{call}: {}",
            text.escape_ascii()
        );
        if call.starts_with("bundle") {
            let shown = String::from_utf8_lossy(&text).into_owned();
            assert!(shown.contains("a?]0;title??[8m?z"), "{call}: {shown:?}");
        }
    }
}

#[test]
fn a_pipe_gets_the_bytes_of_git() {
    let Some(folder) = scene() else { return };
    let at = folder.path();
    for call in CALLS {
        let words: Vec<&str> = call.split(' ').collect();
        let expected = isolated(at, &words, b"");
        let mut command = process(pronto_path());
        command.args(&words);
        let output = isolate(&mut command, at);
        assert_eq!(
            output.stdout.escape_ascii().to_string(),
            expected.stdout.escape_ascii().to_string(),
            "{call}"
        );
        if call.starts_with("archive") {
            assert_eq!(output.stderr, expected.stderr, "{call}");
        }
    }
}
