//! Commits that this repository and another one have (`fetch --negotiate-only`, `push.negotiate`).

use std::collections::{BTreeSet, BinaryHeap, HashSet};

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_wire::client::Client;
use pronto_wire::negotiate::Commits;

use super::connection::from_wire;
use super::connectivity::from_store;
use super::negotiate::{History, negotiator};
use super::offer::Offer;
use crate::{Repository, Result};

/// Returns commits that the tips of `offer` lead to, or that it includes, and that the other side has, too. Objects that are no commits are
/// ignored. Costs the rounds of a negotiation, and after each one a walk over the commits that are newer than the
/// oldest common one.
///
/// # Errors
/// The other side cannot negotiate without a pack (`Unsupported`), or the connection breaks.
pub fn common_commits(
    repository: &Repository,
    client: &mut Client,
    offer: &Offer,
    server_options: &[BString],
) -> Result<Vec<ObjectId>> {
    let store = repository.objects()?;
    let cut: BTreeSet<ObjectId> = repository.shallow_commits()?.iter().copied().collect();
    let graph = repository.commit_graph()?;
    let mut history = History::new(store, &cut).with_graph(graph);
    let mut commits = Vec::new();
    let offered = History::new(store, &cut).with_graph(graph);
    let mut negotiator = negotiator(repository.config(), offered);
    for tip in offer.tips.iter().flatten() {
        if let Some(id) = history.peel(tip).map_err(from_store)? {
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

/// Whether each of `tips` leads to one of `targets`. A path ends where it is older than all of them.
/// Reads the commits that are newer than the oldest target.
fn all_lead_to(
    tips: &[ObjectId],
    targets: &[ObjectId],
    history: &mut dyn Commits,
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
