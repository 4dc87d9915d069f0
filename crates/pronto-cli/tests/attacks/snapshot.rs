//! A snapshot of directories: each path with its type, its mode, and its content or target.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The state of a path in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    File { mode: u32, content: Vec<u8> },
    Directory { mode: u32 },
    Link { target: Vec<u8> },
    Special,
}

pub(crate) type Snapshot = BTreeMap<PathBuf, Entry>;

/// Records every path at and below `path`, except for paths at or below `left_out`. The snapshot of
/// a missing path is empty.
pub(crate) fn take(path: &Path, left_out: &[PathBuf]) -> Snapshot {
    let mut found = Snapshot::new();
    add(path, left_out, &mut found);
    found
}

fn add(path: &Path, left_out: &[PathBuf], found: &mut Snapshot) {
    if left_out.iter().any(|other| other == path) {
        return;
    }
    let Ok(data) = path.symlink_metadata() else {
        return;
    };
    let mode = data.permissions().mode();
    let kind = data.file_type();
    let entry = if kind.is_symlink() {
        let target = std::fs::read_link(path).unwrap_or_default();
        Entry::Link {
            target: target.as_os_str().as_bytes().to_owned(),
        }
    } else if kind.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| add(&entry.path(), left_out, found));
        Entry::Directory { mode }
    } else if kind.is_file() {
        let content = std::fs::read(path).unwrap_or_default();
        Entry::File { mode, content }
    } else {
        Entry::Special
    };
    found.insert(path.to_owned(), entry);
}

/// Returns the differences, one on each line.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot) -> String {
    let mut report = String::new();
    for (path, entry) in before {
        match after.get(path) {
            None => _ = writeln!(report, "  removed: {}", path.display()),
            Some(now) if now != entry => {
                _ = writeln!(report, "  changed: {}: {now:?}", path.display());
            }
            Some(_) => {}
        }
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        _ = writeln!(report, "  created: {}", path.display());
    }
    report
}
