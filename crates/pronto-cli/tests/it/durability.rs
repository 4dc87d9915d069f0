//! `core.fsync`: the files that are flushed to the disk, as counted by `strace`. Git is the oracle.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, process, pronto_path};
use crate::system_calls::strace_is_installed;

fn command(program: &Path, top: &Path) -> Command {
    let mut command = process(program);
    command
        .current_dir(top)
        .env("PRONTO_NO_FALLBACK", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@x")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@x");
    command
}

fn run(program: &Path, top: &Path, arguments: &[&str]) {
    let output = command(program, top).args(arguments).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn repository(scratch: &Scratch, name: &str) -> PathBuf {
    let top = scratch.path().join(name);
    run(
        Path::new("git"),
        scratch.path(),
        &["init", "-q", "-b", "main", name],
    );
    fs::write(top.join("file"), "one\n").expect("a file");
    run(Path::new("git"), &top, &["add", "."]);
    run(Path::new("git"), &top, &["commit", "-qm", "one"]);
    top
}

/// Returns the kinds of files that a call flushes, with the system call.
fn flushed(program: &Path, top: &Path, arguments: &[&str]) -> BTreeSet<String> {
    let log = top.join(".git/strace");
    let output = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,sync_file_range,linkat",
            "-o",
        ])
        .arg(&log)
        .arg(program)
        .args(arguments)
        .current_dir(top)
        .envs(
            command(program, top)
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .expect("strace starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let text = fs::read_to_string(&log).expect("strace wrote it");
    // Files that are created without a name get one by a link to their descriptor.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let kinds = text.lines().filter_map(|line| {
        let (call, rest) = line.split_once('(')?;
        let call = call.rsplit(' ').next()?;
        if call == "linkat" {
            let mut quoted = rest.split('"').skip(1).step_by(2);
            let descriptor = quoted.next()?.strip_prefix("/proc/self/fd/")?;
            names.insert(descriptor, quoted.next()?);
            return None;
        }
        let (descriptor, path) = rest.split_once('<')?;
        let path = path.split_once('>')?.0;
        let path = match path.contains("/#") {
            true => names.get(descriptor)?,
            false => path,
        };
        let kind = match path {
            path if path.ends_with("/index.lock") || path.contains("/index.") => "index",
            path if path.contains("/refs/") || path.contains("HEAD") => "reference",
            path if path.contains("commit-graph") => "commit-graph",
            path if path.contains("/pack/") && path.contains("pack_") => "pack",
            path if path.contains("/pack/") => "pack-metadata",
            path if path.contains("/objects/") => "loose-object",
            other => other,
        };
        Some(format!("{call} {kind}"))
    });
    kinds.collect()
}

#[test]
fn components_are_flushed_as_in_git() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let (theirs, ours) = (repository(&scratch, "theirs"), repository(&scratch, "ours"));
    let values = [
        "none",
        "default",
        "reference",
        "index",
        "loose-object",
        "objects",
        "committed",
        "added",
        "all",
        "all,-reference",
        "none,reference,index",
        "-reference,reference",
        "pack",
    ];
    for method in ["fsync", "writeout-only"] {
        for value in values {
            let settings = [
                "-c".to_owned(),
                format!("core.fsync={value}"),
                "-c".to_owned(),
                format!("core.fsyncMethod={method}"),
                "-c".to_owned(),
                "maintenance.auto=false".to_owned(),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let content = format!("{method} {value}\n");
            let commands: [&[&str]; 3] = [
                &["add", "file"],
                &["commit", "-qm", "two"],
                &["reset", "-q", "--hard", "HEAD~1"],
            ];
            for call in commands {
                for top in [&theirs, &ours] {
                    if call[0] == "add" {
                        fs::write(top.join("file"), &content).expect("a file");
                    }
                }
                let call = [&settings, call].concat();
                assert_eq!(
                    flushed(pronto_path(), &ours, &call),
                    flushed(Path::new("git"), &theirs, &call),
                    "{call:?}"
                );
            }
        }
    }
}

#[test]
fn auxiliary_files_of_packs_have_their_own_component() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let top = repository(&scratch, "repository");
    let cases: [(&str, &[&str]); 5] = [
        ("default", &["fsync pack", "fsync pack-metadata"]),
        ("none", &[]),
        ("none,pack", &["fsync pack"]),
        ("none,pack-metadata", &["fsync pack-metadata"]),
        ("-derived-metadata", &["fsync pack"]),
    ];
    for (value, expected) in cases {
        let setting = format!("core.fsync={value}");
        let call = ["-c", &setting, "repack", "-adfq"];
        let kinds = flushed(pronto_path(), &top, &call);
        assert_eq!(
            kinds,
            expected.iter().map(|kind| (*kind).to_owned()).collect(),
            "{value}"
        );
    }
    for (value, expected) in [
        ("none,commit-graph", 1),
        ("-commit-graph", 0),
        ("default", 1),
    ] {
        let setting = format!("core.fsync={value}");
        let call = ["-c", &setting, "commit-graph", "write"];
        let kinds = flushed(pronto_path(), &top, &call);
        assert_eq!(kinds.len(), expected, "{value}: {kinds:?}");
    }
}

#[test]
fn unknown_components_are_reported() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "repository");
    fs::write(top.join("file"), "two\n").expect("a file");
    let output = command(pronto_path(), &top)
        .args(["-c", "core.fsync=index,nothing", "add", "file"])
        .output()
        .expect("it starts");
    let reported = String::from_utf8_lossy(&output.stderr);
    let warning = "warning: ignoring unknown core.fsync component 'nothing'";
    assert_eq!(reported.matches(warning).count(), 1, "{reported}");
}
