//! Discovers the repository of a directory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, SymlinkPolicy};

use crate::config::{ConfigScope, Loader, RepositoryPaths};
use crate::environment::Environment;
use crate::format::RepositoryFormat;
use crate::git_dir::{self, GitDirCandidate};
use crate::{Error, ErrorKind, Result, path, safety};

/// The paths of a repository, and the position of the caller in its worktree.
#[derive(Clone, Debug)]
pub struct RepositoryLayout {
    /// The absolute path of the repository; for a linked worktree, of its own directory in
    /// `worktrees/` (`--git-dir`).
    pub git_dir: PathBuf,
    /// The absolute path of the common directory of all worktrees (`--git-common-dir`).
    pub common_dir: PathBuf,
    /// The path of the repository in Git's spelling: `.git`, `.`, or absolute.
    pub display_git_dir: PathBuf,
    /// The absolute path of the top of the worktree, or `None` for a bare repository
    /// (`--show-toplevel`).
    pub work_tree: Option<PathBuf>,
    /// The directory in which Git runs: the top of the worktree if the caller is inside of it,
    /// otherwise the current directory of the caller.
    pub working_dir: PathBuf,
    /// The path from the top of the worktree to the current directory, with a trailing slash
    /// (`--show-prefix`).
    pub prefix: Option<BString>,
    /// The version and the extensions of the repository.
    pub format: RepositoryFormat,
    /// Whether the configuration is contradictory: `core.bare` is true and `core.worktree` is set.
    pub contradicts: bool,
    /// The content of the repository's configuration file, which was read for the format.
    pub local_config: Option<Vec<u8>>,
}

impl RepositoryLayout {
    /// Returns the paths that the configuration loader needs.
    pub fn place(&self) -> RepositoryPaths {
        RepositoryPaths {
            branch_in_tables: None,
            git_dir: self.git_dir.clone(),
            common_dir: self.common_dir.clone(),
            display_common_dir: if self.common_dir == self.git_dir {
                self.display_git_dir.clone()
            } else {
                self.common_dir.clone()
            },
            display_git_dir: self.display_git_dir.clone(),
        }
    }
}

/// Finds the repository that the environment names, or searches `start` and its parent directories.
///
/// # Errors
/// Fails with [`ErrorKind::NoRepository`] if there is no repository, with [`ErrorKind::Unsafe`] if
/// it must not be used, and with other kinds if it cannot be read. The messages are those of Git.
pub fn discover(start: &Path, environment: &Environment) -> Result<RepositoryLayout> {
    let start = environment.absolute(start);
    // The text of an equal path can differ, for example by `/.` at its end.
    let start = match start == environment.current_dir() {
        true => environment.current_dir().to_owned(),
        false => std::fs::canonicalize(&start).unwrap_or(start),
    };
    let mut layout = locate(&start, environment)?;
    layout.working_dir = match &layout.work_tree {
        Some(top) if layout.prefix.is_some() => top.clone(),
        _ => start,
    };
    Ok(layout)
}

fn locate(start: &Path, environment: &Environment) -> Result<RepositoryLayout> {
    if let Some(git_dir) = environment.path("GIT_DIR") {
        return explicit(git_dir, None, start, environment);
    }
    let across = environment.boolean("GIT_DISCOVERY_ACROSS_FILESYSTEM", false)?;
    let ceiling = ceiling_above(start, environment);
    let mut device = None;
    let mut directory = start;
    loop {
        if let Some(layout) = look_in(directory, start, environment)? {
            return Ok(layout);
        }
        let parent = match directory.parent() {
            Some(parent) if Some(parent) != ceiling.as_deref() => parent,
            _ => break,
        };
        if !across {
            let here = match device {
                Some(here) => here,
                None => device_of(directory)?,
            };
            if device_of(parent)? != here {
                let message = format!(
                    "not a git repository (or any parent up to mount point {})\n\
                     Stopping at filesystem boundary (GIT_DISCOVERY_ACROSS_FILESYSTEM not set).",
                    parent.display()
                );
                return Err(Error::new(ErrorKind::NoRepository, message));
            }
            device = Some(here);
        }
        directory = parent;
    }
    let message = "not a git repository (or any of the parent directories): .git";
    Err(Error::new(ErrorKind::NoRepository, message))
}

fn device_of(directory: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(directory).map_err(|error| {
        let message = format!("failed to stat '{}'", directory.display());
        Error::new(ErrorKind::Io, message).because(error)
    })?;
    Ok(metadata.dev())
}

