//! Negotiates common commits of this repository and a remote (`fetch --negotiate-only`,
//! `push.negotiate`).

use std::collections::{BTreeSet, BinaryHeap, HashSet};

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_wire::client::FetchClient;
use pronto_wire::negotiate::CommitSupplier;

use super::connection::from_wire;
use super::negotiate::{NegotiationHistory, negotiator};
use super::offer::NegotiationTips;
use crate::objects::from_odb;
use crate::{Repository, Result};

/// Returns commits that are reachable from the tips of `offer`, or included in it, and that the
/// remote has, too. Objects other than commits are ignored. Costs the rounds of a negotiation, and
/// after each round a walk over the commits that are newer than the oldest common one.
///
/// # Errors
/// Fails with `ErrorKind::Unsupported` if the server cannot negotiate without a pack, and with
/// `ErrorKind::Transport` if the connection breaks.
pub fn common_commits(
    repository: &Repository,
    client: &mut FetchClient,
    offer: &NegotiationTips,
    server_options: &[BString],
) -> Result<Vec<ObjectId>> {
    let store = repository.objects()?;
    let cut: BTreeSet<ObjectId> = repository.shallow_commits()?.iter().copied().collect();
    let graph = repository.commit_graph()?;
    let mut history = NegotiationHistory::new(store, &cut).with_graph(graph);
    let mut commits = Vec::new();
    let offered = NegotiationHistory::new(store, &cut).with_graph(graph);
    let mut negotiator = negotiator(repository.config(), offered);
    for tip in offer.tips.iter().flatten() {
        if let Some(id) = history.peel(tip).map_err(from_odb)? {
            negotiator.add_tip(&id).map_err(from_wire)?;
            commits.push(id);
        }
    }
    offer.begin(&mut *negotiator)?;
    let mut is_enough = |common: &[ObjectId]| all_lead_to(&commits, common, &mut history);
    let found = client.find_common(
        &offer.includes,
        server_options,
        &mut *negotiator,
        &mut is_enough,
    );
    found.map_err(from_wire)
}

/// Whether one of `targets` is reachable from each of `tips`. Reads only the commits that are newer
/// than the oldest target.
fn all_lead_to(
    tips: &[ObjectId],
    targets: &[ObjectId],
    history: &mut dyn CommitSupplier,
) -> Result<bool, pronto_wire::Error> {
    if targets.is_empty() {
        return Ok(false);
    }
    let mut oldest = i64::MAX;
    for id in targets {
        if let Some(commit) = history.commit(id)? {
            oldest = oldest.min(commit.time);
        }
    }
    let targets: HashSet<&ObjectId> = targets.iter().collect();
    for tip in tips {
        let mut seen = HashSet::from([*tip]);
        let mut left = BinaryHeap::from([(i64::MAX, *tip)]);
        let mut is_found = false;
        while let Some((_, id)) = left.pop() {
            if targets.contains(&id) {
                is_found = true;
                break;
            }
            let Some(commit) = history.commit(&id)?.filter(|it| it.time >= oldest) else {
                continue;
            };
            let parents = commit.parents.into_iter();
            left.extend(
                parents
                    .filter(|id| seen.insert(*id))
                    .map(|id| (commit.time, id)),
            );
        }
        if !is_found {
            return Ok(false);
        }
    }
    Ok(true)
}
