//! Deletes stale remote-tracking refs after a fetch (`--prune`).

use std::collections::HashSet;

use bstr::BString;
use pronto_hash::ObjectId;

use super::map::FetchedRef;
use super::{FetchFailure, FetchRun, Flag, Options, Outcome, Update, UpdateSummary};
use crate::remote::{Refspec, Remote, dangling_refs, stale_refs};
use crate::{Repository, Result};

/// The refspec of all tags.
const TAGS: &str = "refs/tags/*:refs/tags/*";

/// Returns the refspec of all tags for a fetch from a URL that prunes tags and has no refspecs, as
/// in Git. `None` for every other fetch.
pub(super) fn tags_of_address(
    repository: &Repository,
    remote: &Remote,
    options: &Options,
) -> Result<Option<Options>> {
    if remote.is_configured
        || options.prefetch
        || !options.refspecs.is_empty()
        || !includes_tags(repository, remote, options)?
    {
        return Ok(None);
    }
    let mut options = options.clone();
    options.refspecs = vec![Refspec::parse(TAGS.into())?];
    Ok(Some(options))
}

/// Returns whether stale tags are deleted, too.
fn includes_tags(repository: &Repository, remote: &Remote, options: &Options) -> Result<bool> {
    match options.prune_tags.or(remote.prune_tags) {
        Some(decided) => Ok(decided),
        None => repository.config().bool_or("fetch.prunetags", false),
    }
}

/// Returns the remote with the refspec of all tags added, if tags are pruned and the fetch has no
/// refspecs. As in Git, the tags are fetched, too, so that only tags that the remote lacks are
/// stale. `None` for every other fetch.
pub(super) fn with_tags(
    repository: &Repository,
    remote: &Remote,
    options: &Options,
) -> Result<Option<Remote>> {
    let names_none = options.refspecs.is_empty() && !options.prefetch;
    if !remote.is_configured || !names_none || !includes_tags(repository, remote, options)? {
        return Ok(None);
    }
    let mut remote = remote.clone();
    remote.fetch.push(Refspec::parse(TAGS.into())?);
    Ok(Some(remote))
}

/// Deletes stale refs, if the options request that.
pub(super) fn prune(
    work: &FetchRun<'_>,
    entries: &[FetchedRef],
    outcome: &mut Outcome,
) -> Result<()> {
    let config = work.repository.config();
    let is_wanted = match work.options.prune.or(work.remote.prune) {
        Some(decided) => decided,
        None => config.bool_or("fetch.prune", false)?,
    };
    if !is_wanted {
        return Ok(());
    }
    let specs = match work.options.refspecs.is_empty() {
        true => &work.remote.fetch,
        false => &work.options.refspecs,
    };
    let theirs: HashSet<&BString> = entries.iter().map(|entry| &entry.name).collect();
    let stale = stale_refs(work.repository, specs, &theirs)?;
    if stale.is_empty() {
        return Ok(());
    }
    outcome.dangling = dangling_refs(work.repository, &stale)?;
    if !work.options.dry_run {
        let failed = work.repository.delete_refs(&stale)?;
        outcome.errors.extend(failed.map(FetchFailure::NotWritten));
    }
    let null = ObjectId::null(work.repository.object_hash());
    for name in &stale {
        outcome.updates.push(Update {
            flag: Flag::Pruned,
            summary: UpdateSummary::Deleted,
            note: None,
            remote: BString::default(),
            local: name.clone(),
            old: work.ours.get(name).copied().unwrap_or(null),
            new: null,
        });
    }
    Ok(())
}
