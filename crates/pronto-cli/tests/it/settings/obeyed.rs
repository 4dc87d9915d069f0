//! Settings that native commands support.

use super::super::support::{Scratch, git, pronto, stderr, stdout};

use std::path::PathBuf;

fn repository(scratch: &Scratch) -> PathBuf {
    let top = scratch.path().join("repository");
    std::fs::create_dir(&top).expect("a directory");
    git(&top, &["init", "-q", "-b", "main"]);
    git(&top, &["commit", "-q", "--allow-empty", "-m", "first"]);
    top
}

#[test]
fn git_advice_turns_advice_off() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    std::fs::write(top.join("file"), "").expect("a file");
    let run = |advice: &str, arguments: &[&str]| {
        let output = pronto()
            .current_dir(&top)
            .env("PRONTO_NO_FALLBACK", "1")
            .env("GIT_ADVICE", advice)
            .args(arguments)
            .output()
            .expect("it runs");
        stdout(&output) + &stderr(&output)
    };
    assert!(run("1", &["add"]).contains("hint: "));
    assert!(!run("0", &["add"]).contains("hint: "));
    assert!(run("1", &["status"]).contains("git add <file>"));
    assert!(!run("0", &["status"]).contains("git add <file>"));
    assert!(!run("1", &["--no-advice", "add"]).contains("hint: "));
}

#[test]
fn checkout_guess_is_obeyed() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    git(&top, &["branch", "other"]);
    let copy = scratch.path().join("copy");
    let copied = copy.to_str().expect("a path of text");
    git(&top, &["clone", "-q", ".", copied]);
    let run = |arguments: &[&str]| {
        let output = pronto()
            .current_dir(&copy)
            .env("PRONTO_NO_FALLBACK", "1")
            .args(arguments)
            .output()
            .expect("it runs");
        output.status.success()
    };
    for command in ["checkout", "switch"] {
        assert!(!run(&["-c", "checkout.guess=false", command, "other"]));
    }
    assert!(run(&[
        "-c",
        "checkout.guess=false",
        "switch",
        "--guess",
        "other"
    ]));
}

#[test]
fn passwords_in_addresses_stay_out_of_traces() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let run = |redact: &str| {
        let output = pronto()
            .current_dir(&top)
            .env("PRONTO_NO_FALLBACK", "1")
            .env("GIT_TRACE", "1")
            .env("GIT_TRACE2", "1")
            .env("GIT_TRACE2_EVENT", "1")
            .env("GIT_TRACE2_PERF", "1")
            .env("GIT_TRACE2_REDACT", redact)
            .args(["rev-parse", "--sq-quote", "https://me:secret@host/"])
            .output()
            .expect("it runs");
        assert!(output.status.success());
        stderr(&output)
    };
    let traces = run("1");
    assert!(!traces.contains("secret") && traces.contains("me:<REDACTED>@host"));
    assert!(run("0").contains("secret"));
}
