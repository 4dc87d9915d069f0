//! Sets and deletes the symref `refs/remotes/NAME/HEAD` (`git remote set-head`).

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;

use super::add::{tracking_name, tracking_ref};
use super::file::{self, SetValue};
use super::{branches, key, server};
use crate::refs::{ExpectedValue, RefTarget};
use crate::remote::{FollowHead, Remote};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// The change of `refs/remotes/NAME/HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadChange {
    /// The ref already pointed to the requested branch.
    Unchanged,
    /// The ref is new.
    Created,
    /// The ref pointed to another branch of the remote, given without `refs/heads/`.
    Changed(BString),
    /// The ref pointed to this ref, which is not a remote-tracking branch of the remote.
    Foreign(BString),
    /// The ref was not symbolic, and had this object id.
    Detached(ObjectId),
}

/// Queries the remote for the branches to which its `HEAD` may point
/// (`git remote set-head --auto`). There are several if the server does not advertise the target
/// and several branches have the same commit.
///
/// # Errors
/// Fails if the remote cannot be reached.
pub fn heads(repository: &Repository, remote: &Remote, watch: &Watch<'_>) -> Result<Vec<BString>> {
    support::require(repository, Operation::ManageRemotes)?;
    let refs = server::refs(repository, remote, watch)?;
    Ok(of_refs(&refs))
}

/// Returns the branches to which `HEAD` may point, given the refs of the remote.
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

/// Points `refs/remotes/NAME/HEAD` to `branch` of the remote.
///
/// # Errors
/// Fails with [`ErrorKind::UnknownRevision`] if the branch has no remote-tracking ref, with
/// [`ErrorKind::Hook`] if a hook refuses the change, and with `ErrorKind::Reference` if the ref
/// cannot be written.
pub fn set_head(repository: &Repository, remote: &Remote, branch: &BStr) -> Result<HeadChange> {
    support::require(repository, Operation::ManageRemotes)?;
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
        Some(RefTarget::Object(id)) => HeadChange::Detached(id),
        Some(RefTarget::Symbolic(old)) if old == target => HeadChange::Unchanged,
        Some(RefTarget::Symbolic(old)) => {
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
        kind if kind.ends_command() => error,
        kind => {
            let message = format!("Could not set up {head}");
            Error::new(kind, message).reported_after(error.message())
        }
    })?;
    if remote.follow_head == FollowHead::Always {
        warn_only(repository, name)?;
    }
    Ok(change)
}

/// Changes `remote.NAME.followRemoteHEAD` from `always` to `warn`. Otherwise the next fetch would
/// undo the user's choice.
fn warn_only(repository: &Repository, name: &BStr) -> Result<()> {
    let key = key(name, "followremotehead");
    let change = SetValue {
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
/// Fails with [`ErrorKind::Hook`] if a hook refuses the deletion, or with `ErrorKind::Reference` if
/// the ref cannot be deleted.
pub fn delete_head(repository: &Repository, name: &BStr) -> Result<()> {
    support::require(repository, Operation::ManageRemotes)?;
    let head = tracking_ref(name, "HEAD".into());
    let mut transaction = repository.transaction();
    transaction.delete(&head, ExpectedValue::Anything);
    transaction.commit().map_err(|error| match error.kind() {
        kind if kind.ends_command() => error,
        kind => {
            let message = format!("Could not delete {head}");
            Error::new(kind, message).reported_after(error.message())
        }
    })
}
