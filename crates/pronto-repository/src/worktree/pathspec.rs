//! Parsing of pathspecs and paths that a caller gives.

use bstr::{BStr, BString, ByteSlice};
use pronto_worktree::pathspec::{Defaults, Pathspec, entry_from_top, path_from_top};

use crate::{ErrorKind, Repository, Result};

/// Returns the defaults for all pathspecs from `GIT_*_PATHSPECS`.
///
/// # Errors
/// A value is not a boolean, or two contradict each other.
fn pathspec_defaults(repository: &Repository) -> Result<Defaults> {
    let environment = repository.environment();
    let defaults = Defaults {
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
    /// Parses pathspecs relative to the current directory of the caller. If all of them exclude,
    /// they exclude from the whole worktree.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) in Git's words,
    /// [`Unsupported`](ErrorKind::Unsupported) for attributes; an environment variable is
    /// malformed.
    pub fn pathspec<'a>(&self, specs: impl IntoIterator<Item = &'a BStr>) -> Result<Pathspec> {
        self.pathspec_by(specs, pathspec_defaults(self)?)
    }

    /// Like [`pathspec`](Self::pathspec), for commands that are about the current directory when
    /// they are given no path: where all pathspecs exclude, they exclude from what is below it.
    ///
    /// # Errors
    /// As for [`pathspec`](Self::pathspec).
    pub fn pathspec_below_here<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a BStr>,
    ) -> Result<Pathspec> {
        let defaults = Defaults {
            exclude_below_prefix: true,
            ..pathspec_defaults(self)?
        };
        self.pathspec_by(specs, defaults)
    }

    fn pathspec_by<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a BStr>,
        defaults: Defaults,
    ) -> Result<Pathspec> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        Pathspec::parse(specs, prefix.as_bstr(), top, defaults).map_err(|error| {
            error.map_kind(|kind| match kind {
                pronto_worktree::ErrorKind::Unsupported => ErrorKind::Unsupported,
                _ => ErrorKind::InvalidInput,
            })
        })
    }

    /// Returns `path`, which is relative to the current directory of the caller, relative to the
    /// top of the worktree. A slash at its end stays.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) in Git's words if it leads outside.
    pub fn path_from_top(&self, path: &BStr) -> Result<BString> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        path_from_top(path, prefix.as_bstr(), top)
            .map_err(|error| error.map_kind(|_| ErrorKind::InvalidInput))
    }

    /// Returns `path`, the name of an entry of the index, relative to the top of the worktree. What can only be a
    /// directory ends in a slash.
    ///
    /// # Errors
    /// As for [`path_from_top`](Self::path_from_top).
    pub fn entry_from_top(&self, path: &BStr) -> Result<BString> {
        let prefix = self.prefix_or_empty();
        let top = self.work_tree().unwrap_or(self.git_dir());
        entry_from_top(path, prefix.as_bstr(), top)
            .map_err(|error| error.map_kind(|_| ErrorKind::InvalidInput))
    }
}
