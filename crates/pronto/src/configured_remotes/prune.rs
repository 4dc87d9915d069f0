//! Removes the remote-tracking refs of branches that a remote no longer has: `git remote prune`.

use bstr::BString;
use pronto_io::watch::Watch;

use super::branches::short;
use super::{server, state};
use crate::remote::{Dangling, Remote, dangling_refs};
use crate::support::{self, Operation};
use crate::{Error, Repository, Result};

/// The stale remote-tracking refs that were deleted, or would be with `--dry-run`.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct PrunedRefs {
    /// The full names of the stale remote-tracking refs.
    pub refs: Vec<BString>,
    /// The symrefs that point to one of `refs`.
    pub dangling: Vec<Dangling>,
    /// The error because of which the refs could not be deleted, if there was one.
    pub failure: Option<Error>,
}

/// Deletes the remote-tracking refs of branches that `remote` no longer has. With `dry_run`
/// (`--dry-run`), only finds them.
///
/// # Errors
/// Fails if the remote cannot be reached, or if a ref cannot be read.
pub fn prune(
    repository: &Repository,
    remote: &Remote,
    dry_run: bool,
    watch: &Watch<'_>,
) -> Result<PrunedRefs> {
    support::require(repository, Operation::ManageRemotes)?;
    let refs = server::refs(repository, remote, watch)?;
    let mapped = state::mapped(remote, &refs);
    let mut pruned = PrunedRefs {
        refs: state::stale(repository, remote, &mapped)?,
        dangling: Vec::new(),
        failure: None,
    };
    pruned.refs.sort_by(|a, b| short(a).cmp(short(b)));
    if pruned.refs.is_empty() {
        return Ok(pruned);
    }
    pruned.dangling = dangling_refs(repository, &pruned.refs)?;
    if !dry_run {
        pruned.failure = repository.delete_refs(&pruned.refs)?;
    }
    Ok(pruned)
}
