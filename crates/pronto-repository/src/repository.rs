//! A repository: its directories, its configuration, and access to its contents.

pub mod errors;
pub mod expiry;
pub mod gitmodules;
pub mod hooks;
pub mod identity;
pub mod in_progress;
pub mod init;
pub mod links;
pub mod notice;
pub mod objects;
pub mod packs;

mod grafts;
mod opening;
mod partial_failure;
pub mod refs;
pub mod shallow;
pub mod support;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;

use pronto_config::{discover, git_dir};
use pronto_refs::store::References;

pub use grafts::UngraftedRepository;
pub use notice::{
    Notice, NoticeQueue, NoticeReceiver, Notices, PackNotice, PushNotice, RefspecSide, SentKind,
    Severity,
};
pub use partial_failure::PartialFailure;
pub use pronto_config::format::{RefStorage, RepositoryFormat, hash_name, hash_named};

use crate::config::{Config, Loader};
use crate::durability::Fsync;
use crate::environment::Environment;
use crate::{Error, ErrorKind, RepositoryLayout, Result, path};
use grafts::Grafts;
use opening::{load_config, place, work_tree_of};

/// An open repository. A `Repository` is `Send + Sync`; open it once and share it by reference.
#[derive(Debug)]
pub struct Repository {
    environment: Environment,
    layout: RepositoryLayout,
    config: Config,
    refs: References,
    notices: NoticeReceiver,
    pub(crate) objects: OnceLock<pronto_odb::Store>,
    pub(crate) fsync: OnceLock<Fsync>,
    pub(crate) shallow: OnceLock<Vec<pronto_hash::ObjectId>>,
    pub(crate) grafts: OnceLock<Grafts>,
    pub(crate) commit_graph: OnceLock<Option<Box<pronto_pack::commit_graph::CommitGraph>>>,
    /// The operations that do not implement a setting or environment variable in effect.
    lacking: OnceLock<support::Operations>,
    has_index_hook: OnceLock<bool>,
}

impl Repository {
    /// Finds the repository of the directory `start` like Git: `GIT_DIR` if it is set; otherwise the
    /// nearest directory, from `start` upwards, that contains a repository or is one. A relative `start`
    /// is relative to [`Environment::current_dir`]. Relative paths and pathspecs that are given to the
    /// repository later are relative to `start`.
    ///
    /// Costs about ten system calls for each directory on the way and one read for each configuration
    /// file.
    ///
    /// # Errors
    /// Fails with Git's messages:
    /// - [`ErrorKind::NoRepository`] if there is no repository.
    /// - [`ErrorKind::Unsafe`] if the repository belongs to another user (`safe.directory`), or is bare
    ///   and not permitted (`safe.bareRepository`).
    /// - [`ErrorKind::UnknownFormat`] if its version or an extension is unknown.
    /// - [`ErrorKind::Config`] or [`ErrorKind::ConfigValue`] if its configuration cannot be read.
    pub fn discover(start: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let layout = discover::discover(start.as_ref(), environment)?;
        Self::from_layout(layout, environment)
    }