/// Returns the nearest of `GIT_CEILING_DIRECTORIES` above `start`.
fn ceiling_above(start: &Path, environment: &Environment) -> Option<PathBuf> {
    let text = environment.bytes("GIT_CEILING_DIRECTORIES")?;
    let mut resolve = true;
    let mut nearest: Option<PathBuf> = None;
    for entry in text.split_str(":") {
        if entry.is_empty() {
            resolve = false;
            continue;
        }
        let path = path::borrow(entry);
        if !path.is_absolute() {
            continue;
        }
        let path = match resolve {
            true => std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            false => path::normalize(path),
        };
        let deeper = nearest
            .as_ref()
            .is_none_or(|nearest| path.starts_with(nearest));
        if start != path && start.starts_with(&path) && deeper {
            nearest = Some(path);
        }
    }
    nearest
}

/// Looks for `.git` in `directory`, and then checks whether `directory` itself is a repository.
fn look_in(
    directory: &Path,
    start: &Path,
    environment: &Environment,
) -> Result<Option<RepositoryLayout>> {
    let dot_git = directory.join(".git");
    let found = match git_dir::look_at(&dot_git, &dot_git, environment)? {
        GitDirCandidate::PointsTo(target) => Some((target, true)),
        GitDirCandidate::Directory if git_dir::is_git_dir(&dot_git, environment) => {
            Some((dot_git.clone(), false))
        }
        GitDirCandidate::Special => {
            let message = format!("not a regular file: '{}'", dot_git.display());
            return Err(Error::new(ErrorKind::NotARepository, message));
        }
        _ => None,
    };
    if let Some((git_dir, through_file)) = found {
        let parts = safety::DiscoveredPaths {
            git_file: through_file.then_some(&dot_git),
            work_tree: Some(directory),
            git_dir: &git_dir,
        };
        safety::check_owner(&parts, environment)?;
        return ordinary(directory, git_dir, through_file, start, environment).map(Some);
    }
    if !git_dir::is_git_dir(directory, environment) {
        return Ok(None);
    }
    safety::check_bare(directory, environment)?;
    let parts = safety::DiscoveredPaths {
        git_file: None,
        work_tree: None,
        git_dir: directory,
    };
    safety::check_owner(&parts, environment)?;
    bare(directory, start, environment).map(Some)
}

/// Returns the layout for a found `work_tree/.git`, which is a directory or a file that points to
/// `git_dir`.
fn ordinary(
    work_tree: &Path,
    git_dir: PathBuf,
    through_file: bool,
    start: &Path,
    environment: &Environment,
) -> Result<RepositoryLayout> {
    let display_path = if through_file {
        git_dir.as_path()
    } else {
        Path::new(".git")
    };
    let mut layout = read_format(&git_dir, display_path, environment)?;
    if environment.get("GIT_WORK_TREE").is_some() || layout.format.work_tree.is_some() {
        let display_path = if work_tree == start {
            display_path.to_owned()
        } else {
            git_dir
        };
        return explicit(&display_path, Some(layout), start, environment);
    }
    if layout.format.bare == Some(true) {
        if work_tree != start {
            layout.display_git_dir = layout.git_dir.clone();
        }
        return Ok(layout);
    }
    layout.prefix = prefix_of(start, work_tree);
    layout.work_tree = Some(work_tree.to_owned());
    Ok(layout)
}

/// Returns the layout if `directory` is itself a repository.
fn bare(directory: &Path, start: &Path, environment: &Environment) -> Result<RepositoryLayout> {
    let display_path = if directory == start {
        Path::new(".")
    } else {
        directory
    };
    let layout = read_format(directory, display_path, environment)?;
    if environment.get("GIT_WORK_TREE").is_some() || layout.format.work_tree.is_some() {
        return explicit(display_path, Some(layout), start, environment);
    }
    Ok(layout)
}

/// Returns the layout if the environment or the configuration names the repository or its worktree.
fn explicit(
    named: &Path,
    known: Option<RepositoryLayout>,
    start: &Path,
    environment: &Environment,
) -> Result<RepositoryLayout> {
    let mut layout = match known {
        Some(mut layout) => {
            layout.display_git_dir = named.to_owned();
            layout
        }
        None => find_named(named, environment)?.ok_or_else(|| {
            // Commands that need no repository treat this like a directory without a repository.
            Error::new(ErrorKind::NoRepository, not_named(named))
        })?,
    };
    let work_tree = if let Some(named) = environment.path("GIT_WORK_TREE") {
        check_named(named)?;
        let named = environment.absolute(named);
        check_parents(&named)?;
        named
    } else if layout.format.bare == Some(true) {
        layout.contradicts = layout.format.work_tree.is_some();
        return Ok(layout);
    } else if let Some(configured) = &layout.format.work_tree {
        if let (true, Err(error)) = (
            configured.is_relative(),
            std::fs::metadata(layout.git_dir.join(configured)),
        ) {
            let (path, reason) = (configured.display(), pronto_io::error::reason(&error));
            let message = format!("cannot chdir to '{path}': {reason}");
            return Err(Error::new(ErrorKind::Io, message));
        }
        layout.git_dir.join(configured)
    } else if !environment.boolean("GIT_IMPLICIT_WORK_TREE", true)? {
        return Ok(layout);
    } else {
        environment.current_dir().to_owned()
    };
    let work_tree =
        std::fs::canonicalize(&work_tree).unwrap_or_else(|_| path::normalize(&work_tree));
    layout.prefix = prefix_of(start, &work_tree);
    if layout.prefix.is_some() {
        let real = std::fs::canonicalize(&layout.git_dir);
        layout.display_git_dir = real.unwrap_or_else(|_| layout.git_dir.clone());
    }
    layout.work_tree = Some(work_tree);
    Ok(layout)
}

