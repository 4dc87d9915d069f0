//! Commands on trees and directories with the deepest nesting that Git permits, on stacks that have
//! no room for a call per level.

use std::fs::File;
use std::path::Path;
use std::process::Output;

use pronto_hash::{Kind, ObjectId};

use crate::support::{Scratch, process, pronto_path, stderr, stdout};

/// Git's limit is 2,048.
const LEVELS: usize = 2_000;

/// Runs pronto with a stack of 1 MiB, and threads with stacks of 256 KiB.
fn run(top: &Path, arguments: &[&str]) -> Output {
    let mut command = process("sh");
    command
        .args(["-c", "ulimit -s 1024 && exec \"$@\"", "sh"])
        .arg(pronto_path())
        .args(arguments)
        .env("RUST_MIN_STACK", (256 << 10).to_string())
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(top);
    command.output().expect("it runs")
}

fn succeed(top: &Path, arguments: &[&str]) -> String {
    let output = run(top, arguments);
    let status = output.status;
    assert!(status.success(), "{arguments:?}: {status}");
    stdout(&output)
}

/// Runs git with this input. Returns its output without the last newline.
fn git(top: &Path, arguments: &[&str], input: &str) -> String {
    // A file, because git answers before it has read everything.
    let scratch = Scratch::new();
    let file = scratch.join("input");
    std::fs::write(&file, input).expect("a file");
    let output = process("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(top)
        .stdin(File::open(&file).expect("it is there"))
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output).trim_end().to_owned()
}

/// Creates a repository with a commit of a file below this many directories `d`. Returns the tree.
fn repository(top: &Path, levels: usize) -> String {
    repository_of("d", top, levels)
}

/// Does the same with directories called `name`.
fn repository_of(name: &str, top: &Path, levels: usize) -> String {
    let id_of = |mode: &str, name: &str, id: &str| {
        let id = ObjectId::from_hex(id.as_bytes()).expect("an id");
        let content = [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat();
        let header = format!("tree {}\0", content.len());
        let tree = pronto_hash::digest(Kind::Sha1, &[header.as_bytes(), &content]);
        tree.expect("no collision").to_string()
    };
    git(top, &["init", "-q", "-b", "main"], "");
    let blob = git(top, &["hash-object", "-w", "--stdin"], "x\n");
    let mut trees = format!("100644 blob {blob}\tx\n");
    let mut tree = id_of("100644", "x", &blob);
    for _ in 0..levels {
        trees.push_str(&format!("\n040000 tree {tree}\t{name}\n"));
        tree = id_of("40000", name, &tree);
    }
    git(top, &["mktree", "--missing", "--batch"], &trees);
    let commit = git(top, &["commit-tree", "-m", "x", &tree], "");
    git(top, &["update-ref", "refs/heads/main", &commit], "");
    git(top, &["repack", "-adq"], "");
    tree
}

#[test]
fn commands_need_no_stack_for_deep_trees() {
    let scratch = Scratch::new();
    let top = scratch.path();
    let tree = repository(top, LEVELS);
    let listed = succeed(top, &["ls-tree", "-r", "-t", "HEAD"]);
    assert_eq!(listed.lines().count(), LEVELS + 1);
    succeed(top, &["read-tree", "HEAD"]);
    assert_eq!(succeed(top, &["write-tree"]).trim_end(), tree);
    assert_eq!(succeed(top, &["diff-index", "--cached", "HEAD"]), "");
    let compared = succeed(top, &["diff-tree", "-r", "--root", "HEAD"]);
    assert_eq!(compared.lines().count(), 2);
    succeed(top, &["checkout-index", "-a"]);
    assert_eq!(succeed(top, &["status", "--porcelain"]), "");
    succeed(top, &["read-tree", "-m", "-u", "HEAD"]);
    succeed(
        top,
        &["commit-graph", "write", "--reachable", "--changed-paths"],
    );

    succeed(top, &["read-tree", "--empty"]);
    let cached = ["-c", "core.untrackedCache=true", "status", "--porcelain"];
    for arguments in [&["status", "--porcelain"][..], &cached, &cached] {
        // The removal of the file comes first.
        let said = succeed(top, arguments);
        assert_eq!(said.lines().last(), Some("?? d/"));
    }
    succeed(top, &["add", "."]);
    assert_eq!(succeed(top, &["write-tree"]).trim_end(), tree);
    succeed(top, &["read-tree", "--empty"]);
    assert_eq!(succeed(top, &["clean", "-ndx"]), "Would remove d/\n");
    succeed(top, &["clean", "-fdxq"]);
    assert!(!top.join("d").exists());
}

#[test]
fn deep_trees_are_cloned_as_far_as_git_permits() {
    let scratch = Scratch::new();
    let source = scratch.join("source");
    std::fs::create_dir(&source).expect("a directory");
    repository(&source, LEVELS);
    succeed(scratch.path(), &["clone", "-q", "source", "clone"]);
    let clone = scratch.join("clone");
    assert_eq!(succeed(&clone, &["status", "--porcelain"]), "");
    succeed(&clone, &["read-tree", "--empty"]);
    succeed(&clone, &["clean", "-fdxq"]);

    let source = scratch.join("deeper");
    std::fs::create_dir(&source).expect("a directory");
    repository(&source, 5_000);
    let output = run(scratch.path(), &["clone", "-q", "deeper", "refused"]);
    assert_eq!(output.status.code(), Some(128));
    let said = stderr(&output);
    assert!(
        said.contains("exceeded maximum allowed tree depth"),
        "{said:.100}"
    );
}

#[test]
fn paths_that_the_system_does_not_permit_are_packed() {
    let scratch = Scratch::new();
    repository_of(&"long".repeat(50), scratch.path(), 30);
    succeed(scratch.path(), &["repack", "-adfq"]);
    succeed(scratch.path(), &["gc", "-q"]);
    git(scratch.path(), &["fsck", "--full", "--strict"], "");
}
