//! Decides for each ref whether the update is allowed.

use std::collections::BTreeSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::{Options, PushStatus, PushedRef};
use crate::objects::from_odb;
use crate::{Repository, Result};

/// Sets the new value of each updated ref, and the status of rejected updates.
pub(super) fn decide(
    repository: &Repository,
    options: &Options,
    refs: &mut [PushedRef],
) -> Result<()> {
    for pushed in refs {
        match &pushed.peer {
            Some(peer) => pushed.new = peer.id,
            None if !options.mirror => continue,
            None => {}
        }
        pushed.deletes = pushed.new.is_null();
        if !pushed.deletes && pushed.old == pushed.new {
            pushed.status = PushStatus::UpToDate;
            continue;
        }
        let mut is_forced = pushed.force || options.force;
        let mut rejection = None;
        if let Some(lease) = &pushed.lease {
            match lease.expected == pushed.old {
                false => rejection = Some(PushStatus::RejectStale),
                true if lease.is_unseen => rejection = Some(PushStatus::RejectRemoteUpdated),
                true => is_forced = true,
            }
        }
        if rejection.is_none() && !pushed.deletes && !pushed.old.is_null() {
            rejection = rejection_of(repository, pushed)?;
        }
        match rejection {
            Some(_) if is_forced => pushed.forced_update = true,
            Some(status) => pushed.status = status,
            None => {}
        }
    }
    Ok(())
}

/// Returns the reason why an update is rejected without force.
fn rejection_of(repository: &Repository, pushed: &PushedRef) -> Result<Option<PushStatus>> {
    if pushed.name.starts_with(b"refs/tags/") {
        return Ok(Some(PushStatus::RejectAlreadyExists));
    }
    let store = repository.objects()?;
    if !store.contains(&pushed.old).map_err(from_odb)? {
        return Ok(Some(PushStatus::RejectFetchFirst));
    }
    let old = commit_of(repository, pushed.old)?;
    let (Some(old), Some(new)) = (old, commit_of(repository, pushed.new)?) else {
        return Ok(Some(PushStatus::RejectNeedsForce));
    };
    let cuts: BTreeSet<ObjectId> = repository.shallow_commits()?.iter().copied().collect();
    match repository.is_ancestor(&old, &new, &cuts)? {
        true => Ok(None),
        false => Ok(Some(PushStatus::RejectNonFastForward)),
    }
}

/// Peels `id` to a commit, if possible.
fn commit_of(repository: &Repository, id: ObjectId) -> Result<Option<ObjectId>> {
    let id = repository.peel_tag(id)?.unwrap_or(id);
    let header = repository.objects()?.header(&id).map_err(from_odb)?;
    let is_commit = header.is_some_and(|header| header.kind == ObjectKind::Commit);
    Ok(is_commit.then_some(id))
}