    /// Does the same as [`discover`](Self::discover), for operations that also work without a
    /// repository. Returns `None` if there is no repository around `start`, if `GIT_DIR` names none, or
    /// if the repository may not be used: because of its owner (`safe.directory`), or because it is
    /// bare and was not named explicitly (`safe.bareRepository`).
    ///
    /// # Errors
    /// Fails as [`discover`](Self::discover) does if there is a repository that cannot be read, or if
    /// `GIT_DIR` names a malformed file.
    pub fn discover_optional(
        start: impl AsRef<Path>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        match Self::discover(start, environment) {
            Ok(found) => Ok(Some(found)),
            Err(error) => match error.kind() {
                ErrorKind::Unsafe | ErrorKind::NoRepository => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Returns the repository directory at `path`, or the one to which the file at `path` points
    /// (`gitdir:`). Returns `None` if `path` is neither (`git rev-parse --resolve-git-dir`).
    ///
    /// # Errors
    /// Fails if the file at `path` does not point to a repository.
    pub fn resolve_git_dir(path: &BStr, environment: &Environment) -> Result<Option<PathBuf>> {
        let given = path::borrow(path);
        let full = environment.absolute(given);
        Ok(match git_dir::look_at(&full, given, environment)? {
            git_dir::GitDirCandidate::PointsTo(target) => Some(target),
            git_dir::GitDirCandidate::Directory if git_dir::is_git_dir(&full, environment) => {
                Some(given.to_owned())
            }
            _ => None,
        })
    }

    /// Opens the repository at `git_dir`: a `.git` directory, a bare repository, or a file that points
    /// to a repository. The worktree is that of `core.worktree`, or the parent of a directory named
    /// `.git`; `GIT_WORK_TREE` is ignored.
    ///
    /// # Errors
    /// As for [`discover`](Self::discover), except that the owner is not checked.
    pub fn open(git_dir: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let mut layout = Self::layout_of(git_dir.as_ref(), environment)?;
        layout.working_dir = layout.work_tree.as_ref().unwrap_or(&layout.git_dir).clone();
        Self::from_layout(layout, environment)
    }

    /// Does the same as [`open`](Self::open), and makes the directory of the repository the [working
    /// directory](Self::working_dir), as Git's servers do: relative paths in settings and in messages
    /// are relative to it.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_served(git_dir: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let mut layout = Self::layout_of(git_dir.as_ref(), environment)?;
        layout.working_dir.clone_from(&layout.git_dir);
        layout.display_git_dir = PathBuf::from(".");
        Self::from_layout(layout, environment)
    }

    fn layout_of(git_dir: &Path, environment: &Environment) -> Result<RepositoryLayout> {
        let mut layout = discover::open_named(git_dir, environment)?;
        if let Some(configured) = &layout.format.work_tree {
            layout.work_tree = Some(path::normalize(&layout.git_dir.join(configured)));
        } else if layout.format.bare != Some(true) {
            layout.work_tree = work_tree_of(&layout.git_dir, &layout.common_dir);
        }
        Ok(layout)
    }

    /// Removes the configured values of `keys`, which are in canonical form, so that their defaults
    /// apply. Call this method before all others: values that were used already are not read again.
    pub fn ignore_settings(&mut self, keys: &[BString]) {
        for key in keys {
            self.config.remove(key.as_bstr());
        }
    }

    fn from_layout(mut layout: RepositoryLayout, environment: &Environment) -> Result<Self> {
        let mut environment = environment.clone();
        environment.set_working_dir(&layout.working_dir);
        let environment = &environment;
        let local = layout.local_config.take();
        let config = load_config(&layout, local, environment)?;
        let refs = References::new(&layout, &config, environment)?;
        Ok(Repository {
            environment: environment.clone(),
            layout,
            config,
            refs,
            notices: NoticeReceiver::default(),
            objects: OnceLock::new(),
            fsync: OnceLock::new(),
            shallow: OnceLock::new(),
            grafts: OnceLock::new(),
            commit_graph: OnceLock::new(),
            lacking: OnceLock::new(),
            has_index_hook: OnceLock::new(),
        })
    }

    /// Sends the notices of this repository to `notices`: the notices of opening the repository and
    /// of all later operations. A repository without a receiver discards its notices.
    #[must_use]
    pub fn with_notices(self, notices: impl Into<NoticeReceiver>) -> Self {
        let notices = notices.into();
        if self.layout.contradicts {
            notices.notice(Notice::BareWithWorktree);
        }
        Repository { notices, ..self }
    }

    /// Opens the repository again with another [receiver of notices](Self::with_notices). Shares
    /// the object store, if the store is open.
    ///
    /// # Errors
    /// Fails if the refs cannot be opened.
    pub fn reporting_to(&self, notices: impl Into<NoticeReceiver>) -> Result<Self> {
        let opened = Repository {
            environment: self.environment.clone(),
            layout: self.layout.clone(),
            config: self.config.clone(),
            refs: References::new(&self.layout, &self.config, &self.environment)?,
            notices: NoticeReceiver::default(),
            objects: self.objects.clone(),
            fsync: OnceLock::new(),
            shallow: self.shallow.clone(),
            grafts: OnceLock::new(),
            commit_graph: OnceLock::new(),
            lacking: self.lacking.clone(),
            has_index_hook: self.has_index_hook.clone(),
        };
        Ok(opened.with_notices(notices))
    }

    /// Returns the receiver of the notices of this repository.
    pub fn notices(&self) -> &NoticeReceiver {
        &self.notices
    }

    /// Opens the repository again with a history that ends only at the commits `cut`: the file
    /// `shallow` and grafts have no effect. Shares the open object store. The returned repository
    /// discards its notices.
    ///
    /// # Errors
    /// Fails if the refs or the object store cannot be opened.
    pub fn with_history_cut_at(&self, mut cut: Vec<pronto_hash::ObjectId>) -> Result<Self> {
        cut.sort_unstable();
        cut.dedup();
        Ok(Repository {
            environment: self.environment.clone(),
            layout: self.layout.clone(),
            config: self.config.clone(),
            refs: References::new(&self.layout, &self.config, &self.environment)?,
            notices: NoticeReceiver::default(),
            objects: OnceLock::from(self.objects()?.clone()),
            fsync: OnceLock::new(),
            shallow: OnceLock::from(cut),
            grafts: OnceLock::from(Grafts::default()),
            commit_graph: OnceLock::new(),
            lacking: self.lacking.clone(),
            has_index_hook: self.has_index_hook.clone(),
        })
    }

    /// Returns the environment with which the repository was opened.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the absolute path of the repository directory (`$GIT_DIR`). For a linked worktree, this
    /// is its directory below `worktrees/`.
    pub fn git_dir(&self) -> &Path {
        &self.layout.git_dir
    }

    /// Returns the absolute path of the directory that all worktrees of the repository share
    /// (`$GIT_COMMON_DIR`).
    pub fn common_dir(&self) -> &Path {
        &self.layout.common_dir
    }

    /// Returns [`git_dir`](Self::git_dir) as Git prints it in messages, for example `.git`.
    pub fn display_git_dir(&self) -> &Path {
        &self.layout.display_git_dir
    }

    /// Returns the absolute path of the top of the worktree, if there is a worktree.
    pub fn work_tree(&self) -> Option<&Path> {
        self.layout.work_tree.as_deref()
    }

    /// Returns the absolute path of the top of the worktree.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NoWorkTree`] if there is no worktree, or its directory does not exist.
    pub fn require_work_tree(&self) -> Result<&Path> {
        let top = self.work_tree().filter(|top| top.is_dir());
        top.ok_or_else(|| {
            let message = match self.layout.contradicts {
                true => "unable to set up work tree using invalid config",
                false => "this operation must be run in a work tree",
            };
            Error::new(ErrorKind::NoWorkTree, message)
        })
    }

    /// Returns the path from the top of the worktree to the directory with which the repository was
    /// [discovered](Self::discover), with a slash at its end (`git rev-parse --show-prefix`). Returns
    /// `None` if that directory is the top or outside of the worktree, and after [`open`](Self::open).
    pub fn prefix(&self) -> Option<&BStr> {
        self.layout.prefix.as_ref().map(|prefix| prefix.as_bstr())
    }

    /// Returns the path from the top of the worktree to the caller's original current directory, which
    /// must not be removed. Returns `None` at the top and outside of the worktree.
    pub fn directory_to_keep(&self) -> Option<BString> {
        let original = self.environment.original_dir();
        let below = original.strip_prefix(self.work_tree()?).ok()?;
        let below = path::as_bytes(below);
        (!below.is_empty()).then(|| below.to_owned())
    }

    /// Returns the directory in which Git runs: the top of the worktree if the caller is inside,
    /// otherwise the current directory. Relative paths in settings, environment variables and URLs are
    /// [resolved](Environment::resolve) against it.
    pub fn working_dir(&self) -> &Path {
        self.environment.working_dir()
    }

    /// Returns whether the repository is bare: no worktree is configured or found.
    pub fn is_bare(&self) -> bool {
        self.layout.work_tree.is_none() && self.layout.format.bare != Some(false)
    }

    /// Returns whether the current directory is inside the repository directory.
    pub fn is_inside_git_dir(&self) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real(self.environment.current_dir()).starts_with(real(&self.layout.git_dir))
    }

    /// Returns whether the current directory is inside the worktree.
    pub fn is_inside_work_tree(&self) -> bool {
        self.work_tree()
            .is_some_and(|top| self.environment.current_dir().starts_with(top))
    }

    /// Returns the format version and the extensions of the repository.
    pub fn format(&self) -> &RepositoryFormat {
        &self.layout.format
    }

    /// Returns the hash function of object ids (`extensions.objectFormat`).
    pub fn object_hash(&self) -> Kind {
        self.layout.format.object_hash
    }

    /// Returns the merged configuration: system, global, local, worktree and command.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Reads the configuration again after a change.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if a file cannot be read or parsed.
    pub fn reload_config(&mut self) -> Result<()> {
        self.config = load_config(&self.layout, None, &self.environment)?;
        self.refs = References::new(&self.layout, &self.config, &self.environment)?;
        self.fsync = OnceLock::new();
        self.lacking = OnceLock::new();
        self.has_index_hook = OnceLock::new();
        Ok(())
    }

    /// Enables the configuration file of the worktree (`extensions.worktreeConfig`).
    pub fn enable_work_tree_config(&mut self) {
        self.layout.format.worktree_config = true;
    }

    /// Returns a configuration loader for this repository without any loaded file.
    pub fn config_loader(&self) -> Loader<'_> {
        Loader::new(&self.environment, Some(place(&self.layout)))
    }

