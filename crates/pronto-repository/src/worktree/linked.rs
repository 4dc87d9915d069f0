//! The worktrees of a repository, and the branches that are checked out in them.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::error::OsReason;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use crate::config::{ConfigOrigin, ConfigScope, Loader, OriginKind};
use crate::environment::Environment;
use crate::in_progress::{BISECT_START_FILE, REBASED_BRANCH_FILES, REBASED_REFS_FILE};
use crate::refs::{RefTarget, ResolvedRef};
use crate::siblings::DIRECTORY;
use crate::{Error, ErrorKind, Repository, Result, path};

/// A worktree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// The name of its directory below `worktrees`; `None` for the main worktree.
    pub id: Option<BString>,
    /// The recorded path of its top as an absolute path; for a bare repository the repository
    /// directory.
    pub path: BString,
    /// Whether the repository is bare, without a worktree.
    pub is_bare: bool,
    /// The state of its `HEAD`.
    pub head: HeadState,
}

/// The `HEAD` of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// The file or ref `HEAD` cannot be read.
    Broken,
    /// `HEAD` is detached at a commit; `None` if the file is missing.
    Detached(Option<ObjectId>),
    /// `HEAD` points to the branch with this full name, and to its commit if the branch is not unborn.
    Branch(BString, Option<ObjectId>),
}

impl HeadState {
    /// Returns the commit of `HEAD`, if there is one.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            HeadState::Broken => None,
            HeadState::Detached(id) | HeadState::Branch(_, id) => *id,
        }
    }
}

impl Worktree {
    /// Returns whether this is the main worktree.
    pub fn is_main(&self) -> bool {
        self.id.is_none()
    }

    /// Returns the path of `.git` at its top.
    pub fn git_file(&self) -> PathBuf {
        path::borrow(&self.path).join(".git")
    }
}

/// Returns `path`, which must exist, without symbolic links.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if `path` does not exist, or a directory on the path cannot be
/// searched.
pub fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("Invalid path '{}'", path.display());
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })
}

