//! Runs the examples `editor`, `forge` and `bot` in repositories of git.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::Sandbox;

/// Returns the built example `name`.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let built = test.ancestors().nth(2).expect("the directory of the build");
    built.join("examples").join(name)
}

fn run(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Output {
    Command::new(example(name))
        .args(arguments)
        .current_dir(&sandbox.root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &sandbox.root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.com")
        .env("GIT_COMMITTER_NAME", "C O Mitter")
        .env("GIT_COMMITTER_EMAIL", "committer@example.com")
        .output()
        .expect("examples are built with the tests")
}

/// Runs an example that succeeds, and returns its output.
fn output(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> String {
    let output = run(sandbox, name, arguments);
    assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn an_editor_stages_unstages_and_discards() {
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    sandbox.write("new", "new");
    let editor = |arguments: &[&str]| output(&sandbox, "editor", &[&["r"], arguments].concat());
    assert_eq!(
        editor(&["status"]),
        "changed: a (modified)\nuntracked: new\n"
    );
    editor(&["stage", "a"]);
    editor(&["stage", "new"]);
    assert_eq!(
        editor(&["status"]),
        "staged: a (modified)\nstaged: new (added)\n"
    );
    editor(&["unstage", "a"]);
    editor(&["discard", "a"]);
    assert_eq!(editor(&["status"]), "staged: new (added)\n");
    assert_eq!(sandbox.read("a").as_deref(), Some("a"));
    sandbox.git("r", &["branch", "side"]);
    sandbox.git("r", &["config", "branch.side.remote", "."]);
    sandbox.git("r", &["config", "branch.side.merge", "refs/heads/main"]);
    assert_eq!(
        editor(&["branches"]),
        "* main (no upstream)\n  side -> main (up to date)\n"
    );
    let failed = run(&sandbox, "editor", &["/", "status"]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("is this the right directory?"));
}

#[test]
fn a_forge_serves_git() {
    let sandbox = Sandbox::with_files();
    sandbox.git("", &["clone", "-q", "--bare", "r", "o.git"]);
    let head = sandbox.git("o.git", &["rev-parse", "HEAD"]);
    let refs = format!("{head} HEAD -> refs/heads/main\n{head} refs/heads/main\n");
    assert_eq!(output(&sandbox, "forge", &["o.git", "refs"]), refs);
    let tree = output(&sandbox, "forge", &["o.git", "tree", "main"]);
    assert_eq!(tree.lines().count(), 3, "{tree}");
    for service in ["upload-pack", "receive-pack"] {
        let text = format!(
            "#!/bin/sh\nexec {} \"$1\" {service}\n",
            example("forge").display()
        );
        test_support::write_program(&sandbox.root.join(service), &text);
    }
    let program = |service: &str| sandbox.root.join(service).display().to_string();
    let (upload, receive) = (program("upload-pack"), program("receive-pack"));
    sandbox.git(
        "",
        &["clone", "-q", "--no-local", "-u", &upload, "o.git", "copy"],
    );
    sandbox.git("copy", &["commit", "-q", "--allow-empty", "-m", "two"]);
    let pushed = format!("--receive-pack={receive}");
    sandbox.git("copy", &["push", "-q", &pushed, "origin", "main"]);
    let news = sandbox.git("copy", &["rev-parse", "HEAD"]);
    assert_eq!(sandbox.git("o.git", &["rev-parse", "main"]), news);
    sandbox.git("o.git", &["fsck", "--strict"]);
}

#[test]
fn a_bot_pushes_a_branch() {
    let sandbox = Sandbox::with_files();
    sandbox.git("", &["clone", "-q", "--bare", "r", "o.git"]);
    let printed = output(&sandbox, "bot", &["o.git", "work", "topic", "notes"]);
    let commit = sandbox.git("work", &["rev-parse", "HEAD"]);
    assert!(
        printed.starts_with(&format!("committed {commit}\n")),
        "{printed}"
    );
    assert_eq!(sandbox.git("o.git", &["rev-parse", "topic"]), commit);
    assert_eq!(
        sandbox.git("work", &["rev-parse", "--abbrev-ref", "topic@{u}"]),
        "origin/topic"
    );
    sandbox.git("o.git", &["fsck", "--strict"]);
}
