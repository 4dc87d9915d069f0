//! Applies limits of the number or the times of commits to a bundle.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;

use crate::objects::from_odb;
use crate::refs::{ResolvedRef, name};
use crate::revision::{RevisionSet, SetMember};
use crate::walk::{CommitWalk, WalkOptions, WalkStart};
use crate::{Repository, Result};

/// The commits within the limits.
pub(super) struct Limited {
    shown: HashSet<ObjectId>,
    /// The excluded parents of the commits, which are prerequisites of the bundle, in Git's order.
    pub(super) boundary: Vec<ObjectId>,
    /// The named objects, without tags outside of the time limits.
    pub(super) wants: Vec<ObjectId>,
    /// If revisions are excluded: the commits that neither these revisions nor `--since` excludes.
    possible: Option<HashSet<ObjectId>>,
}

/// Applies the limits of `walk` to `revisions`. Returns `None` if there are no limits.
///
/// # Errors
/// Fails if an object cannot be read, or the walk is interrupted.
pub(super) fn find(
    repository: &Repository,
    revisions: &RevisionSet,
    walk: &WalkOptions,
    watch: &Watch<'_>,
) -> Result<Option<Limited>> {
    if !is_limited(walk) {
        return Ok(None);
    }
    let mut starts = Vec::new();
    let mut wants = Vec::new();
    for member in &revisions.members {
        let id = member.found.id;
        if let Some(commit) = repository.peel_to(id, ObjectKind::Commit)? {
            starts.push(WalkStart {
                id: commit,
                is_excluded: member.is_excluded,
                is_left: member.is_left,
            });
        }
        if !member.is_excluded && is_of_time(repository, id, walk)? {
            wants.push(id);
        }
    }
    let possible = match starts.iter().any(|start| start.is_excluded) {
        true => {
            let mut all = WalkOptions::default();
            all.since = walk.since;
            Some(
                walk_all(repository, &starts, all, watch)?
                    .into_iter()
                    .collect(),
            )
        }
        false => None,
    };
    let commits = walk_all(repository, &starts, walk.clone(), watch)?;
    let shown: HashSet<ObjectId> = commits.iter().copied().collect();
    Ok(Some(Limited {
        boundary: boundary(repository, &commits, &shown)?,
        shown,
        wants,
        possible,
    }))
}

fn is_limited(walk: &WalkOptions) -> bool {
    walk.since.is_some()
        || walk.until.is_some()
        || walk.max_count.is_some()
        || walk.skip > 0
        || walk.min_parents > 0
        || walk.max_parents.is_some()
}

fn walk_all(
    repository: &Repository,
    starts: &[WalkStart],
    options: WalkOptions,
    watch: &Watch<'_>,
) -> Result<Vec<ObjectId>> {
    let mut walk = CommitWalk::new(repository, starts, options)?;
    let mut found = Vec::new();
    while let Some(walked) = walk.next(watch)? {
        found.push(walk.commits().id(walked.number)?);
    }
    Ok(found)
}

impl Limited {
    /// Returns the objects that the receiver of the bundle must have.
    pub(super) fn haves(&self, revisions: &RevisionSet) -> Vec<ObjectId> {
        let mut haves = revisions.ids(true);
        haves.extend(&self.boundary);
        haves
    }

    /// Whether the ref that named `member` is in the bundle. If the limits exclude the ref, its
    /// name is added to `excluded`, unless excluded revisions or `--since` exclude it anyway.
    pub(super) fn admits(
        &self,
        repository: &Repository,
        member: &SetMember,
        kind: Option<ObjectKind>,
        excluded: &mut Vec<BString>,
    ) -> Result<bool> {
        let id = &member.found.id;
        if kind != Some(ObjectKind::Commit) {
            return Ok(self.wants.contains(id));
        }
        let is_shown = self.shown.contains(id);
        let is_possible = self.possible.as_ref().is_none_or(|all| all.contains(id));
        if !is_shown
            && is_possible
            && !self.boundary.contains(id)
            && only_ref(repository, member).is_some()
        {
            excluded.push(member.name.clone());
        }
        Ok(is_shown)
    }
}

/// Whether `id` is a tag whose tagger date is within the time limits of `walk`, or is missing.
fn is_of_time(repository: &Repository, id: ObjectId, walk: &WalkOptions) -> Result<bool> {
    let has_times = walk.since.is_some() || walk.until.is_some();
    if !has_times || repository.kind_of(id)? != Some(ObjectKind::Tag) {
        return Ok(true);
    }
    let mut content = Vec::new();
    let store = repository.objects()?;
    store.find(&id, &mut content).map_err(from_odb)?;
    let Some(time) = pronto_object::header_time(&content, "tagger") else {
        return Ok(true);
    };
    Ok(walk.since.is_none_or(|since| since < time) && walk.until.is_none_or(|until| until > time))
}

/// Returns the parents of `commits` that are not `selected`. As in Git, the last found parent is
/// the first.
pub(super) fn boundary(
    repository: &Repository,
    commits: &[ObjectId],
    selected: &HashSet<ObjectId>,
) -> Result<Vec<ObjectId>> {
    let (mut found, mut buffer) = (HashSet::new(), Vec::new());
    let mut boundary = Vec::new();
    for id in commits {
        for parent in repository.commit_links(id, &mut buffer)?.parents {
            if !selected.contains(&parent) && found.insert(parent) {
                boundary.push(parent);
            }
        }
    }
    boundary.reverse();
    Ok(boundary)
}

/// Returns the ref that the name of `member` resolves to, if it is unique.
pub(super) fn only_ref(repository: &Repository, member: &SetMember) -> Option<ResolvedRef> {
    let refs = repository.refs();
    let resolved =
        name::candidates(member.name.as_bstr()).filter_map(|name| refs.resolve(&name).ok()?);
    let mut found = resolved.filter(|resolved| resolved.id.is_some());
    let only = found.next()?;
    found.next().is_none().then_some(only)
}
