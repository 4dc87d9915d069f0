//! Clones into file systems on which different names refer to the same file. The report is that of
//! git, the last file in index order remains, and the number of workers does not change the result.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use slowfs::Folding;

use crate::faults::{Place, git};
use crate::support::{process, pronto_path, stderr};

/// Creates a repository with colliding names on a file system where they differ.
fn source(place: &Place, entries: &[(&str, &str)]) {
    let source = place.scratch.path().join("source");
    std::fs::create_dir_all(&source).expect("a directory");
    let run = |arguments: &[&str]| {
        let output = git(&source, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    run(&["init", "-q", "-b", "main"]);
    for (path, content) in entries {
        let (mode, content) = match content.strip_prefix("-> ") {
            Some(target) => ("120000", target),
            None => ("100644", *content),
        };
        let file = place.scratch.path().join("content");
        std::fs::write(&file, content).expect("a file");
        let id = run(&["hash-object", "-w", "--no-filters", &file.to_string_lossy()]);
        let info = format!("{mode},{id},{path}");
        run(&["update-index", "--add", "--cacheinfo", &info]);
    }
    run(&["commit", "-qm", "one"]);
}

fn clone(place: &Place, program: &Path, workers: &str, target: &str) -> Output {
    let mut command = process(program);
    if workers != "unset" {
        command.args(["-c", &format!("checkout.workers={workers}")]);
    }
    command
        .args(["-c", "checkout.thresholdForParallelism=0"])
        .args(["clone", "-q"])
        .arg(place.scratch.path().join("source"))
        .arg(place.work().join(target))
        .env("PRONTO_NO_FALLBACK", "1")
        .output()
        .expect("it starts")
}

/// Lists the files with their contents. Which spelling was created first is arbitrary, so names are
/// folded.
fn listing(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![top.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).expect("it lists") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(top).expect("below").to_string_lossy();
            if name == ".git" {
                continue;
            }
            let key = fold(&name);
            let metadata = path.symlink_metadata().expect("it is there");
            let content = if metadata.is_dir() {
                todo.push(path);
                continue;
            } else if metadata.is_symlink() {
                let target = std::fs::read_link(&path).expect("a link");
                format!("-> {}", target.display())
            } else {
                std::fs::read_to_string(&path).expect("a file")
            };
            found.insert(key, content);
        }
    }
    found
}

fn fold(name: &str) -> String {
    let lower = name.to_lowercase();
    lower
        .replace("e\u{301}", "\u{e9}")
        .replace("u\u{308}", "\u{fc}")
}

fn compare(folding: Folding, entries: &[(&str, &str)]) {
    let Some(place) = Place::new(folding) else {
        return;
    };
    source(&place, entries);
    let theirs = clone(&place, Path::new("git"), "1", "git");
    let expected = (stderr(&theirs), listing(&place.real().join("git")));
    assert!(theirs.status.success(), "{}", expected.0);
    for (round, workers) in ["1", "2", "8", "unset"].iter().cycle().take(12).enumerate() {
        let target = format!("pronto{round}");
        let ours = clone(&place, pronto_path(), workers, &target);
        assert!(ours.status.success(), "{}", stderr(&ours));
        assert_eq!(stderr(&ours), expected.0, "{workers} workers");
        assert_eq!(
            listing(&place.real().join(&target)),
            expected.1,
            "{workers} workers"
        );
    }
}

#[test]
fn names_that_differ_in_case_collide_as_in_git() {
    compare(
        Folding::Case,
        &[
            ("FILE_X", "FILE_X\n"),
            ("FILE_x", "FILE_x\n"),
            ("alone", "alone\n"),
            ("dir/Inner", "Inner\n"),
            ("dir/inner", "inner\n"),
            ("file_X", "file_X\n"),
            ("file_x", "file_x\n"),
        ],
    );
}

#[test]
fn names_that_differ_in_composition_collide_as_in_git() {
    compare(
        Folding::Composition,
        &[
            ("alone", "alone\n"),
            ("caf\u{e9}", "composed\n"),
            ("cafe\u{301}", "decomposed\n"),
            ("d\u{fc}/x", "x\n"),
        ],
    );
}

#[test]
fn a_link_in_another_case_does_not_lead_out_of_the_worktree() {
    let Some(place) = Place::new(Folding::Case) else {
        return;
    };
    let outside = place.scratch.path().join("outside");
    std::fs::create_dir(&outside).expect("a directory");
    let link = format!("-> {}", outside.display());
    source(
        &place,
        &[("D", &link), ("d/x", "written through\n"), ("e", "e\n")],
    );
    for (round, workers) in ["1", "2", "unset"].iter().cycle().take(6).enumerate() {
        let ours = clone(&place, pronto_path(), workers, &format!("pronto{round}"));
        assert!(stderr(&ours).contains("'D'"), "{}", stderr(&ours));
        let written = std::fs::read_dir(&outside).expect("it lists").count();
        assert_eq!(written, 0, "{workers} workers");
    }
}
