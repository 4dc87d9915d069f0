//! Updates remote-tracking refs and collects upstreams after a push.

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;

use super::{PushRemote, PushStatus, PushedRef, TrackingUpdate, UpstreamToSet};
use crate::refs::{ExpectedValue, update_failed};
use crate::{Repository, hooks};

/// Updates the remote-tracking refs of the pushed refs. A refusal by the hook
/// `reference-transaction` ends the updates.
pub(super) fn update(
    repository: &Repository,
    destination: &PushRemote,
    refs: &[PushedRef],
) -> Vec<TrackingUpdate> {
    let mut tracked: Vec<TrackingUpdate> = Vec::new();
    for pushed in refs {
        if tracked.last().is_some_and(TrackingUpdate::ends_command) {
            break;
        }
        if !matches!(pushed.status, PushStatus::Ok | PushStatus::UpToDate) {
            continue;
        }
        if pushed.rewrites.is_empty() {
            let name = pushed.name.as_bstr();
            let new = (!pushed.deletes).then_some(pushed.new);
            tracked.extend(update_one(repository, destination, name, new));
        }
        for rewrite in &pushed.rewrites {
            let name = rewrite.name.as_ref().unwrap_or(&pushed.name);
            let new = rewrite.new.unwrap_or(pushed.new);
            let new = (!new.is_null()).then_some(new);
            tracked.extend(update_one(repository, destination, name.as_bstr(), new));
        }
    }
    tracked
}

/// Updates the remote-tracking ref of `name`, if there is one.
fn update_one(
    repository: &Repository,
    destination: &PushRemote,
    name: &BStr,
    new: Option<ObjectId>,
) -> Option<TrackingUpdate> {
    let tracking = destination.tracking(name)?;
    let current = repository.refs().id_of(&tracking).ok().flatten();
    if current == new && !hooks::has_programs(repository, "reference-transaction") {
        return Some(TrackingUpdate {
            name: tracking,
            failure: None,
        });
    }
    let mut transaction = repository.transaction();
    match new {
        Some(new) => {
            transaction.update(&tracking, new, ExpectedValue::Anything, "update by push");
        }
        None => {
            transaction.delete(&tracking, ExpectedValue::Anything);
        }
    }
    let failure = transaction.commit().err().map(|error| match new {
        Some(_) => update_failed(&tracking.to_string(), error),
        None => error,
    });
    Some(TrackingUpdate {
        name: tracking,
        failure,
    })
}

impl TrackingUpdate {
    /// Returns whether no further ref may be updated.
    fn ends_command(&self) -> bool {
        let error = self.failure.as_ref();
        error.is_some_and(|error| error.kind().ends_command())
    }
}

/// Returns the upstreams to configure for the pushed branches.
pub(super) fn upstreams(repository: &Repository, refs: &[PushedRef]) -> Vec<UpstreamToSet> {
    let mut found = Vec::new();
    for pushed in refs {
        let Some(peer) = &pushed.peer else { continue };
        let is_set = matches!(pushed.status, PushStatus::Ok | PushStatus::UpToDate);
        if !is_set || pushed.new.is_null() || !pushed.name.starts_with(b"refs/heads/") {
            continue;
        }
        let resolved = repository.refs().resolve(&peer.name).ok().flatten();
        let local = match resolved {
            Some(found) if found.is_symbolic && found.id.is_some() => found.name,
            _ => peer.name.clone(),
        };
        let Some(short) = local.strip_prefix(b"refs/heads/") else {
            continue;
        };
        found.push(UpstreamToSet {
            branch: short.into(),
            followed: pushed.name.clone(),
        });
    }
    found
}
