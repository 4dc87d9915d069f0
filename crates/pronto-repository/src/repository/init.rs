//! Creation of repositories (`git init`).

pub use pronto_config::shared;
mod separate;
mod storage;
mod template;

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_config::git_dir::{self, GitDirCandidate};
use pronto_config::shared::SharedPermissions;
use pronto_hash::Kind;
use pronto_io::error::IoContext;

pub use storage::StorageChoice;
pub use template::TemplateSource;
pub use template::{copy as copy_template, missing as missing_template};

use crate::config::{Config, Loader, RepositoryPaths, edit};
use crate::environment::Environment;
use crate::lock::{Lock, Marking, PATIENCE};
use crate::refs::{name, tables};
use crate::repository::support::{self, Operation};
use crate::repository::{Notice, NoticeReceiver};
use crate::repository::{RefStorage, RepositoryFormat, hash_name, hash_named};
use crate::{Error, ErrorKind, Repository, Result, path};

/// Options for creating a repository. The default is a bare repository, as by `git init --bare`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The top of the worktree; `None` for a bare repository (`--bare`).
    pub work_tree: Option<PathBuf>,
    /// The template of the initial contents (`--template`).
    pub template: TemplateSource,
    /// The hash function of object ids (`--object-format`). `None` uses `GIT_DEFAULT_HASH`, and
    /// otherwise SHA-1.
    pub object_hash: Option<Kind>,
    /// The storage of refs (`--ref-format`). `None` uses the environment or the configuration, and
    /// otherwise files.
    pub ref_storage: Option<RefStorage>,
    /// The initial branch (`--initial-branch`). `None` uses `init.defaultBranch`.
    pub initial_branch: Option<BString>,
    /// The permissions for other users (`--shared`). `None` uses `core.sharedRepository`.
    pub shared: Option<SharedPermissions>,
    /// The directory of the repository, to which a file `.git` in the worktree points
    /// (`--separate-git-dir`). An existing repository is moved to this directory.
    pub separate_git_dir: Option<PathBuf>,
    /// The receiver of the notices of the new repository.
    pub notices: NoticeReceiver,
}

/// The result of creating a repository.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// The open repository.
    pub repository: Repository,
    /// Whether the repository existed before.
    pub existed: bool,
    /// Whether other users may access the repository (`core.sharedRepository`).
    pub is_shared: bool,
    /// The name of the initial branch, if the user did not choose it and Git would print advice.
    pub unchosen_branch: Option<BString>,
}

impl Repository {
    /// Creates a repository at `git_dir`, or updates an existing one and keeps its files. The parent
    /// directory of `git_dir` must exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if a directory or file cannot be created, or
    /// [`ErrorKind::InvalidInput`] if a name or format is malformed or the existing repository has
    /// another format.
    pub fn init(git_dir: &Path, options: &Options, environment: &Environment) -> Result<Outcome> {
        let git_dir = environment.absolute(git_dir);
        let original = real(&git_dir);
        let git_dir = options.git_dir(&original, environment)?;
        // A linked worktree shares all files except its `HEAD`.
        let common_dir = git_dir::common_dir(&git_dir, environment)?;
        let format = existing_format(&common_dir, environment)?;
        let object_hash = choose_hash(&format, options, environment)?;
        let is_new = make_directory(&git_dir)?;
        // The configuration that is there counts for the template, too.
        let config = load_config(&common_dir, environment)?;
        require_support(&config, environment, is_new.then_some(&git_dir))?;
        let sharing = options.sharing(&config)?;
        template::copy(&options.template, &common_dir, environment, sharing)?;
        let config = load_config(&common_dir, environment)?;
        let sharing = options.sharing(&config)?;
        let plan = InitPlan {
            git_dir: &git_dir,
            common_dir: &common_dir,
            original: &original,
            options,
            environment,
        };
        let existed = plan.has_head();
        let existing = format.as_ref().filter(|_| existed);
        let choice = StorageChoice::of(existing, options, &config, environment)?;
        let has_tables = choice.storage == RefStorage::Reftable;
        let is_later = |format: &RepositoryFormat| existed && format.version > 0;
        let is_version_one =
            object_hash != Kind::Sha1 || has_tables || format.as_ref().is_some_and(is_later);
        plan.write_config(
            existed,
            is_version_one.then_some((object_hash, choice.storage)),
            sharing,
            &config,
        )?;
        match has_tables {
            true if existed => {}
            true => tables::prepare(&git_dir)?,
            false => make_reference_directories(&common_dir)?,
        }
        let first = match existed {
            true => None,
            false => Some(plan.write_head(&config, choice.storage)?),
        };
        make_object_directories(&plan.objects())?;
        let is_shared = sharing != SharedPermissions::Umask;
        if is_shared {
            shared::apply(sharing, &git_dir, existed)?;
        }
        let repository = Repository::open(&git_dir, environment)?;
        let repository = repository.with_notices(options.notices.clone());
        if let Some(first) = first.as_ref().filter(|_| has_tables) {
            storage::write_first_head(&repository, first.name.as_bstr())?;
        }
        if let Some(warning) = choice.warning {
            repository.notify(warning);
        }
        if let Some(missing) = template::missing(&options.template, environment) {
            repository.notify(Notice::MissingTemplates(missing));
        }
        let unchosen = first.filter(|first| first.is_unchosen);
        Ok(Outcome {
            repository,
            existed,
            is_shared,
            unchosen_branch: unchosen.map(|first| first.name),
        })
    }
}

