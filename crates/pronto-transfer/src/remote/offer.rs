//! The commits that a negotiation offers, as options and settings choose them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_repository::Notice;
use pronto_wire::fetch::Negotiator;

use super::Remote;
use super::connection::from_wire;
use super::connectivity::from_store;
use super::negotiate::History;
use crate::revision::RefSelection;
use crate::{Error, ErrorKind, Repository, Result};

/// A choice of the commits that a negotiation offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The objects whose history is offered; `None` for that of all refs.
    pub tips: Option<Vec<ObjectId>>,
    /// The commits that every request says are here. Their ancestors are not offered.
    pub includes: Vec<ObjectId>,
}

impl Offer {
    /// Tells `negotiator` about the commits that every request names.
    pub(crate) fn begin(&self, negotiator: &mut dyn Negotiator) -> Result<()> {
        for id in &self.includes {
            negotiator.acknowledge(id).map_err(from_wire)?;
        }
        Ok(())
    }
}

/// The options of a fetch that choose what it offers. Those that are not given are configured for the
/// remote (`remote.<name>.negotiationRestrict`, `remote.<name>.negotiationInclude`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferOptions {
    /// Revisions, or patterns of refs, whose history is offered (`--negotiation-restrict`).
    pub restrict: Vec<BString>,
    /// Commits that are always offered, or patterns of refs (`--negotiation-include`).
    pub include: Vec<BString>,
}

impl OfferOptions {
    /// Chooses the offer to `remote`. Costs a walk over all refs for each pattern. Patterns that match
    /// nothing are warned of, and missing refs are ignored.
    ///
    /// # Errors
    /// An object does not exist. With [`ErrorKind::Unsupported`], one that is always to be offered is no
    /// commit.
    pub fn choose(&self, repository: &Repository, remote: &Remote) -> Result<Offer> {
        let or_configured = |given: &'_ [BString], configured: &'_ [BString]| match given.is_empty()
        {
            true => configured.to_vec(),
            false => given.to_vec(),
        };
        let restrict = or_configured(&self.restrict, &remote.negotiation_restrict);
        let include = or_configured(&self.include, &remote.negotiation_include);
        let mut offer = Offer::default();
        if !restrict.is_empty() {
            offer.tips = Some(objects(repository, "--negotiation-restrict", &restrict)?);
        }
        let mut seen = BTreeSet::new();
        offer.includes = objects(repository, "--negotiation-include", &include)?;
        offer.includes.retain(|id| seen.insert(*id));
        if !offer.includes.is_empty() {
            check_commits(repository, &offer.includes)?;
        }
        Ok(offer)
    }
}

/// Returns the objects that `names`, the values of `option`, stand for.
fn objects(repository: &Repository, option: &str, names: &[BString]) -> Result<Vec<ObjectId>> {
    let mut found = Vec::new();
    for name in names {
        if name.find_byteset(b"*?[").is_none() {
            // A missing ref is ignored.
            let Ok(id) = repository.resolve(name.as_bstr()) else {
                continue;
            };
            if !repository.objects()?.contains(&id).map_err(from_store)? {
                let message = format!("the object {name} does not exist");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            found.push(id);
            continue;
        }
        let before = found.len();
        let selection = RefSelection::glob(name.as_bstr());
        repository.refs().for_each("refs/", |reference| {
            if selection.shown(reference.name, &[]).is_some() {
                found.push(reference.id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if found.len() == before {
            let message = format!("ignoring {option}={name} because it does not match any refs");
            let ignored = Error::new(ErrorKind::InvalidInput, message);
            repository.notify(Notice::Ignored(ignored));
        }
    }
    Ok(found)
}

/// Fails unless all of `ids` are commits.
fn check_commits(repository: &Repository, ids: &[ObjectId]) -> Result<()> {
    let uncut = BTreeSet::new();
    let mut history = History::new(repository.objects()?, &uncut);
    for id in ids {
        if history.peel(id).map_err(from_store)? != Some(*id) {
            let message = "a negotiation that includes an object that is no commit";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}