    /// Returns the ref store.
    pub fn refs(&self) -> &References {
        &self.refs
    }

    /// Returns the path of a repository file such as `index`, `hooks/x` or `info/exclude`. Environment
    /// variables and the shared directory of linked worktrees are respected
    /// (`git rev-parse --git-path`).
    pub fn git_path(&self, name: &str) -> PathBuf {
        pronto_config::git_path::git_path(&self.layout, &self.config, &self.environment, name)
    }

    /// Returns the path of a repository file as Git prints it: relative to the [working
    /// directory](Self::working_dir), with `name` unchanged.
    pub fn display_git_path(&self, name: &str) -> BString {
        let environment = &self.environment;
        pronto_config::git_path::display_git_path(&self.layout, &self.config, environment, name)
    }

    /// Returns the directory of loose objects and packs (`$GIT_OBJECT_DIRECTORY`).
    pub fn objects_dir(&self) -> PathBuf {
        self.layout.objects_dir(&self.environment)
    }

    /// Returns the path of the index file (`$GIT_INDEX_FILE`).
    pub fn index_path(&self) -> PathBuf {
        self.layout.index_path(&self.environment)
    }

    /// Returns the path of the file `shallow`, the list of shallow commits.
    pub fn shallow_path(&self) -> PathBuf {
        self.layout.shallow_path(&self.environment)
    }

