//! The worktrees of a repository: the main one and the linked ones (git-worktree(1)).
//!
//! A linked worktree has a directory of its own in the repository, `worktrees/ID`. The file
//! `gitdir` in it contains the place of the worktree's `.git`, which is a file that points back.

mod add;
mod carry;
mod in_use;
mod locks;
mod prune;
mod relocate;
mod remove;
mod repair;

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::error::OsReason;
use pronto_io::untrusted;

use crate::refs::Resolved;
use crate::{Error, ErrorKind, Repository, Result, path};

pub use add::{AddOptions, AddOutcome, Added, Addition, Branching, Preparation};
pub use carry::Carry;
pub(crate) use in_use::branches_in_progress;
pub use locks::LockState;
pub use pronto_io::dir::Sharing;
pub use prune::{Pruned, Verdict};

pub use crate::expiry::Expiry;
pub use remove::Removed;
pub use repair::Repair;

use crate::siblings::DIRECTORY;

/// A worktree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// The name of its directory below `worktrees`; `None` for the main one.
    pub id: Option<BString>,
    /// Its top as recorded if that is an absolute path; for a bare repository its directory.
    pub path: BString,
    /// Whether the repository is bare, without files.
    pub is_bare: bool,
    /// The state of its `HEAD`.
    pub head: HeadState,
}

/// The `HEAD` of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// It cannot be read.
    Broken,
    /// Detached at a commit; `None` if the file is missing.
    Detached(Option<ObjectId>),
    /// On a ref, by its full name, and its commit.
    Branch(BString, Option<ObjectId>),
}

impl HeadState {
    /// Returns the commit, if there is one.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            HeadState::Broken => None,
            HeadState::Detached(id) | HeadState::Branch(_, id) => *id,
        }
    }
}

impl WorkTree {
    /// Returns whether it is the main worktree.
    pub fn is_main(&self) -> bool {
        self.id.is_none()
    }

    /// Returns the file at its top that points to the repository.
    fn git_file(&self) -> PathBuf {
        path::borrow(&self.path).join(".git")
    }
}

impl Repository {
    /// Returns all worktrees: the main one first, the others in the order of the directory. Costs
    /// two reads for each.
    ///
    /// # Errors
    /// The place of the main one cannot be determined. Broken linked worktrees are no error.
    pub fn work_trees(&self) -> Result<Vec<WorkTree>> {
        let common = canonical(self.common_dir())?;
        let place = path::as_bytes(&common);
        let mut found = vec![WorkTree {
            id: None,
            path: place.strip_suffix(b"/.git").unwrap_or(place).into(),
            is_bare: self.config().bool_or("core.bare", false)? || self.is_bare(),
            head: self.head_of(b"main-worktree/HEAD".as_bstr()),
        }];
        for id in self.linked_ids() {
            let Ok(recorded) = untrusted::content(self.own_dir(id.as_bstr()).join("gitdir")) else {
                continue;
            };
            if recorded.is_empty() {
                continue;
            }
            let place = self.recorded_place(id.as_bstr(), recorded.trim_ascii_end());
            found.push(WorkTree {
                path: place.strip_suffix(b"/.git").unwrap_or(&place).into(),
                is_bare: false,
                head: self.head_of([b"worktrees/", id.as_slice(), b"/HEAD"].concat().as_bstr()),
                id: Some(id),
            });
        }
        Ok(found)
    }

    /// Returns the names of the directories of linked worktrees, in the order of the directory.
    fn linked_ids(&self) -> Vec<BString> {
        let listing = std::fs::read_dir(self.common_dir().join(DIRECTORY));
        let entries = listing.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .map(|name| path::as_bytes(Path::new(&name)).to_owned())
            .collect()
    }

    /// Returns the directory for the worktree `id`'s own files.
    fn own_dir(&self, id: &BStr) -> PathBuf {
        self.common_dir().join(DIRECTORY).join(path::borrow(id))
    }

