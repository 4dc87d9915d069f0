//! The symbolic ref `refs/remotes/NAME/HEAD`.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;

use super::add::{tracking_name, tracking_ref};
use super::file::{self, Set};
use super::{branches, key, server};
use crate::refs::{Expected, Target};
use crate::remote::{FollowHead, Remote};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// The effect of setting the ref.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadChange {
    /// The ref was there and had this target.
    Unchanged,
    /// The ref is new.
    Created,
    /// The ref pointed to another branch of the remote, with this short name.
    Changed(BString),
    /// The ref pointed to this one, which is none of the remote.
    Foreign(BString),
    /// The ref was not symbolic but held this object.
    Detached(ObjectId),
}

/// The branches that `HEAD` of `remote` may point to. More than one if the server does not tell the
/// target and several branches have the same commit.
///
/// # Errors
/// The remote cannot be reached.
pub fn heads(repository: &Repository, remote: &Remote, watch: &Watch<'_>) -> Result<Vec<BString>> {
    support::require(Operation::ManageRemotes, repository)?;
    let refs = server::refs(repository, remote, watch)?;
    Ok(of_refs(&refs))
}

/// The same by the refs of the remote.
pub(super) fn of_refs(refs: &[RemoteRef]) -> Vec<BString> {
    let Some(head) = refs.iter().find(|found| found.name == "HEAD") else {
        return Vec::new();
    };
    let is_it = |found: &&RemoteRef| match &head.symref_target {
        Some(target) => target.as_bstr() == found.name,
        None => found.id.is_some() && found.id == head.id,
    };
    let branches = refs
        .iter()
        .filter(|found| found.name.starts_with(b"refs/heads/"));
    let named = branches.filter(is_it);
    named
        .map(|found| branches::short(&found.name).into())
        .collect()
}

/// Lets `refs/remotes/NAME/HEAD` point to `branch` of the remote.
///
/// # Errors
/// The branch is not known here, or the ref cannot be written.
pub fn set_head(repository: &Repository, remote: &Remote, branch: &BStr) -> Result<HeadChange> {
    support::require(Operation::ManageRemotes, repository)?;
    let name = remote.name.as_bstr();
    let head = tracking_ref(name, "HEAD".into());
    let wanted = tracking_ref(name, branch);
    let refs = repository.refs();
    let target = tracking_name(name, branch);
    let is_there = refs.id_of(&wanted).is_ok_and(|id| id.is_some());
    let Some(target) = target.filter(|_| is_there) else {
        let message = format!("Not a valid ref: {wanted}");
        return Err(Error::new(ErrorKind::UnknownRevision, message));
    };
    let before = refs.find(&head)?.map(|found| found.target);
    let change = match before {
        None => HeadChange::Created,
        Some(Target::Object(id)) => HeadChange::Detached(id),
        Some(Target::Symbolic(old)) if old == target => HeadChange::Unchanged,
        Some(Target::Symbolic(old)) => {
            let place = tracking_ref(name, "".into());
            match old.strip_prefix(&place[..]) {
                Some(branch) => HeadChange::Changed(branch.into()),
                None => HeadChange::Foreign(old.into_inner()),
            }
        }
    };
    let mut transaction = repository.transaction();
    transaction.set_symbolic(&head, target, Some("remote set-head".into()));
    transaction.commit().map_err(|error| match error.kind() {
        ErrorKind::Hook => error,
        kind => {
            let message = format!("Could not set up {head}");
            Error::new(*kind, message).reported_after(error.message())
        }
    })?;
    if remote.follow_head == FollowHead::Always {
        warn_only(repository, name)?;
    }
    Ok(change)
}

/// A fetch that follows `HEAD` of the remote would undo the choice, so that it only warns from now on.
fn warn_only(repository: &Repository, name: &BStr) -> Result<()> {
    let key = key(name, "followremotehead");
    let change = Set {
        key: key.as_bstr(),
        value: "warn".into(),
    };
    let failure = file::cannot_set(change.key, change.value);
    file::edit(repository, &failure, |document| {
        file::set(repository, document, &change, |_| true)
    })
}

/// Removes `refs/remotes/NAME/HEAD`, if it exists.
///
/// # Errors
/// The ref cannot be removed.
pub fn delete_head(repository: &Repository, name: &BStr) -> Result<()> {
    support::require(Operation::ManageRemotes, repository)?;
    let head = tracking_ref(name, "HEAD".into());
    let mut transaction = repository.transaction();
    transaction.delete(&head, Expected::Anything);
    transaction.commit().map_err(|error| match error.kind() {
        ErrorKind::Hook => error,
        kind => {
            let message = format!("Could not delete {head}");
            Error::new(*kind, message).reported_after(error.message())
        }
    })
}
