//! The work trees of a repository: the main one, and those that are linked to it (git-worktree(1)).
//!
//! What a linked work tree has of its own is in a directory of the repository, `worktrees/ID`; a
//! file there, `gitdir`, says where its `.git` is, which is a file that points back.

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
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, Links};
use pronto_worktree::checkout;

use crate::refs::Resolved;
use crate::{Error, ErrorKind, Repository, Result, path};

pub use add::{AddOptions, AddOutcome, Added, Addition, Branching, Preparation};
pub use carry::Carry;
pub(crate) use in_use::branches_in_progress;
pub use locks::LockState;
pub use pronto_io::dir::Sharing;
pub use prune::{Expiry, Pruned, Verdict};
pub use remove::Removed;
pub use repair::Repair;

/// The directory of the repository that has one for each linked work tree.
const DIRECTORY: &str = "worktrees";

/// One of the work trees of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// The name of its directory below `worktrees`; `None` for the main one.
    pub id: Option<BString>,
    /// Its top, as it is recorded if that is an absolute path; of a bare repository its directory.
    pub path: BString,
    /// It has no files: the repository is bare.
    pub is_bare: bool,
    /// Where its `HEAD` is.
    pub head: HeadState,
}

/// Where the `HEAD` of a work tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// It cannot be read.
    Broken,
    /// On a commit; `None` if the file is not there.
    Detached(Option<ObjectId>),
    /// On a reference, by its full name, and the commit that holds.
    Branch(BString, Option<ObjectId>),
}

impl HeadState {
    /// The commit, if there is one.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            HeadState::Broken => None,
            HeadState::Detached(id) | HeadState::Branch(_, id) => *id,
        }
    }
}

impl WorkTree {
    /// Whether it is the main one.
    pub fn is_main(&self) -> bool {
        self.id.is_none()
    }

    /// The file at its top that points to the repository.
    fn git_file(&self) -> PathBuf {
        path::borrow(&self.path).join(".git")
    }
}

impl Repository {
    /// All work trees: the main one first, the others as the directory lists them. Costs two reads
    /// for each.
    ///
    /// # Errors
    /// The main one's place cannot be told. What is broken in one of the others is no error.
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

    /// The names of the directories of linked work trees, in the order of the directory.
    fn linked_ids(&self) -> Vec<BString> {
        let listing = std::fs::read_dir(self.common_dir().join(DIRECTORY));
        let entries = listing.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .map(|name| path::as_bytes(Path::new(&name)).to_owned())
            .collect()
    }

    /// The directory in which the work tree `id` has what is its own.
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

    /// [`own_dir`](Self::own_dir) as messages spell it.
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

    /// The one of `all` that `argument` means: the end of a path that only one has, or a path from
    /// where the caller stands.
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

    /// The one of `all` at `place`, symbolic links followed.
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

    /// `argument` as messages spell it: from the top of the work tree.
    fn spoken_argument(&self, argument: &BStr) -> BString {
        match argument.first() {
            Some(b'/') => argument.to_owned(),
            _ => [self.prefix_or_empty().as_slice(), argument]
                .concat()
                .into(),
        }
    }

    /// The linked work tree that `argument` means, for a command about one of them.
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

/// `path`, which is there, without symbolic links.
fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("Invalid path '{}'", path.display());
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })
}

/// `path` without symbolic links; its last component need not exist.
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

/// The work trees of the repository at `common` but that of `own`, the one last used first.
pub(crate) fn siblings(common: &Path, own: &Path) -> Vec<checkout::Place> {
    let mut found = Vec::new();
    let mut add = |top: PathBuf, index: PathBuf| {
        if let Ok(used) = std::fs::metadata(&index).and_then(|index| index.modified()) {
            found.push((used, checkout::Place { top, index }));
        }
    };
    let main = common.parent().filter(|_| common.ends_with(".git"));
    if let (Some(top), true) = (main, common != own) {
        add(top.to_owned(), common.join("index"));
    }
    let listing = std::fs::read_dir(common.join(DIRECTORY));
    for entry in listing.into_iter().flatten().flatten() {
        let own_dir = entry.path();
        let Ok(place) = untrusted::read(
            &own_dir.join("gitdir"),
            Links::Follow,
            LARGEST_POINTER_BYTES,
        ) else {
            continue;
        };
        let file = path::normalize(&own_dir.join(path::borrow(place.trim_ascii_end())));
        if let (Some(top), true) = (file.parent(), own_dir != own) {
            add(top.to_owned(), own_dir.join("index"));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.into_iter().map(|(_, place)| place).collect()
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

/// Whether something is there, a link that leads nowhere included.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Replaces the file as a whole.
fn replace_file(file: &Path, content: &[u8]) -> Result<()> {
    let mut lock = crate::lock::Lock::acquire(file, crate::lock::PATIENCE)?;
    lock.write_and_close(content)?;
    lock.commit()
}

/// `line` with a line feed at its end, unless it is empty.
fn as_line(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    if line.last().is_some_and(|last| *last != b'\n') {
        line.push(b'\n');
    }
    line
}
