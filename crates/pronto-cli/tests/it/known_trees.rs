//! `reset --hard` and `checkout -f` use the cached trees of the index: these are not read, and the
//! result is the same as git's.

use std::path::{Path, PathBuf};

use crate::support::{Scratch, pronto_path, run, stderr, stdout};

const FILES: [&str; 4] = ["a/b/one", "a/two", "c/three", "four"];

/// Returns the output of git, which must succeed.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = crate::faults::git(directory, arguments);
    assert!(done.status.success(), "{arguments:?}: {}", stderr(&done));
    stdout(&done)
}

fn repository(scratch: &Scratch) -> PathBuf {
    git(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    let work = scratch.path().join("work");
    for file in FILES {
        let path = work.join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        std::fs::write(path, file).expect("a file");
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    work
}

/// Hides a loose object; gives where it was and where it is.
fn hide(work: &Path, revision: &str) -> (PathBuf, PathBuf) {
    let id = git(work, &["rev-parse", revision]);
    let (directory, name) = id.trim().split_at(2);
    let at = work.join(".git/objects").join(directory).join(name);
    let hidden = at.with_extension("hidden");
    std::fs::rename(&at, &hidden).expect("it is loose");
    (at, hidden)
}

#[test]
fn trees_that_the_index_makes_are_not_read() {
    for command in [&["reset", "-q", "--hard"][..], &["checkout", "-q", "-f"]] {
        let scratch = Scratch::new();
        let work = repository(&scratch);
        let hidden = [hide(&work, "HEAD:a/b"), hide(&work, "HEAD:a")];
        // All of the index is known; then one directory and the top are not.
        for staged in [None, Some("c/three"), Some("c/new")] {
            std::fs::remove_file(work.join("a/b/one")).expect("it was there");
            std::fs::write(work.join("a/two"), "changed").expect("a file");
            if let Some(staged) = staged {
                std::fs::write(work.join(staged), "staged").expect("a file");
                let added = run(pronto_path(), &work, &["add", staged]);
                assert!(added.status.success(), "{}", stderr(&added));
            }
            let done = run(pronto_path(), &work, command);
            assert!(done.status.success(), "{command:?}: {}", stderr(&done));
            for file in FILES {
                let text = std::fs::read_to_string(work.join(file)).expect("it was made");
                assert_eq!(text, file, "{command:?} after {staged:?}");
            }
            assert!(!work.join("c/new").exists(), "{command:?}");
        }
        for (at, hidden) in hidden {
            std::fs::rename(hidden, at).expect("it was hidden");
        }
        assert_eq!(git(&work, &["status", "--porcelain"]), "");
        let made = git(&work, &["write-tree"]);
        assert_eq!(made, git(&work, &["rev-parse", "HEAD^{tree}"]));
        git(&work, &["fsck", "--strict"]);
    }
}

#[test]
fn names_of_a_known_tree_are_checked_before_they_are_written() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let blob = git(&work, &["rev-parse", "HEAD:four"]);
    let entry = format!("100644,{},git~1/config", blob.trim());
    let careless = ["-c", "core.protectNTFS=false"];
    let add = ["update-index", "--add", "--cacheinfo", &entry];
    git(&work, &[&careless[..], &add].concat());
    let tree = git(&work, &["write-tree"]);
    let commit = git(&work, &["commit-tree", "-m", "two", tree.trim()]);
    git(&work, &["update-ref", "HEAD", commit.trim()]);
    for command in [&["reset", "-q", "--hard"][..], &["checkout", "-q", "-f"]] {
        let refused = run(pronto_path(), &work, command);
        assert!(!refused.status.success(), "{command:?}");
        let said = stderr(&refused);
        assert!(said.contains("invalid path 'git~1/config'"), "{said}");
        assert!(!work.join("git~1").exists(), "{command:?}");
    }
}
