//! Finds stale remote-tracking refs, and symrefs that point to them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};

use super::Refspec;
use crate::refs::RefTarget;
use crate::{Repository, Result};

/// A symref whose target is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dangling {
    /// The full name of the symref.
    pub name: BString,
    /// The full name of the deleted ref.
    pub target: BString,
}

/// Returns the local refs that are destinations of `specs` for remote refs that are not among
/// `theirs`, sorted by name. Costs an iteration over the refs.
///
/// # Errors
/// Fails if the refs cannot be read.
pub fn stale_refs(
    repository: &Repository,
    specs: &[Refspec],
    theirs: &HashSet<&BString>,
) -> Result<Vec<BString>> {
    let mut stale = Vec::new();
    repository.refs().for_each("refs/", |found| {
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
            stale.push(found.name.to_owned());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(stale)
}

/// Returns the symrefs that point to one of `gone`. Costs an iteration over the refs.
///
/// # Errors
/// Fails if the refs cannot be read.
pub fn dangling_refs(repository: &Repository, gone: &[BString]) -> Result<Vec<Dangling>> {
    let refs = repository.refs();
    let mut dangling = Vec::new();
    for reference in refs.all("refs/")? {
        if !matches!(reference.target, RefTarget::Symbolic(_)) {
            continue;
        }
        let resolved = refs.resolve(&reference.name).ok().flatten();
        if let Some(resolved) = resolved.filter(|resolved| gone.contains(&resolved.name)) {
            dangling.push(Dangling {
                name: reference.name,
                target: resolved.name,
            });
        }
    }
    Ok(dangling)
}
