//! What makes a directory a repository, and files that stand in for one.

use std::io::{ErrorKind as Io, Read};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// No file that points to a repository is longer.
const MAX_GIT_FILE_SIZE: u64 = 1 << 20;

/// Whether `directory` is a repository: it has a `HEAD` that could be one, and (it, or the
/// directory it shares with other work trees) objects and refs.
pub(crate) fn is_git_dir(directory: &Path, environment: &Environment) -> bool {
    if !has_valid_head(directory) {
        return false;
    }
    let Ok(common) = common_dir(directory, environment) else {
        return false;
    };
    let may_enter = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    let objects = match environment.path("GIT_OBJECT_DIRECTORY") {
        Some(path) => environment.absolute(path),
        None => common.join("objects"),
    };
    may_enter(&objects) && may_enter(&common.join("refs"))
}

fn has_valid_head(directory: &Path) -> bool {
    let head = directory.join("HEAD");
    let mut start = [0u8; 256];
    let read = std::fs::File::open(&head).and_then(|mut file| file.read(&mut start));
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

/// The directory that the work trees of a repository share: `git_dir` itself unless it has a file
/// `commondir`, or `GIT_COMMON_DIR` names another.
pub(crate) fn common_dir(git_dir: &Path, environment: &Environment) -> Result<PathBuf> {
    if let Some(common) = environment.path("GIT_COMMON_DIR") {
        return Ok(environment.absolute(common));
    }
    let file = git_dir.join("commondir");
    match std::fs::read(&file) {
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

/// What is found at a path where a repository may be.
pub(crate) enum Candidate {
    /// Nothing, or nothing of use.
    Nothing,
    /// A directory.
    Directory,
    /// A file that points to this repository.
    PointsTo(PathBuf),
}

/// Looks at `file`, usually some `.git`. `spoken` is how messages spell it.
///
/// # Errors
/// It is a file but does not point to a repository.
pub(crate) fn look_at(file: &Path, spoken: &Path, env: &Environment) -> Result<Candidate> {
    let Ok(metadata) = std::fs::metadata(file) else {
        return Ok(Candidate::Nothing);
    };
    if metadata.is_dir() {
        return Ok(Candidate::Directory);
    }
    if !metadata.is_file() {
        return Ok(Candidate::Nothing);
    }
    let fail = |message| Err(Error::new(ErrorKind::NotARepository, message));
    let said = spoken.display();
    if metadata.len() > MAX_GIT_FILE_SIZE {
        return fail(format!("too large to be a .git file: '{said}'"));
    }
    let bytes = std::fs::read(file).map_err(|error| {
        Error::new(ErrorKind::Io, format!("error opening '{said}'")).because(error)
    })?;
    let Some(target) = bytes.strip_prefix(b"gitdir: ") else {
        return fail(format!("invalid gitfile format: {said}"));
    };
    let target = target.trim_end_with(|c| c == '\n' || c == '\r');
    if target.is_empty() {
        return fail(format!("no path in gitfile: {said}"));
    }
    let target = path::borrow(target);
    let beside = |file: &Path| file.with_file_name("").join(target);
    let full = beside(file);
    if !is_git_dir(&full, env) {
        return fail(format!(
            "not a git repository: {}",
            beside(spoken).display()
        ));
    }
    Ok(Candidate::PointsTo(
        std::fs::canonicalize(&full).unwrap_or(full),
    ))
}
