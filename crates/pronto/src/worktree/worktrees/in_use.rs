//! Branches that other worktrees of the repository have checked out.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, Links};

use crate::refs::Target;
use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// Returns the commits of the `HEAD`s of all worktrees, that of this one first. Unborn branches
    /// are left out.
    ///
    /// # Errors
    /// A `HEAD`, or the list of worktrees, cannot be read.
    pub fn work_tree_heads(&self) -> Result<Vec<ObjectId>> {
        let mut names: Vec<BString> = vec!["HEAD".into(), "main-worktree/HEAD".into()];
        let directory = self.common_dir().join("worktrees");
        let unreadable = |error: std::io::Error| {
            let message = format!("failed to read '{}'", directory.display());
            Error::new(ErrorKind::Io, message).because(error)
        };
        let listing = match std::fs::read_dir(&directory) {
            Ok(listing) => Some(listing),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(error)),
        };
        for entry in listing.into_iter().flatten() {
            let entry = entry.map_err(unreadable)?;
            // Without this file it is no worktree.
            if entry.path().join("gitdir").is_file() {
                let file_name = entry.file_name();
                let name = path::as_bytes(Path::new(&file_name));
                names.push([b"worktrees/", name.as_bytes(), b"/HEAD"].concat().into());
            }
        }
        let mut found = Vec::new();
        for name in names {
            let id = self.refs().id_of(&name)?;
            found.extend(id.filter(|id| !found.contains(id)));
        }
        Ok(found)
    }

    /// Refuses a branch that another worktree (or with `anywhere` this one) has checked out, or is
    /// rebasing or bisecting.
    pub(crate) fn refuse_branch_in_use(&self, full: &BStr, anywhere: bool) -> Result<()> {
        match self.work_tree_using(full, anywhere) {
            None => Ok(()),
            Some(place) => {
                let short = full.strip_prefix(b"refs/heads/").unwrap_or(full).as_bstr();
                let place = place.display();
                let message = format!("'{short}' is already checked out at '{place}'");
                Err(Error::new(ErrorKind::Refused, message))
            }
        }
    }

    /// The worktree that has the branch checked out, other than this one unless `anywhere`.
    pub fn work_tree_using(&self, full: &BStr, anywhere: bool) -> Option<PathBuf> {
        let common = self.common_dir();
        let mut places = vec![common.to_owned()];
        if let Ok(listing) = std::fs::read_dir(common.join("worktrees")) {
            places.extend(listing.flatten().map(|entry| entry.path()));
        }
        places
            .into_iter()
            .filter(|git_dir| anywhere || git_dir != self.git_dir())
            .filter(|git_dir| self.uses(git_dir, full))
            .find_map(|git_dir| self.top_of(&git_dir))
    }

    /// Whether the worktree of `git_dir` has the branch checked out, or rebases or bisects it.
    fn uses(&self, git_dir: &Path, full: &BStr) -> bool {
        let holds = |file: &str, wanted: &BStr| {
            untrusted::read(&git_dir.join(file), Links::Follow, LARGEST_POINTER_BYTES)
                .is_ok_and(|content| content.trim_end().as_bstr() == wanted)
        };
        let short = full.strip_prefix(b"refs/heads/").unwrap_or(full).as_bstr();
        self.branch_of(git_dir).is_some_and(|branch| branch == full)
            || holds("rebase-merge/head-name", full)
            || holds("rebase-apply/head-name", full)
            || holds("BISECT_START", short)
    }

    /// The ref that `HEAD` of the worktree of `git_dir` points to.
    pub(crate) fn branch_of(&self, git_dir: &Path) -> Option<BString> {
        if self.refs().tables().is_none() {
            let head = git_dir.join("HEAD");
            let content = untrusted::read(&head, Links::Follow, LARGEST_POINTER_BYTES).ok()?;
            return Some(content.trim_end().strip_prefix(b"ref: ")?.into());
        }
        let name: BString = match git_dir.strip_prefix(self.common_dir().join("worktrees")) {
            Ok(id) => [b"worktrees/", path::as_bytes(id).as_bytes(), b"/HEAD"]
                .concat()
                .into(),
            Err(_) => "main-worktree/HEAD".into(),
        };
        match self.refs().find(&name).ok()??.target {
            Target::Symbolic(branch) => Some(branch.into_inner()),
            Target::Object(_) => None,
        }
    }

    fn top_of(&self, git_dir: &Path) -> Option<PathBuf> {
        if git_dir == self.common_dir() {
            // A bare repository has no worktree that could use anything.
            let bare = self.config().bool_or("core.bare", false).unwrap_or(false);
            let top = match git_dir.file_name() {
                Some(name) if name == ".git" => git_dir.parent().unwrap_or(git_dir),
                _ => git_dir,
            };
            return (!bare).then(|| top.to_owned());
        }
        let back = untrusted::read(
            &git_dir.join("gitdir"),
            Links::Follow,
            LARGEST_POINTER_BYTES,
        )
        .ok()?;
        let back = back.trim_ascii_end();
        let top = path::borrow(back.strip_suffix(b"/.git").unwrap_or(back));
        Some(match top.is_absolute() {
            true => top.to_owned(),
            false => path::normalize(&git_dir.join(top)),
        })
    }
}

/// The branches that a rebase or a bisection in the worktree with the directory `git_dir` will move,
/// or return to.
pub(crate) fn branches_in_progress(git_dir: &Path) -> Vec<BString> {
    let text = |name: &str| untrusted::content(git_dir.join(name)).unwrap_or_default();
    let mut found: Vec<BString> = Vec::new();
    for name in ["rebase-merge/head-name", "rebase-apply/head-name"] {
        let full = text(name);
        found.extend(Some(full.trim_end().into()).filter(|full: &BString| is_branch(full)));
    }
    // Each reference of the file is followed by the lines of its two ids.
    let moved = text("rebase-merge/update-refs");
    let moved = moved.lines().map(BString::from);
    found.extend(moved.filter(is_branch));
    let start = text("BISECT_START");
    if !start.is_empty() {
        found.push([b"refs/heads/", start.trim_end()].concat().into());
    }
    found
}

fn is_branch(name: &BString) -> bool {
    name.starts_with(b"refs/heads/")
}
