//! Publishes the refs of a peer after all objects that are reachable from them were received.

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_netsync::message::{PublishedRef, StoreResult};
use pronto_netsync::repository::OfferedRef;

use super::connect::{CommonObjects, ConnectivityCheck, ConnectivityFault};
use super::{PeerRepository, failed, misled, names, refused};
use pronto::objects::from_odb;
use pronto::refs::{Edit, ExpectedValue, RefChangeKind, RefTarget};
use pronto::{ErrorKind, Repository, Result};

type PublishRefusal = pronto_netsync::Error;

/// A local branch that differs from the branch of the same name at the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The full name of the branch.
    pub name: BString,
    /// The previous commit of the local branch.
    pub from: ObjectId,
    /// The commit of the peer's branch.
    pub theirs: ObjectId,
    /// The relation of the local branch to the peer's branch.
    pub relation: BranchRelation,
}

/// The relation of a local branch to the peer's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchRelation {
    /// The local branch was fast-forwarded to the peer's.
    FastForwarded,
    /// The local branch is behind the peer's, and was not moved.
    Behind,
    /// The local branch is behind the peer's, and was not moved, because it is checked out.
    CheckedOut,
    /// The local branch contains the peer's branch, and additional commits.
    Ahead,
    /// Each branch contains commits that the other branch lacks.
    Diverged,
}

pub(super) fn publish(
    peer: &mut PeerRepository,
    offers: &[OfferedRef],
    arrived: &[bool],
) -> Result<Vec<PublishedRef>, PublishRefusal> {
    // Objects must exist until the refs are updated, but no longer, because a server continues
    // afterwards.
    let store = peer.repository.objects().map_err(failed)?;
    let turn = store.turn_of_writing().map_err(from_odb);
    let _turn = turn.map_err(failed)?;
    let mut new = Vec::new();
    for (offer, _) in offers.iter().zip(arrived).filter(|(_, arrived)| **arrived) {
        if offer.peeled.is_some() && offer.name.starts_with(b"refs/heads/") {
            return Err(misled(offer));
        }
        if !peer.is_known(offer)? {
            new.push(offer);
        }
    }
    let growing;
    if let Some(incoming) = peer.incoming.take() {
        let only = incoming.only().map_err(failed)?;
        let store = incoming.store().clone();
        let known = CommonObjects {
            commits: &peer.known,
            tags: &peer.known_tags,
        };
        let judge = ConnectivityCheck::new(&peer.repository, &store, only, known);
        let mut judge = judge.map_err(failed)?;
        let refusal = match judge.judge(&new).map_err(failed)? {
            Ok(()) => None,
            Err(ConnectivityFault::Missing(missing)) => Some(refused(format!(
                "the peer did not send all objects: {missing} is missing"
            ))),
            Err(ConnectivityFault::Misled(at)) => Some(misled(new[at])),
        };
        if let Some(refusal) = refusal {
            incoming.discard();
            return Err(refusal);
        }
        let admitted = peer.admit(&created(offers, arrived), Some(incoming.path()));
        match admitted.map_err(failed)? {
            Ok(turn) => growing = turn,
            Err(reason) => {
                incoming.discard();
                return Err(refused(reason));
            }
        }
        incoming.publish().map_err(failed)?;
    } else if let Some(offer) = new.first() {
        return Err(misled(offer));
    } else {
        let admitted = peer.admit(&created(offers, arrived), None);
        growing = admitted.map_err(failed)?.map_err(refused)?;
    }
    let _growing = growing;
    match peer.rules {
        Some(_) => peer.publish_hosted(offers, arrived).map_err(failed),
        None => publish_refs(peer, offers, arrived).map_err(failed),
    }
}

/// Returns the offers whose refs may be created.
fn created<'a>(offers: &'a [OfferedRef], arrived: &[bool]) -> Vec<&'a OfferedRef> {
    let all = offers.iter().zip(arrived);
    let all = all.filter(|(_, arrived)| **arrived);
    all.map(|(offer, _)| offer).collect()
}

