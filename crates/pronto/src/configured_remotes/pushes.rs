//! The refs that a push to a remote would update, for `git remote show`.

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_wire::advertisement::RemoteRef;

use super::branches::short;
use crate::push::{PushRemote, preview};
use crate::{Repository, Result};

/// The effect of a push on one ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushState {
    /// The ref would be created.
    Create,
    /// The ref would be deleted.
    Delete,
    /// The ref already has the new value.
    UpToDate,
    /// The ref would be fast-forwarded.
    FastForward,
    /// The update is not a fast-forward: the ref has commits that the local branch lacks.
    OutOfDate,
}

/// A ref that a push would update, or a configured push refspec.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfiguredPush {
    /// The source: an abbreviated ref name, or `(matching)` or `(delete)`.
    pub source: BString,
    /// The abbreviated name of the ref of the remote.
    pub destination: BString,
    /// Whether updates that are not fast-forwards are allowed (`+` in the refspec).
    pub forced: bool,
    /// The effect of the push; `None` if the remote was not queried.
    pub state: Option<PushState>,
}

/// Returns the refs that a push to `destination` would update, where `refs` are the refs of the
/// remote.
pub(super) fn matched(
    repository: &Repository,
    destination: &PushRemote,
    refs: &[RemoteRef],
) -> Result<Vec<ConfiguredPush>> {
    let mut pushes = Vec::new();
    for found in preview(repository, destination, refs)? {
        let (old, new) = (found.old, found.peer.id);
        pushes.push(ConfiguredPush {
            source: short(&found.peer.name).into(),
            destination: short(&found.name).into(),
            forced: found.force,
            state: Some(state(repository, old, new)?),
        });
    }
    sort(&mut pushes);
    Ok(pushes)
}

fn state(repository: &Repository, old: ObjectId, new: ObjectId) -> Result<PushState> {
    if new.is_null() {
        return Ok(PushState::Delete);
    }
    if old == new {
        return Ok(PushState::UpToDate);
    }
    if old.is_null() {
        return Ok(PushState::Create);
    }
    let is_commit =
        |id| -> Result<bool> { Ok(repository.kind_of(id)? == Some(ObjectKind::Commit)) };
    if !is_commit(old)? || !is_commit(new)? {
        return Ok(PushState::OutOfDate);
    }
    let cuts = repository.shallow_commits()?.iter().copied().collect();
    Ok(match repository.is_ancestor(&old, &new, &cuts)? {
        true => PushState::FastForward,
        false => PushState::OutOfDate,
    })
}

/// Returns the configured push refspecs of `destination`.
pub(super) fn configured(destination: &PushRemote) -> Vec<ConfiguredPush> {
    let matching = || ConfiguredPush {
        source: "(matching)".into(),
        destination: "(matching)".into(),
        forced: false,
        state: None,
    };
    if destination.push.is_empty() {
        return vec![matching()];
    }
    let specs = destination.push.iter().map(|spec| {
        let source = match spec.source.is_empty() {
            _ if spec.matching => "(matching)".into(),
            true => BString::from("(delete)"),
            false => spec.source.clone(),
        };
        let destination = spec.destination.clone().filter(|_| !spec.matching);
        ConfiguredPush {
            destination: destination.unwrap_or_else(|| source.clone()),
            source,
            forced: spec.force,
            state: None,
        }
    });
    let mut pushes: Vec<ConfiguredPush> = specs.collect();
    sort(&mut pushes);
    pushes
}

fn sort(pushes: &mut [ConfiguredPush]) {
    pushes.sort_by(|a, b| {
        let by_source = a.source.as_bstr().cmp(b.source.as_bstr());
        by_source.then_with(|| a.destination.cmp(&b.destination))
    });
}