    /// Returns whether the repository is shallow: the file `shallow` exists and is not empty.
    pub fn is_shallow(&self) -> bool {
        std::fs::metadata(self.shallow_path()).is_ok_and(|file| file.len() > 0)
    }

    /// Passes a notice to the receiver of this repository.
    pub fn notify(&self, notice: Notice) {
        self.notices.notice(notice);
    }
}

/// Advice.
impl Repository {
    /// Returns the value of `advice.NAME`; `None` if it is not set. `GIT_ADVICE` can disable all
    /// advice.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if one of the two values is not a boolean.
    pub fn advice(&self, name: &str) -> Result<Option<bool>> {
        if !self.environment.boolean("GIT_ADVICE", true)? {
            return Ok(Some(false));
        }
        self.config().bool(format!("advice.{name}"))
    }
}

/// Owned copies of the prefix.
impl Repository {
    /// Returns [`prefix`](Self::prefix) as owned bytes; empty at the top of the worktree.
    pub fn prefix_or_empty(&self) -> BString {
        self.layout.prefix.clone().unwrap_or_default()
    }
}

/// Paths as they appear in messages.
impl Repository {
    /// Returns `path` as Git prints it after changing to the top of the worktree: relative if `path` is
    /// below the repository directory and Git's path of that directory is relative.
    pub fn display_path(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.layout.git_dir) {
            Ok(rest) if self.layout.display_git_dir == Path::new(".") => rest.to_owned(),
            Ok(rest) => self.layout.display_git_dir.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns whether the repository directory is `.git` at the top of its worktree, so that a process
    /// that starts there discovers it.
    pub(crate) fn is_plain(&self) -> bool {
        self.layout.display_git_dir == Path::new(".git") && self.layout.work_tree.is_some()
    }
}

/// The durability of written files.
impl Repository {
    /// Returns the configured durability (`core.fsync`, `core.fsyncMethod`). Unknown components are
    /// reported as notices.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn fsync(&self) -> Result<Fsync> {
        if let Some(known) = self.fsync.get() {
            return Ok(*known);
        }
        let fsync = Fsync::configured(self.config())?;
        Ok(*self.fsync.get_or_init(|| fsync))
    }
}