    /// The absolute path that is `recorded` for the worktree `id`.
    fn recorded_place(&self, id: &BStr, recorded: &[u8]) -> BString {
        if recorded.starts_with(b"/") {
            return recorded.into();
        }
        let common = canonical(self.common_dir()).unwrap_or_else(|_| self.common_dir().to_owned());
        let own = common.join(DIRECTORY).join(path::borrow(id));
        let place = path::normalize(&own.join(path::borrow(recorded)));
        path::as_bytes(&place).to_owned()
    }

    /// Returns [`own_dir`](Self::own_dir) in the form of messages.
    fn spoken_own_dir(&self, id: &BStr) -> PathBuf {
        self.spoken(&self.own_dir(id))
    }

    fn head_of(&self, name: &BStr) -> HeadState {
        match self.refs().resolve(name) {
            Err(_) => HeadState::Broken,
            Ok(None) => HeadState::Detached(None),
            Ok(Some(Resolved {
                id,
                is_symbolic: false,
                ..
            })) => HeadState::Detached(id),
            Ok(Some(Resolved { name, id, .. })) => HeadState::Branch(name, id),
        }
    }

    /// Returns the worktree of `all` that `argument` names: the unique end of a path, or a path
    /// relative to the current directory.
    pub fn find_work_tree<'a>(&self, all: &'a [WorkTree], argument: &BStr) -> Option<&'a WorkTree> {
        let ends_so = |candidate: &&WorkTree| {
            let place = &candidate.path;
            let start = place.len().checked_sub(argument.len());
            start.is_some_and(|start| {
                (start == 0 || place[start - 1] == b'/')
                    && self.is_same_path(place[start..].as_bstr(), argument)
            })
        };
        if !argument.is_empty() {
            let mut candidates = all.iter().filter(ends_so);
            if let (Some(only), None) = (candidates.next(), candidates.next()) {
                return Some(only);
            }
        }
        if argument.is_empty() && self.prefix().is_none() {
            return None;
        }
        self.work_tree_at(all, &self.environment().absolute(path::borrow(argument)))
    }

    /// Returns the worktree of `all` at `place`, following symbolic links.
    fn work_tree_at<'a>(&self, all: &'a [WorkTree], place: &Path) -> Option<&'a WorkTree> {
        let place = real(place)?;
        all.iter().find(|candidate| {
            real(path::borrow(&candidate.path)).is_some_and(|found| {
                self.is_same_path(path::as_bytes(&found), path::as_bytes(&place))
            })
        })
    }

    fn is_same_path(&self, one: &BStr, other: &BStr) -> bool {
        match self.ignores_case() {
            Ok(true) => one.eq_ignore_ascii_case(other),
            _ => one == other,
        }
    }

    /// Returns `argument` in the form of messages: relative to the top of the worktree.
    fn spoken_argument(&self, argument: &BStr) -> BString {
        match argument.first() {
            Some(b'/') => argument.to_owned(),
            _ => [self.prefix_or_empty().as_slice(), argument]
                .concat()
                .into(),
        }
    }

    /// Finds the linked worktree that `argument` names.
    fn linked_work_tree(&self, all: &[WorkTree], argument: &BStr) -> Result<(WorkTree, BString)> {
        let Some(found) = self.find_work_tree(all, argument) else {
            return Err(refused(format!("'{argument}' is not a working tree")));
        };
        match &found.id {
            Some(id) => Ok((found.clone(), id.clone())),
            None => Err(refused(format!("'{argument}' is a main working tree"))),
        }
    }
}

/// Returns `path`, which must exist, without symbolic links.
fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("Invalid path '{}'", path.display());
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })
}

/// Returns `path` without symbolic links; its last component need not exist.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Some(real);
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = std::fs::canonicalize(path.parent()?).ok()?;
            Some(parent.join(path.file_name()?))
        }
        _ => None,
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

/// Returns whether something exists at `path`, including a dangling link.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Replaces the file as a whole.
fn replace_file(file: &Path, content: &[u8]) -> Result<()> {
    let mut lock = crate::lock::Lock::acquire(file, crate::lock::PATIENCE)?;
    lock.write_and_close(content)?;
    lock.commit()
}

/// Returns `line` with a line feed at its end, unless it is empty.
fn as_line(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    if line.last().is_some_and(|last| *last != b'\n') {
        line.push(b'\n');
    }
    line
}
