//! Repositories that are separate from their worktree (`--separate-git-dir`).

use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_config::git_dir::{self, GitDirCandidate};
use pronto_io::error::{IoContext, OsReason};
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// Moves the repository at `link`, or the one to which the file `link` points, to `git_dir`, and leaves
/// a file `link` that points to `git_dir`. The pointers of linked worktrees are updated.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if `link` is neither a repository nor a file that points to
/// one, or [`ErrorKind::Io`] if a file cannot be moved or written.
pub(super) fn separate(link: &Path, git_dir: PathBuf, env: &Environment) -> Result<PathBuf> {
    let source = match git_dir::look_at(link, link, env)? {
        GitDirCandidate::Nothing => None,
        GitDirCandidate::Directory => Some(link.to_owned()),
        GitDirCandidate::PointsTo(target) => Some(target),
        GitDirCandidate::Special => {
            let message = format!("unable to handle file type of '{}'", link.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    };
    if let Some(source) = source {
        std::fs::rename(&source, &git_dir).map_err(|error| {
            let (from, to) = (source.display(), git_dir.display());
            let message = format!("unable to move {from} to {to}");
            Error::new(ErrorKind::Io, message).because(OsReason(error))
        })?;
        let entries = std::fs::read_dir(git_dir.join("worktrees"));
        for entry in entries.into_iter().flatten().flatten() {
            reconnect(&entry.path(), &source)?;
        }
    }
    write(
        link,
        &[b"gitdir: ", path::as_bytes(&git_dir).as_bytes(), b"\n"].concat(),
    )?;
    Ok(git_dir)
}

/// Updates the worktree whose repository directory is now `own_dir` to point to it. The repository was
/// at `old`.
fn reconnect(own_dir: &Path, old: &Path) -> Result<()> {
    let pointer = own_dir.join("gitdir");
    let Ok(text) = untrusted::read(&pointer, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES) else {
        return Ok(());
    };
    let named = path::borrow(text.trim_ascii_end());
    let is_relative = named.is_relative();
    let file = match (is_relative, own_dir.file_name()) {
        (true, Some(id)) => path::normalize(&old.join("worktrees").join(id).join(named)),
        _ => named.to_owned(),
    };
    if !file.exists() {
        return Ok(());
    }
    let (file, own_dir) = (super::real(&file), super::real(own_dir));
    let top = file.parent().unwrap_or(&file);
    let (there, back) = match is_relative {
        true => (
            path::relative(&own_dir, top),
            path::relative(&file, &own_dir),
        ),
        false => (own_dir, file.clone()),
    };
    write(
        &file,
        &[b"gitdir: ", path::as_bytes(&there).as_bytes(), b"\n"].concat(),
    )?;
    write(
        &pointer,
        &[path::as_bytes(&back).as_bytes(), b"\n"].concat(),
    )
}

fn write(file: &Path, text: &[u8]) -> Result<()> {
    std::fs::write(file, text).context(ErrorKind::Io, "could not open", file)
}