impl Options {
    /// Returns the repository directory for `original`: the separate directory, or the directory to
    /// which the file `original` points.
    fn git_dir(&self, original: &Path, environment: &Environment) -> Result<PathBuf> {
        if let Some(separate) = &self.separate_git_dir {
            let separate = real(&environment.absolute(separate));
            return separate::separate(original, separate, environment);
        }
        Ok(match git_dir::look_at(original, original, environment)? {
            GitDirCandidate::PointsTo(target) => target,
            _ => original.to_owned(),
        })
    }

    /// Returns the requested permissions, or the configured ones.
    fn sharing(&self, config: &Config) -> Result<SharedPermissions> {
        match self.shared {
            Some(sharing) => Ok(sharing),
            None => shared::configured(config),
        }
    }
}

/// The first branch of a new repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBranch {
    /// The short name.
    pub name: BString,
    /// Whether neither the caller nor `init.defaultBranch` has chosen the name.
    pub is_unchosen: bool,
}

/// The directories and options of a repository that is created.
struct InitPlan<'a> {
    git_dir: &'a Path,
    /// The directory that the worktrees of the repository share.
    common_dir: &'a Path,
    /// The requested path of the repository, before redirection to a separate directory.
    original: &'a Path,
    options: &'a Options,
    environment: &'a Environment,
}

