//! Examines submodules by a nested status in this process.

use super::{Options, SubmoduleState};
use crate::environment::LOCAL_VARIABLES;
use crate::gitmodules::{self, Gitmodules};
use crate::{Repository, path};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::oid;
use pronto_io::watch::Watch;
use pronto_worktree::status::{Submodules, Untracked};
use pronto_worktree::{Error, ErrorKind};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The changes of submodules to ignore (`--ignore-submodules`, `submodule.<name>.ignore`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IgnoreSubmodules {
    /// Ignore no changes (`none`).
    #[default]
    None,
    /// Ignore untracked files in submodules (`untracked`).
    Untracked,
    /// Ignore all changes in submodules, except another checked out commit (`dirty`).
    Dirty,
    /// Ignore all changes (`all`).
    All,
}

impl IgnoreSubmodules {
    /// Parses the value of `--ignore-submodules` or `submodule.<name>.ignore`.
    pub fn parse(value: &[u8]) -> Option<IgnoreSubmodules> {
        match value {
            b"none" => Some(IgnoreSubmodules::None),
            b"untracked" => Some(IgnoreSubmodules::Untracked),
            b"dirty" => Some(IgnoreSubmodules::Dirty),
            b"all" => Some(IgnoreSubmodules::All),
            _ => None,
        }
    }
}

/// The limit of nesting. Submodules that are nested more deeply count as clean.
const DEEPEST: usize = 32;

/// Examines the submodules of one repository.
pub(crate) struct SubmoduleInspector<'a> {
    repository: &'a Repository,
    work_tree: PathBuf,
    watch: &'a Watch<'a>,
    general: Option<IgnoreSubmodules>,
    default: IgnoreSubmodules,
    by_path: HashMap<BString, IgnoreSubmodules>,
    untracked: Untracked,
    depth: usize,
}

impl<'a> SubmoduleInspector<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        work_tree: PathBuf,
        options: &Options,
        watch: &'a Watch<'a>,
    ) -> crate::Result<Self> {
        let otherwise = IgnoreSubmodules::None;
        let general = options.ignore_submodules;
        Self::with(
            repository,
            work_tree,
            general,
            otherwise,
            options.untracked,
            watch,
        )
    }

    /// Creates an inspector that ignores the changes in `general` if given, otherwise the
    /// configured ones, otherwise those in `otherwise`.
    pub(crate) fn with(
        repository: &'a Repository,
        work_tree: PathBuf,
        general: Option<IgnoreSubmodules>,
        otherwise: IgnoreSubmodules,
        untracked: Untracked,
        watch: &'a Watch<'a>,
    ) -> crate::Result<Self> {
        let config = repository.config();
        let configured = config
            .raw("diff.ignoreSubmodules")
            .and_then(|value| IgnoreSubmodules::parse(value.as_bytes()));
        let environment = repository.environment();
        let depth = environment
            .text(DEPTH)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let by_path = match general {
            Some(_) => HashMap::new(),
            None => ignored_by_path(repository, &work_tree),
        };
        Ok(SubmoduleInspector {
            repository,
            work_tree,
            watch,
            general,
            default: configured.unwrap_or(otherwise),
            by_path,
            untracked,
            depth,
        })
    }

    /// Returns the changes to ignore in the submodule at `path`.
    pub(crate) fn ignores(&self, path: &BStr) -> IgnoreSubmodules {
        self.general
            .or_else(|| self.by_path.get(path).copied())
            .unwrap_or(self.default)
    }
}

/// The environment variable with the nesting depth of a submodule, passed on with the environment
/// of its repository.
const DEPTH: &str = "PRONTO_SUBMODULE_DEPTH";

