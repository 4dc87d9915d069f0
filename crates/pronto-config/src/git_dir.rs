//! Recognises repository directories, and `.git` files that point to one.

use std::io::{ErrorKind as Io, Read};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// The content of the file `HEAD` in repositories with reftables, for programs that support only
/// the files format.
pub const HEAD_STUB: &[u8] = b"ref: refs/heads/.invalid\n";

/// Returns whether `directory` is a repository: it has a valid `HEAD`, and `objects` and `refs`
/// exist in it or in the common directory of its worktrees.
pub fn is_git_dir(directory: &Path, environment: &Environment) -> bool {
    if !has_valid_head(directory) {
        return false;
    }
    let Ok(common) = common_dir(directory, environment) else {
        return false;
    };
    let may_enter = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    let objects = match environment.path("GIT_OBJECT_DIRECTORY") {
        // An empty path names no directory.
        Some(path) if path.as_os_str().is_empty() => return false,
        Some(path) => environment.absolute(path),
        None => common.join("objects"),
    };
    may_enter(&objects) && may_enter(&common.join("refs"))
}

fn has_valid_head(directory: &Path) -> bool {
    let head = directory.join("HEAD");
    let mut start = [0u8; 256];
    // A symbolic link is the old form of a symref and is not opened.
    let opened = untrusted::open(&head, SymlinkPolicy::Refuse);
    let read = opened.and_then(|mut file| file.read(&mut start));
    let length = match read {
        Ok(length) => length,
        Err(_) => {
            let target = std::fs::read_link(&head);
            return target.is_ok_and(|target| path::as_bytes(&target).starts_with(b"refs/"));
        }
    };
    let text = &start[..length];
    if let Some(target) = text.strip_prefix(b"ref:") {
        return target.trim_ascii_start().starts_with(b"refs/");
    }
    text.len() >= 40 && text[..40].iter().all(u8::is_ascii_hexdigit)
}

/// Returns the common directory of all worktrees: `GIT_COMMON_DIR` if set, else the directory in
/// the file `commondir`, else `git_dir` itself.
///
/// # Errors
/// Fails if the file `commondir` cannot be read.
pub fn common_dir(git_dir: &Path, environment: &Environment) -> Result<PathBuf> {
    if let Some(common) = environment.path("GIT_COMMON_DIR") {
        if common.as_os_str().is_empty() {
            return Err(Error::new(
                ErrorKind::Io,
                "The empty string is not a valid path",
            ));
        }
        return Ok(environment.absolute(common));
    }
    let file = git_dir.join("commondir");
    match untrusted::read(&file, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES) {
        Ok(bytes) => {
            let target = path::borrow(bytes.trim_end_with(|c| c == '\n' || c == '\r')).to_owned();
            if target.is_absolute() {
                return Ok(target);
            }
            let full = git_dir.join(target);
            Ok(std::fs::canonicalize(&full).unwrap_or_else(|_| path::normalize(&full)))
        }
        Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
            Ok(git_dir.to_owned())
        }
        Err(error) => {
            use pronto_io::error::IoContext;
            Err(error).context(ErrorKind::Io, "failed to read", &file)
        }
    }
}

/// The type of a path at which a repository is searched.
pub enum GitDirCandidate {
    /// The path does not exist, or is not usable.
    Nothing,
    /// The path is neither a file nor a directory.
    Special,
    /// The path is a directory.
    Directory,
    /// The path is a file that points to this repository.
    PointsTo(PathBuf),
}

/// The defect of a `.git` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitFileError {
    /// The file does not exist.
    Missing,
    /// The path is not a file, but a directory or a special file.
    NotAFile {
        /// Whether the path is a directory.
        directory: bool,
    },
    /// The file cannot be opened or read, for this reason.
    Unreadable(String),
    /// The file does not start with `gitdir: `.
    Format,
    /// The file contains no path.
    NoPath,
    /// The path in the file, as written, is not a repository.
    NotARepository(PathBuf),
    /// The file is too large to be a `.git` file.
    TooLarge,
}

impl GitFileError {
    /// Returns Git's error code for the defect (`READ_GITFILE_ERR_*`).
    pub fn number(&self) -> u8 {
        match self {
            GitFileError::Missing => 9,
            GitFileError::NotAFile { directory: false } => 2,
            GitFileError::NotAFile { directory: true } => 10,
            GitFileError::Unreadable(_) => 3,
            GitFileError::Format => 5,
            GitFileError::NoPath => 6,
            GitFileError::NotARepository(_) => 7,
            GitFileError::TooLarge => 8,
        }
    }
}

/// Reads the `.git` file `file` and returns the repository to which it points.
///
/// # Errors
/// Fails with the [`GitFileError`] of the file.
pub fn read_git_file(file: &Path, env: &Environment) -> Result<PathBuf, GitFileError> {
    let metadata = std::fs::metadata(file).map_err(|_| GitFileError::Missing)?;
    if !metadata.is_file() {
        let directory = metadata.is_dir();
        return Err(GitFileError::NotAFile { directory });
    }
    if metadata.len() > LARGEST_POINTER_BYTES {
        return Err(GitFileError::TooLarge);
    }
    let bytes = untrusted::read(file, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES)
        .map_err(|error| GitFileError::Unreadable(pronto_io::error::reason(&error)))?;
    let target = bytes
        .strip_prefix(b"gitdir: ")
        .ok_or(GitFileError::Format)?;
    let target = target.trim_end_with(|c| c == '\n' || c == '\r');
    if target.is_empty() {
        return Err(GitFileError::NoPath);
    }
    let target = path::borrow(target);
    let full = file.with_file_name("").join(target);
    if !is_git_dir(&full, env) {
        return Err(GitFileError::NotARepository(target.to_owned()));
    }
    Ok(std::fs::canonicalize(&full).unwrap_or(full))
}

/// Determines the type of `file`, which is usually called `.git`. `display_path` is its path in messages.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if `file` is a file that does not point to a
/// repository, and with [`ErrorKind::Io`] if the file cannot be read.
pub fn look_at(file: &Path, display_path: &Path, env: &Environment) -> Result<GitDirCandidate> {
    let said = display_path.display();
    let message = match read_git_file(file, env) {
        Ok(target) => return Ok(GitDirCandidate::PointsTo(target)),
        Err(GitFileError::Missing) => return Ok(GitDirCandidate::Nothing),
        Err(GitFileError::NotAFile { directory: true }) => return Ok(GitDirCandidate::Directory),
        Err(GitFileError::NotAFile { directory: false }) => return Ok(GitDirCandidate::Special),
        Err(GitFileError::Unreadable(reason)) => {
            let message = format!("error opening '{said}': {reason}");
            return Err(Error::new(ErrorKind::Io, message));
        }
        Err(GitFileError::TooLarge) => format!("too large to be a .git file: '{said}'"),
        Err(GitFileError::Format) => format!("invalid gitfile format: {said}"),
        Err(GitFileError::NoPath) => format!("no path in gitfile: {said}"),
        Err(GitFileError::NotARepository(target)) => {
            let place = display_path.with_file_name("").join(target);
            format!("not a git repository: {}", place.display())
        }
    };
    Err(Error::new(ErrorKind::NotARepository, message))
}