impl InitPlan<'_> {
    fn has_head(&self) -> bool {
        self.git_dir.join("HEAD").symlink_metadata().is_ok()
    }

    /// Points `HEAD` to the first branch, unless refs are in reftables.
    fn write_head(&self, config: &Config, storage: RefStorage) -> Result<FirstBranch> {
        let first = match &self.options.initial_branch {
            Some(chosen) => {
                if !is_branch_name(chosen.as_bstr()) {
                    let message = format!("invalid initial branch name: '{chosen}'");
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                FirstBranch {
                    name: chosen.clone(),
                    is_unchosen: false,
                }
            }
            None => default_branch(config, self.environment)?,
        };
        let lock = Lock::acquire_as(self.git_dir.join("HEAD"), Marking::Marked, PATIENCE)?;
        let mut lock = lock.recorded(config);
        let text = match storage {
            RefStorage::Files => format!("ref: refs/heads/{}\n", first.name).into_bytes(),
            RefStorage::Reftable => tables::HEAD_STUB.to_owned(),
        };
        lock.write_and_close(&text)?;
        lock.commit()?;
        Ok(first)
    }

    fn write_config(
        &self,
        existed: bool,
        version_one: Option<(Kind, RefStorage)>,
        sharing: SharedPermissions,
        config: &Config,
    ) -> Result<()> {
        let mut pairs: Vec<(&str, BString)> = Vec::new();
        let (kind, storage) = version_one.unwrap_or((Kind::Sha1, RefStorage::Files));
        // As in Git, the section of the extensions comes first.
        if kind == Kind::Sha256 {
            pairs.push(("extensions.objectformat", hash_name(kind).into()));
        }
        if storage == RefStorage::Reftable {
            pairs.push(("extensions.refstorage", storage.name().into()));
        }
        let version = if version_one.is_some() { "1" } else { "0" };
        pairs.push(("core.repositoryformatversion", version.into()));
        let abilities = probe(self.git_dir)?;
        pairs.push(("core.filemode", abilities.keeps_modes.to_string().into()));
        match &self.options.work_tree {
            None => pairs.push(("core.bare", "true".into())),
            Some(work_tree) => {
                pairs.push(("core.bare", "false".into()));
                if !config.contains("core.logallrefupdates") {
                    pairs.push(("core.logallrefupdates", "true".into()));
                }
                let work_tree = real(&self.environment.absolute(work_tree));
                if work_tree.join(".git") != self.original {
                    pairs.push(("core.worktree", path::as_bytes(&work_tree).to_owned()));
                }
            }
        }
        if !existed && !abilities.has_links {
            pairs.push(("core.symlinks", "false".into()));
        }
        if !existed && abilities.ignores_case {
            pairs.push(("core.ignorecase", "true".into()));
        }
        if let Some(value) = shared::config_value(sharing) {
            pairs.push(("core.sharedrepository", value.into()));
            pairs.push(("receive.denyNonFastforwards", "true".into()));
        }
        let file = self.common_dir.join("config");
        edit::edit_file(&file, path::as_bytes(&file), config, |document| {
            for (key, value) in &pairs {
                let set = document.set(BStr::new(key), value.as_bstr(), false, |_| true);
                set.map_err(|_| {
                    let message = format!("could not set '{key}' to '{value}'");
                    Error::new(ErrorKind::Config, message)
                })?;
            }
            Ok(())
        })
    }

    fn objects(&self) -> PathBuf {
        match self.environment.path("GIT_OBJECT_DIRECTORY") {
            Some(path) => self.environment.absolute(path),
            None => self.common_dir.join("objects"),
        }
    }
}

/// Creates the directories for refs that every repository has.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be created.
pub fn make_reference_directories(git_dir: &Path) -> Result<()> {
    let mut names = ["refs", "refs/heads", "refs/tags"].iter();
    names.try_for_each(|name| make_directory(&git_dir.join(name)).map(|_| ()))
}

/// Creates the directory `objects` and its standard subdirectories.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be created.
pub fn make_object_directories(objects: &Path) -> Result<()> {
    make_directory(objects)?;
    make_directory(&objects.join("pack"))?;
    make_directory(&objects.join("info")).map(|_| ())
}

