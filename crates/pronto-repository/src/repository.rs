//! A repository: its location, its configuration, and access to its contents.

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
pub mod refs;
pub mod shallow;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, Links};

use pronto_config::{discover, git_dir};
use pronto_refs::store::{References, tables};

pub use grafts::Original;
pub use notice::{Notice, PackNotice, PushNotice, SentKind, Severity, Side};
pub use pronto_config::format::{Format, RefStorage, hash_name, hash_named};

use crate::config::{Config, Loader, Place};
use crate::durability::Fsync;
use crate::environment::Environment;
use crate::{Error, ErrorKind, Layout, Result, path};
use grafts::Grafts;

/// An open repository. `Send + Sync`; open it once and share it by reference.
#[derive(Debug)]
pub struct Repository {
    environment: Environment,
    layout: Layout,
    config: Config,
    refs: References,
    notices: Mutex<Vec<Notice>>,
    pub(crate) objects: OnceLock<pronto_odb::Store>,
    pub(crate) fsync: OnceLock<Fsync>,
    pub(crate) shallow: OnceLock<Vec<pronto_hash::ObjectId>>,
    pub(crate) grafts: OnceLock<Grafts>,
    pub(crate) commit_graph: OnceLock<Option<Box<pronto_pack::commit_graph::CommitGraph>>>,
}

impl Repository {
    /// Finds the repository of `start` like Git: `GIT_DIR` if it is set, otherwise upwards from
    /// `start` the first directory that contains a repository or is one.
    ///
    /// Costs about ten system calls for each directory on the way and one read for each
    /// configuration file.
    ///
    /// # Errors
    /// There is none; or it may not be used (another owner, an unknown format); or its
    /// configuration cannot be read. The messages are Git's.
    pub fn discover(start: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let layout = discover::discover(start.as_ref(), environment)?;
        Self::from_layout(layout, environment)
    }

    /// Does the same as [`discover`](Self::discover) for operations that work without a repository:
    /// `None` if there is none around `start`, or one that may not be used because of its owner
    /// (`safe.directory`) or because it was not named explicitly (`safe.bareRepository`), or if `GIT_DIR`
    /// names none.
    ///
    /// # Errors
    /// There is one that cannot be read, or `GIT_DIR` names a malformed file.
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

    /// Returns the repository at `path`, or the one that the file at `path` points to; `None` if it
    /// is neither.
    ///
    /// # Errors
    /// The file at `path` does not point to a repository.
    pub fn resolve_git_dir(path: &BStr, environment: &Environment) -> Result<Option<PathBuf>> {
        let given = path::borrow(path);
        let full = environment.absolute(given);
        Ok(match git_dir::look_at(&full, given, environment)? {
            git_dir::Candidate::PointsTo(target) => Some(target),
            git_dir::Candidate::Directory if git_dir::is_git_dir(&full, environment) => {
                Some(given.to_owned())
            }
            _ => None,
        })
    }

    /// Opens the repository at `git_dir`: a `.git` directory, a bare repository, or a file that
    /// points to one. Its worktree is the configured one, or the parent of a directory named
    /// `.git`; `GIT_WORK_TREE` is ignored.
    ///
    /// # Errors
    /// As for [`discover`](Self::discover), but ownership does not matter.
    pub fn open(git_dir: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let mut layout = Self::layout_of(git_dir.as_ref(), environment)?;
        layout.working_dir = layout.work_tree.as_ref().unwrap_or(&layout.git_dir).clone();
        Self::from_layout(layout, environment)
    }

