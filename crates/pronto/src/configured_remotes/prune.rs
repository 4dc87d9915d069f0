//! Removing the tracking refs of branches that a remote no longer has: `git remote prune`.

use bstr::BString;
use pronto_io::watch::Watch;

use super::branches::short;
use super::{server, state};
use crate::remote::{Dangling, Remote, dangling_refs};
use crate::support::{self, Operation};
use crate::{Error, Repository, Result};

/// The tracking refs that were removed, or would be.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Pruned {
    /// Their full names.
    pub refs: Vec<BString>,
    /// The symbolic refs that lead to one of them.
    pub dangling: Vec<Dangling>,
    /// The reason why the refs are still there, if they could not be removed.
    pub failure: Option<Error>,
}

/// Removes the tracking refs of branches that `remote` no longer has; with `dry_run`, only finds them.
///
/// # Errors
/// The remote cannot be reached, or a ref cannot be read or removed.
pub fn prune(
    repository: &Repository,
    remote: &Remote,
    dry_run: bool,
    watch: &Watch<'_>,
) -> Result<Pruned> {
    support::require(Operation::ManageRemotes, repository)?;
    let refs = server::refs(repository, remote, watch)?;
    let mapped = state::mapped(remote, &refs);
    let mut pruned = Pruned {
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
