//! Repairs the links between the repository and its worktrees: `git worktree repair`.

use std::fmt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::{DIRECTORY, exists};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_config::git_dir::{GitFileError, read_git_file};

/// A defect of the links between the repository and a worktree. [`Display`](fmt::Display) gives Git's
/// words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// The top of a worktree is not a directory.
    NotADirectory,
    /// The `.git` of a worktree is not a file.
    GitIsNotAFile,
    /// The `.git` file of a worktree is malformed.
    BrokenGitFile,
    /// The `.git` file of a worktree names another directory.
    WrongGitFile,
    /// The given path does not exist.
    InvalidPath,
    /// The repository cannot be determined, because `.git` is not a file.
    NoGitFile,
    /// The repository cannot be determined, because the `.git` file points to something else.
    NoRepository,
    /// The repository cannot be determined, because the `.git` file is malformed.
    UnknownRepository,
    /// The file `gitdir` in the repository cannot be read.
    UnreadablePointer,
    /// The file `gitdir` in the repository names another path.
    WrongPointer,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Defect::NotADirectory => "not a directory",
            Defect::GitIsNotAFile => ".git is not a file",
            Defect::BrokenGitFile => ".git file broken",
            Defect::WrongGitFile => ".git file incorrect",
            Defect::InvalidPath => "not a valid path",
            Defect::NoGitFile => "unable to locate repository; .git is not a file",
            Defect::NoRepository => {
                "unable to locate repository; .git file does not reference a repository"
            }
            Defect::UnknownRepository => "unable to locate repository; .git file broken",
            Defect::UnreadablePointer => "gitdir unreadable",
            Defect::WrongPointer => "gitdir incorrect",
        })
    }
}

/// A defect that was repaired, or that could not be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The defect.
    pub defect: Defect,
    /// The path of the defective file or directory.
    pub place: BString,
    /// Whether the defect was repaired.
    pub is_done: bool,
}

impl Repair {
    fn done(defect: Defect, place: &Path) -> Self {
        Repair {
            defect,
            place: path::as_bytes(place).to_owned(),
            is_done: true,
        }
    }

    fn impossible(defect: Defect, place: &Path) -> Self {
        Repair {
            is_done: false,
            ..Repair::done(defect, place)
        }
    }
}

/// Records the paths of the worktrees at `places` (if empty, of the current directory) in the
/// repository, and the path of the repository in all worktrees. Returns each repair and each
/// failure.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn repair(repository: &Repository, places: &[BString]) -> Result<Vec<Repair>> {
    support::require(repository, Operation::Worktrees)?;
    let mut reported = Vec::new();
    let here = [BString::from(".")];
    let places = match places {
        [] => &here,
        places => places,
    };
    for place in places {
        reported.extend(repair_pointer_to(repository, place.as_bstr())?);
    }
    for work_tree in repository
        .work_trees()?
        .iter()
        .filter(|found| !found.is_main())
    {
        reported.extend(repair_git_file(repository, work_tree)?);
    }
    Ok(reported)
}

/// Repairs the `.git` file of a worktree.
fn repair_git_file(repository: &Repository, work_tree: &super::Worktree) -> Result<Option<Repair>> {
    let top = path::borrow(&work_tree.path);
    if !exists(top) {
        return Ok(None);
    }
    if !top.is_dir() {
        return Ok(Some(Repair::impossible(Defect::NotADirectory, top)));
    }
    let own_dir = repository.own_dir(work_tree.id.as_ref().map_or("".into(), |id| id.as_bstr()));
    let own_dir = super::real(&own_dir).unwrap_or(own_dir);
    let file = work_tree.git_file();
    let defect = match read_git_file(&file, repository.environment()) {
        Err(GitFileError::NotAFile { .. }) => {
            return Ok(Some(Repair::impossible(Defect::GitIsNotAFile, top)));
        }
        Err(_) => Defect::BrokenGitFile,
        Ok(back)
            if super::is_same_path(repository, path::as_bytes(&back), path::as_bytes(&own_dir)) =>
        {
            return Ok(None);
        }
        Ok(_) => Defect::WrongGitFile,
    };
    let line = [b"gitdir: ", path::as_bytes(&own_dir).as_bytes(), b"\n"].concat();
    super::replace_file(&file, &line)?;
    Ok(Some(Repair::done(defect, top)))
}

