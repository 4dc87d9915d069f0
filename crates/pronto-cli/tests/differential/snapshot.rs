//! The state after a run: every file, and every repository as stock git sees it.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::relative;

/// The parts of a snapshot of all that is below `work`, `shell` making commands that run in the
/// environment of the case.
pub(crate) fn of(work: &Path, shell: &dyn Fn(&Path) -> Command) -> Vec<(&'static str, String)> {
    let mut files = String::new();
    let mut repositories = Vec::new();
    walk(work, work, &mut files, &mut repositories);
    let mut parts = vec![("files", files)];
    let mut inside = |name, script: &str| {
        let mut text = String::new();
        for repository in &repositories {
            let output = shell(repository)
                .arg("-c")
                .arg(script)
                .output()
                .expect("sh starts");
            let shown = relative(work, repository);
            let _ = writeln!(text, "# in {}", shown.display());
            text.push_str(&String::from_utf8_lossy(&output.stdout));
            text.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        parts.push((name, text));
    };
    inside(
        "objects",
        "git --git-dir=. cat-file --batch-all-objects --unordered \
        --batch-check='%(objectname) %(objecttype) %(objectsize)' | sort",
    );
    inside(
        "index entries",
        "for index in index worktrees/*/index; do test -f \"$index\" || continue; \
        GIT_INDEX_FILE=\"$PWD/$index\" git --git-dir=. --work-tree=/ ls-files -s -v --full-name; done",
    );
    inside(
        "fsck",
        "git --git-dir=. fsck --full --strict --no-dangling 2>&1",
    );
    inside(
        "status",
        "test ! -f index || test \"$(basename \"$PWD\")\" != .git || \
        (cd .. && GIT_OPTIONAL_LOCKS=0 git status --porcelain=v2 --branch 2>&1 \
        | sed '/^warning: /d')",
    );
    parts
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

/// An index holds times and inode numbers: its entries are compared, not its bytes.
fn is_index(path: &Path) -> bool {
    let inside_git_directory = path
        .parent()
        .is_some_and(|parent| parent.join("HEAD").exists());
    inside_git_directory && path.file_name().is_some_and(|name| name == "index")
}

/// Short text as it is, anything else as a length and a checksum.
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