impl Repository {
    /// Returns all worktrees: the main worktree first, then the others in the order of the directory
    /// listing. Costs two reads for each worktree.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the path of the main worktree cannot be determined. Broken
    /// linked worktrees are skipped.
    pub fn work_trees(&self) -> Result<Vec<Worktree>> {
        let common = canonical(self.common_dir())?;
        let place = path::as_bytes(&common);
        let mut found = vec![Worktree {
            id: None,
            path: place.strip_suffix(b"/.git").unwrap_or(place).into(),
            is_bare: self.has_bare_main()? || self.is_bare(),
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
            found.push(Worktree {
                path: place.strip_suffix(b"/.git").unwrap_or(&place).into(),
                is_bare: false,
                head: self.head_of([b"worktrees/", id.as_slice(), b"/HEAD"].concat().as_bstr()),
                id: Some(id),
            });
        }
        Ok(found)
    }

    /// Returns whether the main repository is bare, according to its own `config.worktree` or the
    /// shared configuration.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `core.bare` is not a boolean.
    fn has_bare_main(&self) -> Result<bool> {
        let file = self.common_dir().join("config.worktree");
        let own = match self.format().worktree_config {
            true => untrusted::content(&file).ok(),
            false => None,
        };
        if let Some(content) = own {
            let origin = ConfigOrigin {
                scope: ConfigScope::Worktree,
                kind: OriginKind::File,
                name: path::as_bytes(&file).to_owned(),
                path: None,
            };
            let environment = Environment::default();
            let mut loader = Loader::new(&environment, None);
            loader.follow_includes(false).bytes(content, origin);
            if let Some(is_bare) = loader.load()?.bool("core.bare")? {
                return Ok(is_bare);
            }
        }
        self.config().bool_or("core.bare", false)
    }

    /// Returns the names of the directories of linked worktrees, in the order of the directory listing.
    pub fn linked_ids(&self) -> Vec<BString> {
        let listing = std::fs::read_dir(self.common_dir().join(DIRECTORY));
        let entries = listing.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .map(|name| path::as_bytes(Path::new(&name)).to_owned())
            .collect()
    }

    /// Returns the repository directory of the linked worktree `id` (`worktrees/ID`).
    pub fn own_dir(&self, id: &BStr) -> PathBuf {
        self.common_dir().join(DIRECTORY).join(path::borrow(id))
    }

    /// Returns the absolute form of the path `recorded` for the worktree `id`.
    fn recorded_place(&self, id: &BStr, recorded: &[u8]) -> BString {
        if recorded.starts_with(b"/") {
            return recorded.into();
        }
        let common = canonical(self.common_dir()).unwrap_or_else(|_| self.common_dir().to_owned());
        let own = common.join(DIRECTORY).join(path::borrow(id));
        let place = path::normalize(&own.join(path::borrow(recorded)));
        path::as_bytes(&place).to_owned()
    }

    fn head_of(&self, name: &BStr) -> HeadState {
        match self.refs().resolve(name) {
            Err(_) => HeadState::Broken,
            Ok(None) => HeadState::Detached(None),
            Ok(Some(ResolvedRef {
                id,
                is_symbolic: false,
                ..
            })) => HeadState::Detached(id),
            Ok(Some(ResolvedRef { name, id, .. })) => HeadState::Branch(name, id),
        }
    }

    /// Returns the names of the `HEAD`s of the other worktrees, as visible in this one:
    /// `main-worktree/HEAD`, `worktrees/ID/HEAD`.
    pub fn other_head_names(&self) -> Vec<BString> {
        let mut names: Vec<BString> = Vec::new();
        if self.git_dir() != self.common_dir() {
            names.push("main-worktree/HEAD".into());
        }
        for id in self.linked_ids() {
            let own = self.own_dir(id.as_bstr());
            if own != self.git_dir() && own.join("gitdir").is_file() {
                names.push([b"worktrees/", id.as_slice(), b"/HEAD"].concat().into());
            }
        }
        names
    }

    /// Returns the commits of the `HEAD`s of all worktrees, that of this one first. Unborn branches are
    /// omitted.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if a `HEAD` or the list of worktrees
    /// cannot be read.
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
            // A directory without this file is not a worktree.
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

    /// Refuses the branch `full` if another worktree (with `anywhere` also this one) has it checked
    /// out, or rebases or bisects it.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] and Git's message if the branch is in use.
    pub fn refuse_branch_in_use(&self, full: &BStr, anywhere: bool) -> Result<()> {
        match self.work_tree_using(full, anywhere) {
            None => Ok(()),
            Some(place) => {
                let short = full.strip_prefix(b"refs/heads/").unwrap_or(full).as_bstr();
                let place = place.display();
                let message = format!("'{short}' is already used by worktree at '{place}'");
                Err(Error::new(ErrorKind::Refused, message))
            }
        }
    }

    /// Returns the path of the worktree that uses the branch `full`. This worktree counts only with
    /// `anywhere`.
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

    /// Returns whether the worktree of `git_dir` has the branch checked out, or rebases or bisects it.
    fn uses(&self, git_dir: &Path, full: &BStr) -> bool {
        let holds = |file: &str, wanted: &BStr| {
            untrusted::read(
                &git_dir.join(file),
                SymlinkPolicy::Follow,
                LARGEST_POINTER_BYTES,
            )
            .is_ok_and(|content| content.trim_end().as_bstr() == wanted)
        };
        let short = full.strip_prefix(b"refs/heads/").unwrap_or(full).as_bstr();
        self.branch_of(git_dir).is_some_and(|branch| branch == full)
            || REBASED_BRANCH_FILES.iter().any(|file| holds(file, full))
            || holds(BISECT_START_FILE, short)
    }

    /// Returns the ref to which `HEAD` of the worktree of `git_dir` points.
    pub fn branch_of(&self, git_dir: &Path) -> Option<BString> {
        if self.refs().tables().is_none() {
            let head = git_dir.join("HEAD");
            let content =
                untrusted::read(&head, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES).ok()?;
            return Some(content.trim_end().strip_prefix(b"ref: ")?.into());
        }
        let name: BString = match git_dir.strip_prefix(self.common_dir().join("worktrees")) {
            Ok(id) => [b"worktrees/", path::as_bytes(id).as_bytes(), b"/HEAD"]
                .concat()
                .into(),
            Err(_) => "main-worktree/HEAD".into(),
        };
        match self.refs().find(&name).ok()??.target {
            RefTarget::Symbolic(branch) => Some(branch.into_inner()),
            RefTarget::Object(_) => None,
        }
    }

    fn top_of(&self, git_dir: &Path) -> Option<PathBuf> {
        if git_dir == self.common_dir() {
            // A bare repository has no worktree that could use a branch.
            let bare = self.has_bare_main().unwrap_or(false);
            let top = match git_dir.file_name() {
                Some(name) if name == ".git" => git_dir.parent().unwrap_or(git_dir),
                _ => git_dir,
            };
            return (!bare).then(|| top.to_owned());
        }
        let back = untrusted::read(
            &git_dir.join("gitdir"),
            SymlinkPolicy::Follow,
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

/// Returns the branches that a rebase or a bisection in the worktree of `git_dir` moves or returns to.
pub fn branches_in_progress(git_dir: &Path) -> Vec<BString> {
    let text = |name: &str| untrusted::content(git_dir.join(name)).unwrap_or_default();
    let mut found: Vec<BString> = Vec::new();
    for name in REBASED_BRANCH_FILES {
        let full = text(name);
        found.extend(Some(full.trim_end().into()).filter(|full: &BString| is_branch(full)));
    }
    // Each ref name in the file is followed by two lines with ids.
    let moved = text(REBASED_REFS_FILE);
    let moved = moved.lines().map(BString::from);
    found.extend(moved.filter(is_branch));
    let start = text(BISECT_START_FILE);
    if !start.is_empty() {
        found.push([b"refs/heads/", start.trim_end()].concat().into());
    }
    found
}

fn is_branch(name: &BString) -> bool {
    name.starts_with(b"refs/heads/")
}