    /// Does the same as [`open`](Self::open), and makes the directory of the repository the
    /// [working directory](Self::working_dir), as Git's servers do: relative settings count from there, and
    /// messages name files from there.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_served(git_dir: impl AsRef<Path>, environment: &Environment) -> Result<Self> {
        let mut layout = Self::layout_of(git_dir.as_ref(), environment)?;
        layout.working_dir.clone_from(&layout.git_dir);
        layout.spoken_git_dir = PathBuf::from(".");
        Self::from_layout(layout, environment)
    }

    fn layout_of(git_dir: &Path, environment: &Environment) -> Result<Layout> {
        let mut layout = discover::open_named(git_dir, environment)?;
        if let Some(configured) = &layout.format.work_tree {
            layout.work_tree = Some(path::normalize(&layout.git_dir.join(configured)));
        } else if layout.format.bare != Some(true) {
            layout.work_tree = work_tree_of(&layout.git_dir, &layout.common_dir);
        }
        Ok(layout)
    }

    /// Opens it with the defaults of `keys`, in canonical form, in place of their configured values. Call it
    /// before anything else: what was read is not read again.
    pub fn ignore_settings(&mut self, keys: &[BString]) {
        for key in keys {
            self.config.remove(key.as_bstr());
        }
    }

    fn from_layout(mut layout: Layout, environment: &Environment) -> Result<Self> {
        let mut environment = environment.clone();
        environment.set_working_dir(&layout.working_dir);
        let environment = &environment;
        let local = layout.local_config.take();
        let config = load_config(&layout, local, environment)?;
        let records = config.bool_or("core.lockfilepid", false);
        pronto_io::lock_file::record_processes(records.unwrap_or(false));
        let refs = References::new(&layout, &config, environment)?;
        let contradiction = layout.contradicts.then_some(Notice::BareWithWorktree);
        Ok(Repository {
            environment: environment.clone(),
            layout,
            config,
            refs,
            notices: Mutex::new(contradiction.into_iter().collect()),
            objects: OnceLock::new(),
            fsync: OnceLock::new(),
            shallow: OnceLock::new(),
            grafts: OnceLock::new(),
            commit_graph: OnceLock::new(),
        })
    }

    /// Opens it again with a history that ends at the commits `cut`, and nowhere else: neither the
    /// file `shallow` nor grafts count. Shares the open object store.
    ///
    /// # Errors
    /// Its refs or objects cannot be opened.
    pub fn with_history_cut_at(&self, mut cut: Vec<pronto_hash::ObjectId>) -> Result<Self> {
        cut.sort_unstable();
        cut.dedup();
        Ok(Repository {
            environment: self.environment.clone(),
            layout: self.layout.clone(),
            config: self.config.clone(),
            refs: References::new(&self.layout, &self.config, &self.environment)?,
            notices: Mutex::default(),
            objects: OnceLock::from(self.objects()?.clone()),
            fsync: OnceLock::new(),
            shallow: OnceLock::from(cut),
            grafts: OnceLock::from(Grafts::default()),
            commit_graph: OnceLock::new(),
        })
    }

    /// Returns the environment it was opened with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the directory of the repository, absolute; for a linked worktree its own directory.
    pub fn git_dir(&self) -> &Path {
        &self.layout.git_dir
    }

    /// Returns the directory that all worktrees of the repository share, absolute.
    pub fn common_dir(&self) -> &Path {
        &self.layout.common_dir
    }

    /// Returns [`git_dir`](Self::git_dir) in Git's form for messages: `.git` if that is it.
    pub fn spoken_git_dir(&self) -> &Path {
        &self.layout.spoken_git_dir
    }

    /// Returns the top of the worktree, absolute, if there is one.
    pub fn work_tree(&self) -> Option<&Path> {
        self.layout.work_tree.as_deref()
    }

    /// Returns the top of the worktree.
    ///
    /// # Errors
    /// There is none, or no directory is there.
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

    /// Returns the path from the top of the worktree to the current directory, with a slash at its
    /// end; `None` at the top and outside.
    pub fn prefix(&self) -> Option<&BStr> {
        self.layout.prefix.as_ref().map(|prefix| prefix.as_bstr())
    }

    /// Returns the path from the top of the worktree to the caller's current directory, which is
    /// never removed; `None` at the top and outside.
    pub fn directory_to_keep(&self) -> Option<BString> {
        let original = self.environment.original_dir();
        let below = original.strip_prefix(self.work_tree()?).ok()?;
        let below = path::as_bytes(below);
        (!below.is_empty()).then(|| below.to_owned())
    }

    /// Returns the directory in which Git runs: the top of the worktree if the caller is inside, otherwise the
    /// current directory. Relative settings, variables and addresses are [resolved](Environment::resolve)
    /// from it.
    pub fn working_dir(&self) -> &Path {
        self.environment.working_dir()
    }

    /// Returns whether the repository is bare: it has no worktree by configuration.
    pub fn is_bare(&self) -> bool {
        self.layout.work_tree.is_none() && self.layout.format.bare != Some(false)
    }

    /// Returns whether the current directory is inside the directory of the repository.
    pub fn is_inside_git_dir(&self) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real(self.environment.current_dir()).starts_with(real(&self.layout.git_dir))
    }

    /// Returns whether the current directory is inside the worktree.
    pub fn is_inside_work_tree(&self) -> bool {
        self.work_tree()
            .is_some_and(|top| self.environment.current_dir().starts_with(top))
    }

    /// Returns version and extensions.
    pub fn format(&self) -> &Format {
        &self.layout.format
    }

    /// Returns the hash function of object ids.
    pub fn object_hash(&self) -> Kind {
        self.layout.format.object_hash
    }

    /// Returns the configuration: of system, user, repository, worktree, and command.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Reads the configuration again, after it was edited.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn reload_config(&mut self) -> Result<()> {
        self.config = load_config(&self.layout, None, &self.environment)?;
        self.refs = References::new(&self.layout, &self.config, &self.environment)?;
        self.fsync = OnceLock::new();
        Ok(())
    }

    /// Enables configuration of the worktree (`extensions.worktreeConfig`).
    pub fn enable_work_tree_config(&mut self) {
        self.layout.format.worktree_config = true;
    }

    /// Returns a configuration loader for this repository that has read nothing yet.
    pub fn config_loader(&self) -> Loader<'_> {
        Loader::new(&self.environment, Some(place(&self.layout)))
    }

    /// Returns the refs.
    pub fn refs(&self) -> &References {
        &self.refs
    }

    /// Returns the path of a repository file (`index`, `hooks/x`, `info/exclude`), with
    /// redirections by the environment and shared files of linked worktrees.
    pub fn git_path(&self, name: &str) -> PathBuf {
        pronto_config::git_path::git_path(&self.layout, &self.config, &self.environment, name)
    }

    /// Returns the path of a repository file as Git spells it: relative to the
    /// [working directory](Self::working_dir), with every character of `name`.
    pub fn spoken_git_path(&self, name: &str) -> BString {
        let environment = &self.environment;
        pronto_config::git_path::spoken_git_path(&self.layout, &self.config, environment, name)
    }

    /// Returns the directory of loose objects and packs.
    pub fn objects_dir(&self) -> PathBuf {
        self.layout.objects_dir(&self.environment)
    }

    /// Returns the path of the index.
    pub fn index_path(&self) -> PathBuf {
        self.layout.index_path(&self.environment)
    }

    /// Returns the path of the list of shallow commits.
    pub fn shallow_path(&self) -> PathBuf {
        self.layout.shallow_path(&self.environment)
    }

    /// Returns whether the history is shallow.
    pub fn is_shallow(&self) -> bool {
        std::fs::metadata(self.shallow_path()).is_ok_and(|file| file.len() > 0)
    }

    /// Stores a notice for the caller.
    pub fn notify(&self, notice: Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.push(notice);
    }

    /// Takes the stored notices.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the stored notices of one severity, and leaves the others.
    pub fn take_notices_of(&self, severity: Severity) -> Vec<Notice> {
        self.take_notices_where(|notice| notice.severity() == severity)
    }

    /// Takes the stored notices that `is_wanted` selects, and leaves the others.
    pub fn take_notices_where(&self, is_wanted: impl Fn(&Notice) -> bool) -> Vec<Notice> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.extract_if(.., |notice| is_wanted(notice)).collect()
    }
}

