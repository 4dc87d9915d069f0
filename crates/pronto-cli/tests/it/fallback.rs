//! Calls that pronto does not support, which the installed git runs whole and exactly once.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{
    Scratch, copy_program, install, interruptible_pronto, path_with, process, pronto, stderr,
    stdout,
};

/// A git that prints its arguments.
const TELLTALE: &str =
    "#!/bin/sh\nprintf '%s|' \"$$\" \"$PWD\" \"$@\"\necho to-stderr >&2\nexit 7\n";

#[test]
fn arguments_streams_directory_process_and_exit_code_are_those_of_git() {
    let scratch = Scratch::new();
    let git = scratch.script("bin", "git", TELLTALE);
    std::fs::create_dir(scratch.path().join("sub")).expect("a directory");
    let arguments = [
        "-C",
        "sub",
        "-c",
        "a.b=c",
        "--trace-chrome",
        "x",
        "no-such",
        "--what",
        "",
    ];
    let child = pronto()
        .args(arguments)
        .env("PRONTO_GIT", &git)
        .current_dir(scratch.path().canonicalize().expect("it exists"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let process = child.id();
    let output = child.wait_with_output().expect("it ends");
    let directory = scratch.path().canonicalize().expect("it exists");
    let expected = format!(
        "{process}|{}|-C|sub|-c|a.b=c|no-such|--what||",
        directory.display()
    );
    assert_eq!(stdout(&output), expected);
    assert_eq!(stderr(&output), "to-stderr\n");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn unknown_options_and_commands_go_to_git() {
    let scratch = Scratch::new();
    let git = scratch.script("bin", "git", "#!/bin/sh\necho \"$@\"\n");
    let calls: [&[&str]; 4] = [
        &["version", "--zap"],
        &["--html-path"],
        &["--exec-path"],
        &["--list-cmds=main"],
    ];
    for call in calls {
        let output = pronto()
            .args(call)
            .env("PRONTO_GIT", &git)
            .output()
            .expect("it runs");
        assert_eq!(stdout(&output), format!("{}\n", call.join(" ")));
    }
}

#[test]
fn a_signal_that_kills_git_reaches_the_caller() {
    let scratch = Scratch::new();
    let git = scratch.script("bin", "git", "#!/bin/sh\nkill -TERM $$\n");
    let output = interruptible_pronto()
        .arg("log")
        .env("PRONTO_GIT", &git)
        .output()
        .expect("it runs");
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn installed_as_git_it_finds_the_next_git() {
    type Make = fn(&std::path::Path, &std::path::Path) -> std::io::Result<()>;
    let ways: [(&str, Make); 3] = [
        ("symbolic link", |ours, path| {
            std::os::unix::fs::symlink(ours, path)
        }),
        ("hard link", |ours, path| {
            std::fs::hard_link(ours, path).or_else(|_| copy_program(ours, path))
        }),
        ("copy", copy_program),
    ];
    for (way, make) in ways {
        let scratch = Scratch::new();
        let ours = install(&scratch, "first", "git", make);
        install(&scratch, "second", "git", make);
        scratch.script("third", "git", "#!/bin/sh\necho real \"$@\"\n");
        let at = |name: &str| scratch.path().join(name).display().to_string();
        let path = format!(
            "{}:{}:{}:/usr/bin:/bin",
            at("first"),
            at("second"),
            at("third")
        );
        let output = process(&ours)
            .env("PATH", &path)
            .args(["log", "-1"])
            .output()
            .expect(way);
        assert_eq!(stdout(&output), "real log -1\n", "{way}");
        let output = process(&ours).arg("version").output().expect("it runs");
        assert!(
            stdout(&output).starts_with("git version 2."),
            "{way}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn a_script_called_git_that_runs_pronto_is_no_loop() {
    let scratch = Scratch::new();
    let text = format!(
        "#!/bin/sh\nexec '{}' \"$@\"\n",
        crate::support::pronto_path().display()
    );
    scratch.script("wrapper", "git", &text);
    scratch.script("real", "git", "#!/bin/sh\necho real \"$@\"\n");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let path = format!("{}:{}:/usr/bin:/bin", at("wrapper"), at("real"));
    let output = pronto()
        .env("PATH", path)
        .arg("log")
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output), "real log\n", "{}", stderr(&output));

    let text = format!(
        "#!/bin/sh\n'{}' \"$@\"\n",
        crate::support::pronto_path().display()
    );
    let forking = scratch.script("forking", "git", &text);
    let output = pronto()
        .env("PRONTO_GIT", forking)
        .arg("log")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(128));
    assert!(stderr(&output).contains("in a loop"), "{}", stderr(&output));
}

#[test]
fn a_missing_git_or_pronto_in_its_place_is_reported() {
    let nowhere = pronto()
        .env("PATH", "/nonexistent")
        .arg("log")
        .output()
        .expect("it runs");
    assert_eq!(nowhere.status.code(), Some(128));
    assert!(stderr(&nowhere).starts_with(
        "error: command 'log' is not implemented natively\nfatal: git is not on PATH\nhint: "
    ));
    let ours = crate::support::pronto_path();
    let ourselves = pronto()
        .env("PRONTO_GIT", ours)
        .arg("log")
        .output()
        .expect("it runs");
    assert_eq!(ourselves.status.code(), Some(128));
    assert!(stderr(&ourselves).contains("PRONTO_GIT is pronto itself"));
}

#[test]
fn without_fallback_unsupported_options_are_named() {
    let forbidden = |arguments: &[&str]| {
        let output = pronto()
            .env("PRONTO_NO_FALLBACK", "1")
            .args(arguments)
            .output()
            .expect("it runs");
        (
            output.status.code(),
            stderr(&output)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    assert_eq!(
        forbidden(&["blame", "x"]),
        (
            Some(128),
            "fatal: command 'blame' is not implemented natively".to_owned()
        )
    );
    assert_eq!(
        forbidden(&["version", "--zap"]),
        (
            Some(129),
            "error: option '--zap' of 'version' is not implemented natively".to_owned()
        )
    );
    assert_eq!(
        forbidden(&["--html-path"]),
        (
            Some(129),
            "error: option '--html-path' is not implemented natively".to_owned()
        )
    );
}

#[test]
fn the_first_git_on_the_path_runs() {
    let scratch = Scratch::new();
    install(&scratch, "bin", "pronto", |ours, path| {
        std::os::unix::fs::symlink(ours, path)
    });
    let made = pronto()
        .env("PATH", path_with(&scratch.path().join("bin")))
        .args(["-c", "init.defaultBranch=trunk", "init", "-q", "made"])
        .current_dir(scratch.path())
        .status()
        .expect("it runs");
    assert!(made.success());
    let head = std::fs::read_to_string(scratch.path().join("made/.git/HEAD"));
    assert_eq!(
        head.expect("a repository was made"),
        "ref: refs/heads/trunk\n"
    );
}
