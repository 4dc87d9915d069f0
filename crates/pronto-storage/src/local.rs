//! Copies the objects of a repository on the same machine: by hard links, copies, or as an alternate
//! (`git clone --local`, `--shared`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_config::path;
use pronto_io::error::IoContext;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};
use pronto_repository::{Error, ErrorKind, Result};

/// The largest depth of nested object directories.
const MAX_DEPTH: usize = 16;

/// Links all object files of `source` into `target`. Files are copied if `may_link` is false
/// (`--no-hardlinks`) or links are not possible. Symbolic links are refused, because they could point
/// anywhere.
///
/// # Errors
/// Fails with [`ErrorKind::Unsafe`] for a symbolic link, or [`ErrorKind::Io`] if a directory cannot be
/// read or a file cannot be linked or copied.
pub fn link_objects(source: &Path, target: &Path, may_link: bool) -> Result<()> {
    let metadata = source.symlink_metadata();
    let metadata = metadata.context(ErrorKind::Io, "failed to stat", source)?;
    if metadata.file_type().is_symlink() && source.read_link().is_ok() {
        let message = format!(
            "'{}' is a symlink, refusing to clone with --local",
            source.display()
        );
        return Err(Error::new(ErrorKind::Unsafe, message));
    }
    let mut may_link = may_link;
    link_directory(source, target, &mut may_link, 0)
}

fn link_directory(source: &Path, target: &Path, may_link: &mut bool, depth: usize) -> Result<()> {
    fs::create_dir_all(target).context(ErrorKind::Io, "failed to create directory", target)?;
    let entries = fs::read_dir(source);
    let entries = entries.context(ErrorKind::Io, "failed to start iterator over", source)?;
    for entry in entries {
        let entry = entry.context(ErrorKind::Io, "failed to iterate over", source)?;
        let name = entry.file_name();
        let (from, to) = (entry.path(), target.join(&name));
        let kind = entry
            .file_type()
            .context(ErrorKind::Io, "failed to stat", &from)?;
        if kind.is_symlink() {
            return Err(refused(&from));
        }
        if kind.is_dir() {
            if depth < MAX_DEPTH {
                link_directory(&from, &to, may_link, depth + 1)?;
            }
        } else if from.ends_with("info/alternates") {
            copy_alternates(&from, &to)?;
        } else {
            link_file(&from, &to, may_link)?;
        }
    }
    Ok(())
}

fn refused(path: &Path) -> Error {
    let message = format!(
        "symlink '{}' exists, refusing to clone with --local",
        path.display()
    );
    Error::new(ErrorKind::Unsafe, message)
}

fn link_file(from: &Path, to: &Path, may_link: &mut bool) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    if *may_link {
        match fs::hard_link(from, to) {
            Ok(()) => {
                // Another user may have replaced the file in the meantime, possibly by a link.
                let (ours, theirs) = (to.symlink_metadata(), from.symlink_metadata());
                if let (Ok(ours), Ok(theirs)) = (ours, theirs)
                    && (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
                    && ours.is_file()
                {
                    return Ok(());
                }
                let message = format!("hardlink different from source at '{}'", to.display());
                return Err(Error::new(ErrorKind::Unsafe, message));
            }
            // Hard links are not possible to this file system, so that all further files are copied.
            Err(_) => *may_link = false,
        }
    }
    copy_file(from, to).context(ErrorKind::Io, "failed to copy file to", to)
}

/// Copies a file with its permissions and modification time. If a symbolic link has replaced the file,
/// the link is not followed.
///
/// # Errors
/// Fails if the file cannot be read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = untrusted::open(from, SymlinkPolicy::Refuse)?;
    let metadata = source.metadata()?;
    let mut target = fs::File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(metadata.permissions())?;
    // Only pruning uses the modification time of an object.
    let _ = metadata.modified().map(|time| target.set_modified(time));
    Ok(())
}

/// Copies a list of alternates. Relative paths are resolved against the source.
fn copy_alternates(from: &Path, to: &Path) -> Result<()> {
    let text = untrusted::read(from, SymlinkPolicy::Refuse, LARGEST_POINTER_BYTES);
    let text = text.context(ErrorKind::Io, "failed to read", from)?;
    let objects = from.parent().and_then(Path::parent).unwrap_or(from);
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let absolute = path::normalize(&objects.join(path::borrow(line)));
        lines.push(absolute);
    }
    add_alternates(to, &lines)
}

/// Adds object directories to the file `list` (`objects/info/alternates`).
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file cannot be written.
pub fn add_alternates(list: &Path, directories: &[PathBuf]) -> Result<()> {
    let mut text = fs::read(list).unwrap_or_default();
    for directory in directories {
        let line = path::as_bytes(directory);
        if !text.lines().any(|found| found == line.as_bytes()) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    fs::write(list, text).context(ErrorKind::Io, "unable to write", list)
}

/// Returns the object directory of the repository at `git_dir`. For the repository of a linked
/// worktree, this is a real path; otherwise the path begins with `git_dir`, unchanged.
pub fn objects_of(git_dir: &Path) -> PathBuf {
    let common = match untrusted::read(
        &git_dir.join("commondir"),
        SymlinkPolicy::Follow,
        LARGEST_POINTER_BYTES,
    ) {
        Ok(text) => {
            let common = git_dir.join(path::borrow(text.trim_end()));
            fs::canonicalize(&common).unwrap_or_else(|_| path::normalize(&common))
        }
        Err(_) => git_dir.to_owned(),
    };
    common.join("objects")
}
