//! Parsing of pathspecs and paths of a caller.

use bstr::{BStr, BString, ByteSlice};
use pronto_worktree::pathspec::{Pathspec, PathspecDefaults, entry_from_top, path_from_top};

use crate::{ErrorKind, Repository, Result};

/// Returns the defaults for all pathspecs from `GIT_*_PATHSPECS`.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not a boolean, or [`ErrorKind::InvalidInput`] if
/// two contradict each other.
fn pathspec_defaults(repository: &Repository) -> Result<PathspecDefaults> {
    let environment = repository.environment();
    let defaults = PathspecDefaults {
        literal: environment.boolean("GIT_LITERAL_PATHSPECS", false)?,
        glob: environment.boolean("GIT_GLOB_PATHSPECS", false)?,
        noglob: environment.boolean("GIT_NOGLOB_PATHSPECS", false)?,
        icase: environment.boolean("GIT_ICASE_PATHSPECS", false)?,
        exclude_below_prefix: false,
    };
    let wrong = |message: &str| crate::Error::new(ErrorKind::InvalidInput, message);
    if defaults.glob && defaults.noglob {
        return Err(wrong(
            "global 'glob' and 'noglob' pathspec settings are incompatible",
        ));
    }
    if defaults.literal && (defaults.glob || defaults.noglob || defaults.icase) {
        return Err(wrong(
            "global 'literal' pathspec setting is incompatible with all other global pathspec \
             settings",
        ));
    }
    Ok(defaults)
}

impl Repository {
    /// Parses pathspecs. A relative pathspec is relative to the directory with which the repository was
    /// [discovered](Self::discover), as [`prefix`](Self::prefix) returns it. An absolute pathspec may
    /// contain `..` and symbolic links to the worktree. If all pathspecs are exclusions, they apply to
    /// the whole worktree. [`literal_pathspec`](Self::literal_pathspec) takes paths instead of patterns.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if a pathspec is malformed or leads out
    /// of the worktree, [`ErrorKind::Unsupported`] if a pathspec uses attributes,
    /// [`ErrorKind::ConfigValue`] if an environment variable is malformed, or [`ErrorKind::Io`] if the
    /// symbolic links of an absolute pathspec cannot be resolved.
    pub fn pathspec<'a>(&self, specs: impl IntoIterator<Item = &'a BStr>) -> Result<Pathspec> {
        self.pathspec_by(specs, pathspec_defaults(self)?)
    }

    /// Returns the pathspecs that match `paths` and everything below them. Wildcards and magic in the
    /// paths have no meaning (`--literal-pathspecs`), and `GIT_*_PATHSPECS` have no effect. The paths are
    /// relative to the same directory as those of [`pathspec`](Self::pathspec).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if a path is empty or leads out of the
    /// worktree, or [`ErrorKind::Io`] if the symbolic links of an absolute path cannot be resolved.
    pub fn literal_pathspec<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a BStr>,
    ) -> Result<Pathspec> {
        let defaults = PathspecDefaults {
            literal: true,
            ..PathspecDefaults::default()
        };
        self.pathspec_by(paths, defaults)
    }

    /// Does the same as [`pathspec`](Self::pathspec), for commands that work on the current directory
    /// if no path is given: if all pathspecs are exclusions, they apply only to the current directory.
    ///
    /// # Errors
    /// As for [`pathspec`](Self::pathspec).
    pub fn pathspec_below_here<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a BStr>,
    ) -> Result<Pathspec> {
        let defaults = PathspecDefaults {
            exclude_below_prefix: true,
            ..pathspec_defaults(self)?
        };
        self.pathspec_by(specs, defaults)
    }

    fn pathspec_by<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a BStr>,
        defaults: PathspecDefaults,
    ) -> Result<Pathspec> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        Pathspec::parse(specs, prefix.as_bstr(), top, defaults).map_err(from_pathspec)
    }

    /// Converts `path` into a path relative to the top of the worktree. A relative `path` is relative to
    /// the directory with which the repository was [discovered](Self::discover), as
    /// [`prefix`](Self::prefix) returns it. A slash at its end is kept.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if `path` leads out of the worktree, or
    /// [`ErrorKind::Io`] if the symbolic links of an absolute path cannot be resolved.
    pub fn path_from_top(&self, path: &BStr) -> Result<BString> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        path_from_top(path, prefix.as_bstr(), top).map_err(from_pathspec)
    }

    /// Converts `path`, which names an index entry, into a path relative to the top of the worktree. A
    /// path that can only be a directory ends with a slash.
    ///
    /// # Errors
    /// As for [`path_from_top`](Self::path_from_top).
    pub fn entry_from_top(&self, path: &BStr) -> Result<BString> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        entry_from_top(path, prefix.as_bstr(), top).map_err(from_pathspec)
    }
}

fn from_pathspec(error: pronto_worktree::Error) -> crate::Error {
    error.map_kind(|kind| match kind {
        pronto_worktree::ErrorKind::Unsupported => ErrorKind::Unsupported,
        pronto_worktree::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::InvalidInput,
    })
}
