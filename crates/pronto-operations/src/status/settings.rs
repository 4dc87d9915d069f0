//! Settings of a status from configuration and environment.

use crate::{Repository, Result};
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