/// Fails if the path of the worktree is empty.
fn check_named(work_tree: &Path) -> Result<()> {
    match work_tree.as_os_str().is_empty() {
        true => Err(Error::new(
            ErrorKind::Io,
            "The empty string is not a valid path",
        )),
        false => Ok(()),
    }
}

/// Checks that the parent directory of a named worktree exists. The worktree itself need not exist.
fn check_parents(work_tree: &Path) -> Result<()> {
    let Some(parent) = work_tree.parent() else {
        return Ok(());
    };
    let missing = parent
        .ancestors()
        .filter_map(|directory| Some((directory, std::fs::metadata(directory).err()?)))
        .last();
    let Some((directory, error)) = missing else {
        return Ok(());
    };
    let reason = pronto_io::error::reason(&error);
    let message = format!("Invalid path '{}': {reason}", directory.display());
    Err(Error::new(ErrorKind::Io, message))
}

/// Opens the repository at `named`, which may be a file that points to the repository.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if `named` is not a repository, and with other kinds if
/// the repository cannot be read.
pub fn open_named(named: &Path, environment: &Environment) -> Result<RepositoryLayout> {
    find_named(named, environment)?
        .ok_or_else(|| Error::new(ErrorKind::NotARepository, not_named(named)))
}

/// Opens the repository like [`open_named`]. Returns `None` if `named` is neither a repository nor
/// a `.git` file.
fn find_named(named: &Path, environment: &Environment) -> Result<Option<RepositoryLayout>> {
    // An empty path must not be resolved to the current directory.
    if named.as_os_str().is_empty() {
        return Ok(None);
    }
    let full = environment.absolute(named);
    match git_dir::look_at(&full, named, environment)? {
        GitDirCandidate::PointsTo(target) => read_format(&target, &target, environment).map(Some),
        GitDirCandidate::Directory if git_dir::is_git_dir(&full, environment) => {
            read_format(&full, named, environment).map(Some)
        }
        _ => Ok(None),
    }
}

fn not_named(named: &Path) -> String {
    format!("not a git repository: '{}'", named.display())
}

fn read_format(
    git_dir: &Path,
    display_path: &Path,
    environment: &Environment,
) -> Result<RepositoryLayout> {
    let git_dir = if git_dir
        .components()
        .any(|part| part == std::path::Component::ParentDir)
    {
        std::fs::canonicalize(git_dir).unwrap_or_else(|_| path::normalize(git_dir))
    } else {
        git_dir.to_owned()
    };
    let common_dir = git_dir::common_dir(&git_dir, environment)?;
    let config = common_dir.join("config");
    let local_config = untrusted::read(&config, SymlinkPolicy::Follow, LARGEST_TEXT_BYTES).ok();
    let mut layout = RepositoryLayout {
        git_dir,
        common_dir,
        display_git_dir: display_path.to_owned(),
        work_tree: None,
        working_dir: PathBuf::new(),
        prefix: None,
        format: RepositoryFormat::read(&crate::config::Config::default())?,
        contradicts: false,
        local_config,
    };
    let mut loader = Loader::new(environment, Some(layout.place()));
    loader.follow_includes(false);
    match &layout.local_config {
        Some(bytes) => loader.local_from(bytes.clone()),
        None => loader.local(),
    };
    let mut format = RepositoryFormat::read(&loader.load()?)?;
    if layout.common_dir != layout.git_dir && !format.worktree_config {
        (format.bare, format.work_tree) = (None, None);
    }
    if format.worktree_config {
        let own = Loader::new(environment, Some(layout.place()))
            .follow_includes(false)
            .worktree()
            .load()?;
        for entry in own
            .iter()
            .filter(|entry| entry.origin.scope == ConfigScope::Worktree)
        {
            format.read_work_tree(&entry)?;
        }
    }
    format.verify()?;
    if environment.is_treated_as_bare() {
        format.bare = Some(true);
    }
    layout.format = format;
    Ok(layout)
}

/// Returns the path from `base` down to `path`, with a trailing slash. Returns `None` if both are
/// equal, or if `path` is outside of `base`.
fn prefix_of(path: &Path, base: &Path) -> Option<BString> {
    let below = path.strip_prefix(base).ok()?;
    if below.as_os_str().is_empty() {
        return None;
    }
    let mut prefix = path::as_bytes(below).to_owned();
    prefix.push(b'/');
    Some(prefix)
}
