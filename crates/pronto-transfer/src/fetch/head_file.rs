//! Writes `FETCH_HEAD`, the refs of the last fetch, for `git merge` and `git pull`.

use std::fs;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;

use super::FetchRun;
use super::map::{FetchHeadKind, FetchedRef};
use crate::lock::{Lock, PATIENCE};
use crate::{ErrorKind, Repository, Result};

/// Empties or creates the file.
pub(super) fn truncate(repository: &Repository) -> Result<()> {
    let file = repository.git_path("FETCH_HEAD");
    let display_path = repository.display_path(&file);
    fs::write(&file, "").context(ErrorKind::Io, "cannot open", display_path)
}

/// Replaces the contents of the file by `entries` atomically, or appends them with `--append`.
pub(super) fn write(work: &FetchRun<'_>, entries: &[&FetchedRef]) -> Result<()> {
    let file = work.repository.git_path("FETCH_HEAD");
    let mut lock = Lock::acquire(&file, PATIENCE)?.recorded(work.repository.config());
    let mut text = Vec::new();
    if work.options.append {
        match fs::read(&file) {
            Ok(before) => text = before,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            failed => text = failed.context(ErrorKind::Io, "cannot open", &file)?,
        }
    }
    for entry in entries {
        let mark: &[u8] = match entry.merge {
            FetchHeadKind::Merge => b"",
            FetchHeadKind::NotForMerge => b"not-for-merge",
            FetchHeadKind::Ignore => continue,
        };
        text.extend_from_slice(entry.id.to_hex().to_string().as_bytes());
        text.push(b'\t');
        text.extend_from_slice(mark);
        text.push(b'\t');
        let (kind, what) = described(entry.name.as_bstr());
        if !what.is_empty() {
            if !kind.is_empty() {
                text.extend_from_slice(kind.as_bytes());
                text.push(b' ');
            }
            text.extend_from_slice(&[b"'", what.as_bytes(), b"' of "].concat());
        }
        text.extend_from_slice(&work.url.replace("\n", "\\n"));
        text.push(b'\n');
    }
    lock.write_and_close(&text)?;
    lock.commit()
}

/// Returns the kind of a ref (`branch`, `tag`, …), and its short name.
pub(super) fn described(name: &BStr) -> (&'static str, &BStr) {
    if name == "HEAD" {
        return ("", "".into());
    }
    let kinds: [(&[u8], &str); 3] = [
        (b"refs/heads/", "branch"),
        (b"refs/tags/", "tag"),
        (b"refs/remotes/", "remote-tracking branch"),
    ];
    for (prefix, kind) in kinds {
        if let Some(short) = name.strip_prefix(prefix) {
            return (kind, short.as_bstr());
        }
    }
    ("", name)
}