/// Returns the default name of the initial branch (`init.defaultBranch`, or `master`), and whether it
/// is not configured.
///
/// # Errors
/// The configured name is invalid.
pub fn default_branch(config: &Config, environment: &Environment) -> Result<FirstBranch> {
    let branch = |name: BString, is_unchosen| FirstBranch { name, is_unchosen };
    let for_tests = environment.bytes("GIT_TEST_DEFAULT_INITIAL_BRANCH_NAME");
    if let Some(name) = for_tests.filter(|name| !name.is_empty()) {
        return Ok(branch(name.into(), false));
    }
    let Some(name) = config.string("init.defaultbranch")? else {
        return Ok(branch("master".into(), true));
    };
    if !is_branch_name(name) {
        let message = format!("invalid branch name: init.defaultBranch = {name}");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(branch(name.to_owned(), false))
}

fn is_branch_name(name: &BStr) -> bool {
    let full = BString::from([b"refs/heads/", name.as_bytes()].concat());
    name::is_valid(full.as_bstr(), name::Form::Full)
}

/// Returns `path` without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = path::normalize(path);
    if let Ok(real) = std::fs::canonicalize(&path) {
        return real;
    }
    match (path.parent().map(std::fs::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path,
    }
}

fn existing_format(git_dir: &Path, environment: &Environment) -> Result<Option<RepositoryFormat>> {
    if !git_dir.join("config").exists() {
        return Ok(None);
    }
    let config = Loader::new(environment, Some(place(git_dir)))
        .follow_includes(false)
        .local()
        .load()?;
    let format = RepositoryFormat::read(&config)?;
    format.verify()?;
    Ok(Some(format))
}

fn choose_hash(
    format: &Option<RepositoryFormat>,
    options: &Options,
    env: &Environment,
) -> Result<Kind> {
    let fail = |message| Err(Error::new(ErrorKind::InvalidInput, message));
    match (format, options.object_hash) {
        (Some(format), Some(wanted)) if format.object_hash != wanted => {
            fail("attempt to reinitialize repository with different hash".into())
        }
        (Some(format), _) => Ok(format.object_hash),
        (None, Some(wanted)) => Ok(wanted),
        (None, None) => match env.bytes("GIT_DEFAULT_HASH") {
            None => Ok(Kind::Sha1),
            Some(name) => match hash_named(name.as_bstr()) {
                Some(kind) => Ok(kind),
                None => fail(format!("unknown hash algorithm '{}'", name.as_bstr())),
            },
        },
    }
}

fn place(git_dir: &Path) -> RepositoryPaths {
    RepositoryPaths {
        branch_in_tables: None,
        git_dir: git_dir.to_owned(),
        common_dir: git_dir.to_owned(),
        display_common_dir: git_dir.to_owned(),
        display_git_dir: git_dir.to_owned(),
    }
}

fn load_config(git_dir: &Path, environment: &Environment) -> Result<Config> {
    let mut loader = Loader::new(environment, Some(place(git_dir)));
    loader.system()?.global().local().command().load()
}

/// Checks that the library supports the settings in effect. Removes the still empty directory `new`
/// otherwise.
fn require_support(
    config: &Config,
    environment: &Environment,
    new: Option<&PathBuf>,
) -> Result<()> {
    let supported = support::require_settings(Operation::Init, config, environment);
    supported.inspect_err(|_| {
        if let Some(new) = new {
            let _ = std::fs::remove_dir(new);
        }
    })
}

/// Creates the directory `path`. Returns whether the directory is new.
fn make_directory(path: &Path) -> Result<bool> {
    match std::fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == Io::AlreadyExists => Ok(false),
        Err(error) => Err(error).context(ErrorKind::Io, "cannot mkdir", path),
    }
}

/// The capabilities of the file system.
pub struct FileSystemCapabilities {
    /// The file system keeps executable bits (`core.fileMode`).
    pub keeps_modes: bool,
    /// The file system supports symbolic links (`core.symlinks`).
    pub has_links: bool,
    /// Names that differ only in case name the same file (`core.ignoreCase`).
    pub ignores_case: bool,
}

/// Determines the capabilities of the file system with a temporary file in `git_dir`.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file cannot be created.
pub fn probe(git_dir: &Path) -> Result<FileSystemCapabilities> {
    use std::os::unix::fs::PermissionsExt;
    let number = std::process::id() % 1_000_000;
    let file = git_dir.join(format!("t{number:06}"));
    std::fs::write(&file, "").context(ErrorKind::Io, "could not create", &file)?;
    let ignores_case = git_dir.join(format!("T{number:06}")).exists();
    let mode = |file: &Path| std::fs::metadata(file).map(|found| found.permissions().mode());
    let keeps_modes = mode(&file).is_ok_and(|before| {
        let changed = std::fs::Permissions::from_mode(before ^ 0o100);
        std::fs::set_permissions(&file, changed).is_ok()
            && mode(&file).is_ok_and(|after| after != before)
    });
    let has_links = std::fs::remove_file(&file).is_ok()
        && std::os::unix::fs::symlink("testing", &file).is_ok()
        && file
            .symlink_metadata()
            .is_ok_and(|found| found.is_symlink());
    // The file was removed above if symbolic links cannot be created.
    let _ = std::fs::remove_file(&file);
    Ok(FileSystemCapabilities {
        keeps_modes,
        has_links,
        ignores_case,
    })
}