/// Repairs the file `gitdir` in the repository for the worktree at `given`.
fn repair_pointer_to(repository: &Repository, given: &BStr) -> Result<Option<Repair>> {
    // Unlike in other functions, a path is relative to the top of the worktree.
    if given.is_empty() {
        let message = "The empty string is not a valid path";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let place = repository.environment().resolve(path::borrow(given));
    if is_main_place(repository, &place) {
        return Ok(None);
    }
    let Some(file) = super::real(&place.join(".git")) else {
        let said = path::borrow(given);
        return Ok(Some(Repair::impossible(Defect::InvalidPath, said)));
    };
    let impossible = |defect| Ok(Some(Repair::impossible(defect, &file)));
    let inferred = inferred(repository, &file);
    let own_dir = match (read_git_file(&file, repository.environment()), inferred) {
        // Repository and worktree were copied: another repository also has a worktree of this name,
        // and the `.git` file still points to the original repository.
        (Ok(back), Some(inferred))
            if !super::is_same_path(
                repository,
                path::as_bytes(&back),
                path::as_bytes(&inferred),
            ) =>
        {
            inferred
        }
        (Ok(back), _) => back,
        (Err(GitFileError::NotAFile { .. }), _) => {
            return impossible(Defect::NoGitFile);
        }
        (Err(GitFileError::NotARepository(_)), Some(inferred)) => inferred,
        (Err(GitFileError::NotARepository(_)), None) => return impossible(Defect::NoRepository),
        (Err(_), _) => return impossible(Defect::UnknownRepository),
    };
    let pointer = own_dir.join("gitdir");
    let defect = match pronto_io::untrusted::content(&pointer) {
        Err(_) => Defect::UnreadablePointer,
        Ok(old) => {
            let old = old.trim_ascii_end().as_bstr();
            if super::is_same_path(repository, old, path::as_bytes(&file)) {
                return Ok(None);
            }
            Defect::WrongPointer
        }
    };
    let line = [path::as_bytes(&file).as_bytes(), b"\n"].concat();
    super::replace_file(&pointer, &line)?;
    let own_dir = super::real(&own_dir).unwrap_or(own_dir);
    let line = [b"gitdir: ", path::as_bytes(&own_dir).as_bytes(), b"\n"].concat();
    super::replace_file(&file, &line)?;
    Ok(Some(Repair::done(defect, &pointer)))
}

fn is_main_place(repository: &Repository, place: &Path) -> bool {
    let strip = |place: PathBuf| match place.file_name() {
        Some(name) if name == ".git" => place.parent().map(Path::to_owned).unwrap_or(place),
        _ => place,
    };
    let main = super::real(repository.common_dir()).map(strip);
    let place = super::real(place).map(strip);
    match (main, place) {
        (Some(main), Some(place)) => {
            super::is_same_path(repository, path::as_bytes(&main), path::as_bytes(&place))
        }
        _ => false,
    }
}

/// Returns the administrative directory in this repository with the name that the `.git` file of a
/// worktree contains, because repository and worktree may have been moved or copied together.
fn inferred(repository: &Repository, file: &Path) -> Option<PathBuf> {
    let text = pronto_io::untrusted::content(file).ok()?;
    let target = text.strip_prefix(b"gitdir:")?;
    let id = target.rsplit_once_str("/")?.1.trim_ascii();
    let directory = repository
        .common_dir()
        .join(DIRECTORY)
        .join(path::borrow(id));
    let directory = (!id.is_empty() && directory.is_dir()).then_some(directory)?;
    super::real(&directory)
}
