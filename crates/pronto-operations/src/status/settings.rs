//! Reads the settings of a status from the configuration and the environment.

use crate::{Repository, Result};
use pronto_worktree::status::Options;

/// Returns the options for comparing files of `repository`, from `core.*`.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub fn walk_options(repository: &Repository) -> Result<Options> {
    let config = repository.config();
    let sparse = config.bool_or("core.sparseCheckout", false)?;
    let expects = config.bool_or("sparse.expectFilesOutsideOfPatterns", false)?;
    let mut options = Options::default();
    options.rules = repository.stat_rules()?;
    options.trust_executable = repository.trusts_file_mode()?;
    options.has_symlinks = config.bool_or("core.symlinks", true)?;
    options.ignore_case = repository.ignores_case()?;
    options.notice_present_sparse = sparse && !expects;
    Ok(options)
}
