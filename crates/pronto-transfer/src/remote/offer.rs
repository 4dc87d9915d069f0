//! Selects the commits that are sent as haves in a negotiation, by options and settings.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_repository::Notice;
use pronto_wire::fetch::Negotiator;

use super::Remote;
use super::connection::from_wire;
use super::negotiate::NegotiationHistory;
use crate::objects::from_odb;
use crate::revision::RefSelection;
use crate::{Error, ErrorKind, Repository, Result};

/// The commits that are sent as haves in a negotiation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NegotiationTips {
    /// The tips whose history is sent as haves; `None` for the history of all refs.
    pub tips: Option<Vec<ObjectId>>,
    /// The commits that every request contains as haves. Their ancestors are not sent.
    pub includes: Vec<ObjectId>,
}

impl NegotiationTips {
    /// Adds the commits of every request to `negotiator`.
    pub(crate) fn begin(&self, negotiator: &mut dyn Negotiator) -> Result<()> {
        for id in &self.includes {
            negotiator.acknowledge(id).map_err(from_wire)?;
        }
        Ok(())
    }
}

/// The options that select the haves of a negotiation. Options that are not given are read from the
/// settings of the remote (`remote.<name>.negotiationRestrict`,
/// `remote.<name>.negotiationInclude`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferOptions {
    /// The revisions, or ref patterns, whose history is sent as haves (`--negotiation-restrict`).
    pub restrict: Vec<BString>,
    /// The commits, or ref patterns, that are always sent as haves (`--negotiation-include`).
    pub include: Vec<BString>,
}

impl OfferOptions {
    /// Selects the haves for `remote`. Costs an iteration over all refs for each pattern. Warns of
    /// patterns that match no ref, and ignores missing refs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if an object does not exist, and with
    /// [`ErrorKind::Unsupported`] if an object of `include` is not a commit.
    pub fn choose(&self, repository: &Repository, remote: &Remote) -> Result<NegotiationTips> {
        let or_configured = |given: &'_ [BString], configured: &'_ [BString]| match given.is_empty()
        {
            true => configured.to_vec(),
            false => given.to_vec(),
        };
        let restrict = or_configured(&self.restrict, &remote.negotiation_restrict);
        let include = or_configured(&self.include, &remote.negotiation_include);
        let mut offer = NegotiationTips::default();
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

/// Resolves `names`, the values of `option`, to objects.
fn objects(repository: &Repository, option: &str, names: &[BString]) -> Result<Vec<ObjectId>> {
    let mut found = Vec::new();
    for name in names {
        if name.find_byteset(b"*?[").is_none() {
            // A missing ref is ignored.
            let Ok(id) = repository.resolve(name.as_bstr()) else {
                continue;
            };
            if !repository.objects()?.contains(&id).map_err(from_odb)? {
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

/// Checks that all `ids` are commits.
fn check_commits(repository: &Repository, ids: &[ObjectId]) -> Result<()> {
    let uncut = BTreeSet::new();
    let mut history = NegotiationHistory::new(repository.objects()?, &uncut);
    for id in ids {
        if history.peel(id).map_err(from_odb)? != Some(*id) {
            let message = "negotiating with a tip that is not a commit is not implemented natively";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}
