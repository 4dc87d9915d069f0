//! The state after a run: every file, and every repository as stock git reads it.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::relative;

/// Returns the parts of a snapshot of `work`. `git` creates a git command in a directory, with the
/// environment of the case.
pub(crate) fn of(work: &Path, git: &dyn Fn(&Path) -> Command) -> Vec<(&'static str, String)> {
    let mut files = String::new();
    let mut repositories = Vec::new();
    walk(work, work, &mut files, &mut repositories);
    let mut parts = vec![("files", files)];
    let mut inside = |name, show: &dyn Fn(&Path) -> String| {
        let mut text = String::new();
        for repository in &repositories {
            let shown = relative(work, repository);
            let _ = writeln!(text, "# in {}\n{}", shown.display(), show(repository));
        }
        parts.push((name, text));
    };
    inside("objects", &|repository| objects(&mut git(repository)));
    inside("index entries", &|repository| {
        let indexes = index_files(repository);
        let show = |index: &PathBuf| index_entries(&mut git(repository), index);
        indexes.iter().map(show).collect()
    });
    inside("fsck", &|repository| fsck(&mut git(repository)));
    inside("status", &|repository| match repository.parent() {
        Some(top) if repository.ends_with(".git") && repository.join("index").is_file() => {
            status(&mut git(top))
        }
        _ => String::new(),
    });
    parts
}

/// Runs `git` and returns its standard output followed by its standard error.
fn output(git: &mut Command) -> String {
    let output = git.output().expect("git starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// Lists all objects, sorted.
fn objects(git: &mut Command) -> String {
    git.args(["--git-dir=.", "cat-file", "--batch-all-objects"]);
    git.arg("--unordered");
    git.arg("--batch-check=%(objectname) %(objecttype) %(objectsize)");
    let text = output(git);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Returns the index of a repository and those of its linked worktrees, sorted.
fn index_files(repository: &Path) -> Vec<PathBuf> {
    let worktrees = std::fs::read_dir(repository.join("worktrees"));
    let mut linked: Vec<PathBuf> = (worktrees.into_iter().flatten().flatten())
        .map(|entry| entry.path().join("index"))
        .collect();
    linked.sort();
    let all = std::iter::once(repository.join("index")).chain(linked);
    all.filter(|index| index.is_file()).collect()
}

fn index_entries(git: &mut Command, index: &Path) -> String {
    git.env("GIT_INDEX_FILE", index);
    git.args(["--git-dir=.", "--work-tree=/", "ls-files", "-s", "-v"]);
    output(git.arg("--full-name"))
}

fn fsck(git: &mut Command) -> String {
    output(git.args(["--git-dir=.", "fsck", "--full", "--strict", "--no-dangling"]))
}

/// Returns the status of a worktree. Warnings, which may have several lines, are omitted: their
/// number depends on the entries that git has to read again, and so on timing.
fn status(git: &mut Command) -> String {
    git.env("GIT_OPTIONAL_LOCKS", "0");
    git.args(["status", "--porcelain=v2", "--branch"]);
    let output = git.output().expect("git starts");
    let text = match output.status.success() {
        true => output.stdout,
        false => output.stderr,
    };
    String::from_utf8_lossy(&text).into_owned()
}

/// Lists `directory` recursively in the order of names, and finds the git directories in it.
fn walk(work: &Path, directory: &Path, out: &mut String, repositories: &mut Vec<PathBuf>) {
    let is_repository = ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| directory.join(name).exists());
    if is_repository {
        repositories.push(directory.to_owned());
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        let _ = writeln!(
            out,
            "{} cannot be listed",
            relative(work, directory).display()
        );
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let shown = relative(work, &path);
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_symlink() {
            let target = std::fs::read_link(&path).unwrap_or_default();
            let _ = writeln!(out, "{} -> {}", shown.display(), target.display());
        } else if metadata.is_dir() {
            let _ = writeln!(out, "{}/ {mode:o}", shown.display());
            if !(is_repository && path.ends_with("objects")) {
                walk(work, &path, out, repositories);
            }
        } else if is_index(&path) {
            let _ = writeln!(out, "{} {mode:o} (an index)", shown.display());
        } else {
            let content = std::fs::read(&path).unwrap_or_default();
            let _ = writeln!(out, "{} {mode:o} {}", shown.display(), show(&content));
        }
    }
}

/// Returns whether a file is an index. An index contains times and inode numbers, so its entries
/// are compared and not its bytes.
fn is_index(path: &Path) -> bool {
    let inside_git_directory = path
        .parent()
        .is_some_and(|parent| parent.join("HEAD").exists());
    inside_git_directory && path.file_name().is_some_and(|name| name == "index")
}

/// Formats short text literally, and other content as a length and a checksum.
fn show(content: &[u8]) -> String {
    match std::str::from_utf8(content) {
        Ok(text) if text.len() <= 2000 => format!("{text:?}"),
        _ => {
            let sum = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
            });
            format!("{} bytes, FNV {sum:016x}", content.len())
        }
    }
}