fn load_config(layout: &Layout, local: Option<Vec<u8>>, env: &Environment) -> Result<Config> {
    let mut loader = Loader::new(env, Some(place(layout)));
    loader.system()?.global();
    match local {
        Some(bytes) => loader.local_from(bytes),
        None => loader.local(),
    };
    if layout.format.worktree_config {
        loader.worktree();
    }
    loader.command().load()
}

/// Returns the worktree of a repository that was opened by its own path.
fn work_tree_of(git_dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    if git_dir != common_dir {
        let back = untrusted::read(
            &git_dir.join("gitdir"),
            Links::Follow,
            LARGEST_POINTER_BYTES,
        )
        .ok()?;
        let file = git_dir.join(path::borrow(back.trim_ascii_end()));
        return path::normalize(&file).parent().map(Path::to_owned);
    }
    if git_dir.file_name()? == ".git" {
        return git_dir.parent().map(Path::to_owned);
    }
    None
}

/// Advice.
impl Repository {
    /// Returns what the setting `advice.NAME` says: `None` if it is not set. `GIT_ADVICE` can turn all advice off.
    ///
    /// # Errors
    /// One of the two is not a boolean.
    pub fn advice(&self, name: &str) -> Result<Option<bool>> {
        if !self.environment.boolean("GIT_ADVICE", true)? {
            return Ok(Some(false));
        }
        self.config().bool(format!("advice.{name}"))
    }
}

/// Copies of the prefix, for callers that keep it longer than the repository.
impl Repository {
    /// [`prefix`](Self::prefix) as owned bytes, empty at the top.
    pub fn prefix_or_empty(&self) -> BString {
        self.layout.prefix.clone().unwrap_or_default()
    }
}

/// Forms of paths and names in messages.
impl Repository {
    /// Returns `path` in the form in which Git prints it after changing to the top of the worktree:
    /// relative, if it is below the repository and that is relative.
    pub fn spoken(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.layout.git_dir) {
            Ok(rest) if self.layout.spoken_git_dir == Path::new(".") => rest.to_owned(),
            Ok(rest) => self.layout.spoken_git_dir.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns whether it is `.git` at the top of its worktree, so that a process started there
    /// finds it.
    pub(crate) fn is_plain(&self) -> bool {
        self.layout.spoken_git_dir == Path::new(".git") && self.layout.work_tree.is_some()
    }
}

/// The durability of written files.
impl Repository {
    /// Returns the configured durability of this repository.
    ///
    /// # Errors
    /// A configured value is not of its type.
    pub fn fsync(&self) -> Result<Fsync> {
        if let Some(known) = self.fsync.get() {
            return Ok(*known);
        }
        let fsync = Fsync::configured(self.config())?;
        Ok(*self.fsync.get_or_init(|| fsync))
    }
}

/// The place of a repository, whose branch may be in reftables.
fn place(layout: &Layout) -> Place {
    Place {
        branch_in_tables: Some(tables::branch_of),
        ..layout.place()
    }
}
