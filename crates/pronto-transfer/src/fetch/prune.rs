//! Removes tracking refs of branches that no longer exist on the other side.

use std::collections::HashSet;
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;

use super::map::Mapped;
use super::{Flag, Options, Outcome, Summary, Update, Work};
use crate::refs::Expected;
use crate::remote::{Refspec, Remote};
use crate::{Repository, Result};

/// The refspec of all tags.
const TAGS: &str = "refs/tags/*:refs/tags/*";

/// The refspec of a fetch from an address that prunes tags and names nothing else: all tags, as in
/// Git. `None` for every other fetch.
pub(super) fn tags_of_address(
    repository: &Repository,
    remote: &Remote,
    options: &Options,
) -> Result<Option<Options>> {
    if remote.is_configured
        || !options.refspecs.is_empty()
        || !includes_tags(repository, remote, options)?
    {
        return Ok(None);
    }
    let mut options = options.clone();
    options.refspecs = vec![Refspec::parse(TAGS.into())?];
    Ok(Some(options))
}

/// Whether tags are pruned, too.
fn includes_tags(repository: &Repository, remote: &Remote, options: &Options) -> Result<bool> {
    match options.prune_tags.or(remote.prune_tags) {
        Some(decided) => Ok(decided),
        None => repository.config().bool_or("fetch.prunetags", false),
    }
}

/// Removes stale refs, if requested.
pub(super) fn prune(work: &Work<'_>, entries: &[Mapped], outcome: &mut Outcome) -> Result<()> {
    let config = work.repository.config();
    let is_wanted = match work.options.prune.or(work.remote.prune) {
        Some(decided) => decided,
        None => config.bool_or("fetch.prune", false)?,
    };
    if !is_wanted {
        return Ok(());
    }
    let mut specs: Vec<Refspec> = match work.options.refspecs.is_empty() {
        true => work.remote.fetch.clone(),
        false => work.options.refspecs.clone(),
    };
    let tags = includes_tags(work.repository, work.remote, work.options)?;
    if tags && work.options.refspecs.is_empty() && work.remote.is_configured {
        specs.push(Refspec::parse(TAGS.into())?);
    }
    let stale = stale(work, entries, &specs)?;
    if stale.is_empty() {
        return Ok(());
    }
    find_dangling(work, &stale, outcome)?;
    if !work.options.dry_run {
        let mut transaction = work.repository.transaction();
        for (name, _) in &stale {
            transaction.delete(name, Expected::Anything);
        }
        transaction.commit()?;
    }
    let null = ObjectId::null(work.repository.object_hash());
    for (name, id) in &stale {
        outcome.updates.push(Update {
            flag: Flag::Pruned,
            summary: Summary::Deleted,
            note: None,
            remote: BString::default(),
            local: name.clone(),
            old: *id,
            new: null,
        });
    }
    Ok(())
}

/// References here that a refspec makes, from ones that are not there any more.
fn stale(
    work: &Work<'_>,
    entries: &[Mapped],
    specs: &[Refspec],
) -> Result<Vec<(BString, ObjectId)>> {
    let theirs: HashSet<&BString> = entries.iter().map(|entry| &entry.name).collect();
    let mut stale = Vec::new();
    work.repository.refs().for_each("refs/", |found| {
        if found.symbolic.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut sources = specs
            .iter()
            .filter(|spec| !spec.negative)
            .filter_map(|spec| spec.source_of(found.name))
            .peekable();
        let is_ours = sources.peek().is_some();
        let excluded = |source: &BString| specs.iter().any(|spec| spec.excludes(source.as_bstr()));
        if is_ours && !sources.any(|source| theirs.contains(&source) || excluded(&source)) {
            stale.push((found.name.to_owned(), found.id));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(stale)
}

/// Finds the symbolic refs whose target is removed.
fn find_dangling(
    work: &Work<'_>,
    stale: &[(BString, ObjectId)],
    outcome: &mut Outcome,
) -> Result<()> {
    for reference in work.repository.refs().all("refs/")? {
        if let crate::refs::Target::Symbolic(target) = &reference.target
            && stale.iter().any(|(name, _)| *target == *name)
        {
            outcome.dangling.push(reference.name.clone());
        }
    }
    Ok(())
}