/// Reads `submodule.<name>.ignore` from the configuration and `.gitmodules`, by path.
fn ignored_by_path(
    repository: &Repository,
    work_tree: &Path,
) -> HashMap<BString, IgnoreSubmodules> {
    let modules = Gitmodules::read(work_tree);
    let config = repository.config();
    let mut by_path = HashMap::new();
    for name in modules.names() {
        let Some(path) = modules.value(name, "path") else {
            continue;
        };
        let value = config.raw(gitmodules::key(name, "ignore"));
        let value = value.or_else(|| modules.value(name, "ignore"));
        if let Some(ignore) = value.and_then(|value| IgnoreSubmodules::parse(value)) {
            by_path.insert(path.to_owned(), ignore);
        }
    }
    by_path
}

/// Returns whether the submodule at `at` has a repository.
///
/// # Errors
/// Fails if the repository is broken, or the gitfile points to no repository.
pub(super) fn is_checked_out(
    repository: &Repository,
    work_tree: &Path,
    at: &BStr,
) -> Result<bool, Error> {
    let git = work_tree.join(path::borrow(at)).join(".git");
    if git.symlink_metadata().is_err() {
        return Ok(false);
    }
    let mut environment = repository.environment().clone();
    environment.set_current_dir(work_tree);
    let shown = [at.as_bytes(), b"/.git"].concat();
    let found = Repository::resolve_git_dir(shown.as_bstr(), &environment);
    let found = found.map_err(|error| unusable(&error))?;
    if found.is_none() && git.is_dir() {
        let message = format!("'{}' not recognized as a git repository", shown.as_bstr());
        return Err(Error::new(ErrorKind::Io, message));
    }
    Ok(found.is_some())
}

/// Returns the error of a submodule whose repository cannot be opened.
fn unusable(error: &crate::Error) -> Error {
    Error::new(ErrorKind::Io, error.message())
}

impl Submodules for SubmoduleInspector<'_> {
    fn inspect(&self, at: &BStr, staged: &oid) -> Result<SubmoduleState, Error> {
        let ignores = self.ignores(at);
        let mut state = SubmoduleState::default();
        if ignores == IgnoreSubmodules::All || self.depth >= DEEPEST {
            return Ok(state);
        }
        let top = self.work_tree.join(path::borrow(at));
        if !is_checked_out(self.repository, &self.work_tree, at)? {
            return Ok(state);
        }
        let mut environment = self.repository.environment().clone();
        for name in LOCAL_VARIABLES {
            environment.remove(name);
        }
        environment.set(DEPTH, (self.depth + 1).to_string());
        environment.set_current_dir(&top);
        // The directory is the worktree of the submodule, unless its configuration names another
        // one (`core.worktree`).
        environment.set("GIT_DIR", &*top.join(".git").to_string_lossy());
        let opened = Repository::discover(&top, &environment);
        let repository = opened.map_err(|error| unusable(&error))?;
        let Ok(Some(head)) = repository.head().map(|head| head.id()) else {
            return Ok(state);
        };
        state.new_commits = *head != *staged;
        if ignores == IgnoreSubmodules::Dirty {
            return Ok(state);
        }
        let is_explicit = self.general.is_some() || self.by_path.contains_key(at);
        let untracked = match (ignores, self.untracked) {
            (IgnoreSubmodules::Untracked, _) => Untracked::No,
            (_, Untracked::No) if !is_explicit => Untracked::No,
            _ => Untracked::Normal,
        };
        let options = Options {
            untracked,
            renames: None,
            state: false,
            detached_from: false,
            write_back: false,
            settle: std::time::Duration::ZERO,
            monitor_program: None,
            ..Options::default()
        };
        let report = super::status(&repository, &options, self.watch).map_err(|error| {
            Error::new(
                ErrorKind::Io,
                format!("could not look into submodule '{at}'"),
            )
            .because(error)
        })?;
        state.untracked = !report.untracked.is_empty();
        for entry in &report.entries {
            // A nested submodule that only has untracked files counts as untracked content.
            let nested = entry.submodule;
            let only_untracked = entry.index.is_none()
                && entry.stages.is_none()
                && nested.untracked
                && !nested.modified
                && !nested.new_commits;
            state.modified |= !only_untracked;
            state.untracked |= nested.untracked;
        }
        Ok(state)
    }
}
