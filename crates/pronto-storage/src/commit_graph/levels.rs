//! Positions of parents, and generation numbers, of the written commits.

use pronto_pack::commit_graph::write::{Entry, MOST_LEVELS};
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::GraphWriter;
use super::gather::{GatheredCommit, SortedCommits};
use super::install::GraphChain;

/// The entries of the written commits.
pub(super) struct ResolvedCommits {
    pub(super) entries: Vec<Entry>,
    /// The positions of parents; each entry has a range of them.
    pub(super) parents: Vec<u32>,
}

/// Resolves the positions of parents, then computes levels and generation numbers from the roots up.
pub(super) fn resolve(
    work: &GraphWriter<'_>,
    chain: &GraphChain,
    commits: &SortedCommits,
) -> Result<ResolvedCommits> {
    let title = "Finding extra edges in commit graph";
    let meter = work
        .watch
        .progress()
        .begin(title, Some(commits.len() as u64));
    let mut resolved = ResolvedCommits {
        entries: Vec::with_capacity(commits.len()),
        parents: Vec::new(),
    };
    for commit in commits {
        let start = resolved.parents.len();
        for parent in &commit.links.parents {
            let position = match commits.binary_search_by_key(parent, |other| other.id) {
                Ok(at) => chain.below + at as u32,
                Err(_) => below(work, chain, commit, parent)?,
            };
            resolved.parents.push(position);
        }
        resolved.entries.push(Entry {
            id: commit.id,
            tree: commit.links.tree,
            time: u64::try_from(commit.links.time).unwrap_or(0),
            level: 0,
            generation: 0,
            parents: start..resolved.parents.len(),
        });
        meter.add(1);
    }
    meter.finish();
    number(work, chain, &mut resolved)?;
    Ok(resolved)
}

/// Returns the position of `parent` in the kept layers.
fn below(
    work: &GraphWriter<'_>,
    chain: &GraphChain,
    commit: &GatheredCommit,
    parent: &pronto_hash::oid,
) -> Result<u32> {
    let found = match &work.graph {
        Some(graph) => graph.find(parent).map_err(from_pack)?,
        None => None,
    };
    let found = found.filter(|position| position.0 < chain.below);
    found.map(|position| position.0).ok_or_else(|| {
        let message = format!("missing parent {parent} for commit {}", commit.id);
        Error::new(ErrorKind::MissingObject, message)
    })
}

/// Computes generation numbers without recursion; each commit follows its parents.
fn number(
    work: &GraphWriter<'_>,
    chain: &GraphChain,
    resolved: &mut ResolvedCommits,
) -> Result<()> {
    let title = "Computing commit graph generation numbers";
    let meter = work
        .watch
        .progress()
        .begin(title, Some(resolved.entries.len() as u64));
    let mut stack = Vec::new();
    for start in 0..resolved.entries.len() {
        work.check()?;
        meter.add(1);
        if resolved.entries[start].level == 0 {
            stack.push(start);
        }
        while let Some(&at) = stack.last() {
            let waiting = stack.len();
            let (mut level, mut generation) = (0, 0);
            for parent in &resolved.parents[resolved.entries[at].parents.clone()] {
                let (parent_level, parent_generation) = match parent.checked_sub(chain.below) {
                    Some(own) => {
                        let own = own as usize;
                        let entry = &resolved.entries[own];
                        if entry.level == 0 {
                            stack.push(own);
                        }
                        (entry.level, entry.generation)
                    }
                    None => of_base(work, *parent)?,
                };
                level = level.max(parent_level);
                generation = generation.max(parent_generation + 1);
            }
            if stack.len() == waiting {
                let entry = &mut resolved.entries[at];
                entry.level = (level + 1).min(MOST_LEVELS);
                // Zero means that no generation number is known.
                entry.generation = generation.max(entry.time).max(1);
                stack.pop();
            }
        }
    }
    meter.finish();
    Ok(())
}

fn of_base(work: &GraphWriter<'_>, position: u32) -> Result<(u32, u64)> {
    let Some(graph) = &work.graph else {
        return Ok((0, 0));
    };
    let position = pronto_pack::commit_graph::GraphPosition(position);
    let commit = graph.commit_alone_at(position).map_err(from_pack)?;
    let generation = graph.corrected_date_at(position).map_err(from_pack)?;
    Ok((commit.level, generation))
}
