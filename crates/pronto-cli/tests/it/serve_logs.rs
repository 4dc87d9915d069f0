//! The log of `serve`: its formats, and the output of child processes in it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::serve::Server;
use crate::support::{Scratch, git, pronto, stderr, write_program};

/// Returns whether `text` is a time in UTC with milliseconds, as in RFC 3339.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|found| if found.is_ascii_digit() { '0' } else { found })
        .collect();
    shape == "0000-00-00T00:00:00.000Z"
}

/// A worktree with one commit, whose `main` accepts pushes by a hook that writes to standard error.
fn deployed(scratch: &Scratch) -> std::path::PathBuf {
    let work = scratch.join("work");
    git(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(
        &work,
        &["config", "receive.denyCurrentBranch", "updateInstead"],
    );
    let hook = "#!/bin/sh\necho \"deploying $1\" >&2\nprintf 'no end \\033[2J' >&2\n";
    write_program(&work.join(".git/hooks/push-to-checkout"), hook);
    work
}

/// Serves a worktree with these arguments, pushes to it, and returns the log.
fn log_of_a_push(arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let work = deployed(&scratch);
    let all = [&["--write", "."], arguments].concat();
    let server = Server::start(&work, &all, "pronto_");
    git(scratch.path(), &["clone", "-q", "work", "clone"]);
    let clone = scratch.join("clone");
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "two"]);
    git(&clone, &["push", "-q", &server.owner_url("work"), "main"]);
    server.signal(Signal::TERM);
    server.end()
}

#[test]
fn each_line_of_json_has_time_level_and_event() {
    for arguments in [&[][..], &["--log-format=json"], &["--log-format=auto"]] {
        let log = log_of_a_push(arguments);
        let mut found = Vec::new();
        for line in log.lines() {
            let event: Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}: {log}"));
            assert!(is_time(event["time"].as_str().expect("text")), "{line}");
            let level = event["level"].as_str().expect("text");
            assert!(["info", "warning", "error"].contains(&level), "{line}");
            found.push(event);
        }
        let of = |name: &'static str| found.iter().filter(move |event| event["event"] == name);
        let output: Vec<&str> = of("output")
            .map(|event| event["message"].as_str().expect("text"))
            .collect();
        assert!(
            output.iter().any(|line| line.starts_with("deploying ")),
            "{log}"
        );
        assert!(output.contains(&"no end \u{1b}[2J"), "{log}");
        assert!(
            of("request").any(|event| event["service"] == "git-receive-pack"),
            "{log}"
        );
        assert_eq!(of("listening").count(), 1, "{log}");
        assert_eq!(of("drained").count(), 1, "{log}");
        assert!(!log.contains('\u{1b}'), "{log}");
    }
}

#[test]
fn lines_for_people_have_the_same_events() {
    let log = log_of_a_push(&["--log-format", "human"]);
    for line in log.lines() {
        let (time, _) = line.split_once(' ').expect("a space");
        assert!(is_time(time), "{line}");
    }
    for part in [
        " info listening: protocol=http address=127.0.0.1:",
        " info request: status=200 service=git-receive-pack repository=work user=owner address=127.0.0.1:",
        " info output: message=\"deploying ",
        " info output: message=\"no end \\u001b[2J\"",
        " info drained: connections=0",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn the_format_is_a_setting_and_an_option() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("root")).expect("a directory");
    let write = |format: &str| {
        let text = format!(
            "root = \"root\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[log]\nformat = \"{format}\"\n"
        );
        std::fs::write(scratch.join("server.toml"), text).expect("a file");
    };
    let log = |arguments: &[&str]| {
        let all = [&["--config", "server.toml"], arguments].concat();
        let server = Server::start(scratch.path(), &all, "serving at");
        server.signal(Signal::TERM);
        server.end()
    };
    write("human");
    assert!(!log(&[]).contains("{\"") && log(&["--log-format=json"]).starts_with("{\""));
    write("json");
    assert!(log(&[]).starts_with("{\"") && !log(&["--log-format=human"]).contains("{\""));
    write("auto");
    assert!(log(&[]).starts_with("{\""));
    write("xml");
    let output = pronto()
        .args(["serve", "--config", "server.toml", "--check"])
        .current_dir(scratch.path())
        .output()
        .expect("it starts");
    let said = stderr(&output);
    assert!(
        said.contains("server.toml:5: ") && said.contains("human"),
        "{said}"
    );
}

#[test]
fn a_terminal_gets_lines_for_people() {
    if !Path::new("/usr/bin/script").exists() {
        test_support::skip!("there is no script");
    }
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    let line = format!(
        "{} serve . & read line; kill $!; wait",
        crate::support::pronto_path().display()
    );
    let mut child = crate::support::process("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(scratch.join("work"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains(" info listening: protocol=http address=") {
        assert!(output.read_line(&mut text).expect("text") > 0, "{text}");
    }
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    output.read_to_string(&mut text).expect("text");
    child.wait().expect("it ends");
    assert!(text.contains(" info drained: connections=0"), "{text}");
    assert!(!text.contains("{\""), "{text}");
}
