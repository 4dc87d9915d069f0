//! What configuration and environment say about looking at the worktree.

use crate::{Repository, Result};
use pronto_worktree::pathspec::Defaults;
use pronto_worktree::status::Options;

/// How the files of `repository` are compared, by `core.*`.
///
/// # Errors
/// A value is not of its type.
pub fn walk_options(repository: &Repository) -> Result<Options> {
    let config = repository.config();
    let sparse = config.bool_or("core.sparseCheckout", false)?;
    let expects = config.bool_or("sparse.expectFilesOutsideOfPatterns", false)?;
    Ok(Options {
        rules: repository.stat_rules()?,
        trust_executable: repository.trusts_file_mode()?,
        has_symlinks: config.bool_or("core.symlinks", true)?,
        ignore_case: repository.ignores_case()?,
        notice_present_sparse: sparse && !expects,
        ..Options::default()
    })
}

/// What `GIT_*_PATHSPECS` say about all pathspecs.
///
/// # Errors
/// A value is not a boolean, or two contradict each other.
pub fn pathspec_defaults(repository: &Repository) -> Result<Defaults> {
    let environment = repository.environment();
    let defaults = Defaults {
        literal: environment.boolean("GIT_LITERAL_PATHSPECS", false)?,
        glob: environment.boolean("GIT_GLOB_PATHSPECS", false)?,
        noglob: environment.boolean("GIT_NOGLOB_PATHSPECS", false)?,
        icase: environment.boolean("GIT_ICASE_PATHSPECS", false)?,
    };
    let wrong = |message: &str| crate::Error::new(crate::ErrorKind::InvalidInput, message);
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