/// Updates all refs in one transaction.
fn publish_refs(
    peer: &mut PeerRepository,
    offers: &[OfferedRef],
    arrived: &[bool],
) -> Result<Vec<PublishedRef>> {
    let repository = peer.repository.clone();
    let mut transaction = repository.transaction();
    let (mut published, mut has_edits) = (Vec::new(), false);
    let mut taken: BTreeSet<BString> = BTreeSet::new();
    peer.moved.clear();
    for (offer, arrived) in offers.iter().zip(arrived) {
        let tracking = names::tracking(&peer.options.peer, &offer.name);
        let mut fate = |stored, stored_as: &[u8]| {
            published.push(PublishedRef {
                name: offer.name.clone(),
                stored,
                stored_as: stored_as.to_vec(),
            });
        };
        let usable = match tracking {
            Some(name) if *arrived && has_place(&repository, &taken, &name)? => Some(name),
            _ => None,
        };
        let Some(name) = usable else {
            fate(StoreResult::Refused, b"");
            continue;
        };
        let before = repository.refs().find(&name)?;
        let before = match before.map(|found| found.target) {
            Some(RefTarget::Symbolic(_)) => {
                fate(StoreResult::Refused, b"");
                continue;
            }
            Some(RefTarget::Object(id)) => Some(id),
            None => None,
        };
        taken.insert(name.clone());
        if before != Some(offer.id) {
            let stored = match before {
                None => StoreResult::New,
                Some(before) if is_forward(&repository, before, offer)? => StoreResult::FastForward,
                Some(_) => StoreResult::Divergent,
            };
            let message = match stored {
                StoreResult::New => "netsync: new",
                StoreResult::FastForward => "netsync: fast-forward",
                _ => "netsync: forced-update",
            };
            transaction.push(edit(&name, before, offer, message));
            has_edits = true;
            fate(stored, &name);
        }
        if let Some(moved) = own_branch(peer, &repository, offer)? {
            if moved.relation == BranchRelation::FastForwarded {
                let message = format!("netsync {}: fast-forward", peer.options.peer);
                transaction.push(edit(&moved.name, Some(moved.from), offer, &message));
                has_edits = true;
            }
            peer.moved.push(moved);
        }
    }
    if has_edits {
        let kept = peer.directory();
        std::fs::create_dir_all(&kept).context(ErrorKind::Io, "cannot create", &kept)?;
        transaction.prepare()?.commit()?;
    }
    Ok(published)
}

pub(super) fn edit(
    name: &BString,
    before: Option<ObjectId>,
    offer: &OfferedRef,
    message: &str,
) -> Edit {
    Edit {
        name: name.clone(),
        change: RefChangeKind::Set(RefTarget::Object(offer.id)),
        expected: before.map_or(ExpectedValue::Missing, ExpectedValue::Object),
        message: Some(message.into()),
        follow: false,
        create_log: false,
        peeled: offer.peeled,
        log_from: None,
    }
}

/// Returns whether the name of a ref has no conflict with existing refs and those in `taken`.
pub(super) fn has_place(
    repository: &Repository,
    taken: &BTreeSet<BString>,
    name: &BString,
) -> Result<bool> {
    let refs = repository.refs();
    if refs.find(name)?.is_some() {
        return Ok(!taken.contains(name));
    }
    let slashes = name.find_iter("/").skip(2);
    for end in slashes {
        let above = name[..end].as_bstr();
        if taken.contains(above) || refs.find(above)?.is_some() {
            return Ok(false);
        }
    }
    let mut below = name.clone();
    below.push(b'/');
    let is_above =
        (taken.range(below.clone()..).next()).is_some_and(|next| next.starts_with(&below));
    Ok(!taken.contains(name) && !is_above && refs.all(&below)?.is_empty())
}

fn is_forward(repository: &Repository, before: ObjectId, offer: &OfferedRef) -> Result<bool> {
    let Some(before) = repository.peel_tag(before)?.or(Some(before)) else {
        return Ok(false);
    };
    repository.is_ancestor(&before, &offer.commit(), &BTreeSet::new())
}

/// Returns the local branch with the same name if it differs.
fn own_branch(
    peer: &PeerRepository,
    repository: &Repository,
    offer: &OfferedRef,
) -> Result<Option<Moved>> {
    let is_branch = offer.name.starts_with(b"refs/heads/") && offer.peeled.is_none();
    if !is_branch || peer.hidden.hides(offer.name.as_bstr()) {
        return Ok(None);
    }
    let own = repository.refs().find(&offer.name)?;
    let Some(RefTarget::Object(from)) = own.map(|own| own.target) else {
        return Ok(None);
    };
    let theirs = offer.id;
    if from == theirs {
        return Ok(None);
    }
    let none = BTreeSet::new();
    let relation = if repository.is_ancestor(&from, &theirs, &none)? {
        if !peer.options.fast_forward {
            BranchRelation::Behind
        } else if is_checked_out(repository, offer)? {
            BranchRelation::CheckedOut
        } else {
            BranchRelation::FastForwarded
        }
    } else if repository.is_ancestor(&theirs, &from, &none)? {
        BranchRelation::Ahead
    } else {
        BranchRelation::Diverged
    };
    Ok(Some(Moved {
        name: offer.name.clone().into(),
        from,
        theirs,
        relation,
    }))
}

pub(super) fn is_checked_out(repository: &Repository, offer: &OfferedRef) -> Result<bool> {
    let name = offer.name.as_bstr();
    let head = repository.refs().head()?;
    let is_here = !repository.is_bare() && head.name() == Some(name);
    Ok(is_here || repository.work_tree_using(name, false).is_some())
}
