//! Walks over commits: the reachable ones, and those that are not reachable from common commits.

use std::collections::{BTreeSet, BinaryHeap, HashSet};

use pronto_hash::ObjectId;
use pronto_pack::commit_graph::GENERATION_INFINITY;

use pronto::history::{CommitNumber, Commits};
use pronto::{Repository, Result};

/// A commit that, as far as is known, only one side has.
#[derive(Clone, Debug)]
pub(super) struct ExclusiveCommit {
    pub(super) id: ObjectId,
    pub(super) time: i64,
    pub(super) parents: Vec<ObjectId>,
}

/// Returns the commits of `wanted` that are reachable from `tips`. All of them must be present.
/// Reads commits down to the generation numbers of `wanted`, or the whole history without
/// generation numbers.
pub(super) fn reached(
    repository: &Repository,
    wanted: &[ObjectId],
    tips: &[ObjectId],
) -> Result<HashSet<ObjectId>> {
    let mut reached = HashSet::new();
    let mut left = BTreeSet::new();
    if wanted.is_empty() {
        return Ok(reached);
    }
    let mut commits = Commits::new(repository)?;
    let mut floor = u64::MAX;
    for id in wanted {
        let number = commits.number(id)?;
        let generation = commits.generation(number);
        floor = floor.min(match generation {
            GENERATION_INFINITY => 0,
            known => known,
        });
        left.insert(number);
    }
    let mut seen = HashSet::new();
    let mut queue = BinaryHeap::new();
    for tip in tips {
        let number = commits.number(tip)?;
        if seen.insert(number) {
            queue.push((commits.generation(number), commits.time(number), number));
        }
    }
    while let Some((generation, _, number)) = queue.pop() {
        if left.remove(&number) {
            reached.insert(commits.id(number)?);
        }
        if left.is_empty() || generation < floor {
            break;
        }
        for which in 0..commits.parent_count(number) {
            let parent = commits.parent(number, which)?;
            if seen.insert(parent) {
                queue.push((commits.generation(parent), commits.time(parent), parent));
            }
        }
    }
    Ok(reached)
}

/// The largest distance of a returned commit.
const FURTHEST: usize = 1024;

/// Returns ancestors of `tip` by first parents: 1, 2, 4, … commits back, at most `most` of them.
pub(super) fn further_back(
    repository: &Repository,
    tip: ObjectId,
    most: usize,
) -> Result<Vec<ObjectId>> {
    let (mut found, mut next) = (Vec::new(), 1);
    if most == 0 {
        return Ok(found);
    }
    let mut commits = Commits::new(repository)?;
    let mut number = commits.number(&tip)?;
    for at in 1..=FURTHEST {
        if found.len() == most || commits.parent_count(number) == 0 {
            break;
        }
        number = commits.parent(number, 0)?;
        if at == next {
            found.push(commits.id(number)?);
            next *= 2;
        }
    }
    Ok(found)
}

const SEEN: u8 = 1;
const COMMON: u8 = 2;
const POPPED: u8 = 4;

/// The marks of commits by number, and the queue of unvisited commits.
struct CommitMarks {
    flags: Vec<u8>,
    /// The queue, ordered by generation number and time. Among commits of the same second, common
    /// commits are first, because they may be descendants of the others.
    queue: BinaryHeap<(u64, i64, bool, CommitNumber)>,
    /// The number of commits in the queue that are not common.
    interesting: usize,
}

/// Returns the commits that are reachable from `tips` and not from `common`, in no order. With
/// clock skew and without generation numbers, the result may contain commits that both sides have.
pub(super) fn above(
    repository: &Repository,
    tips: &[ObjectId],
    common: &[ObjectId],
) -> Result<Vec<ExclusiveCommit>> {
    let mut commits = Commits::new(repository)?;
    let mut marks = CommitMarks {
        flags: Vec::new(),
        queue: BinaryHeap::new(),
        interesting: 0,
    };
    for id in common {
        let number = commits.number(id)?;
        marks.mark(&mut commits, number, true)?;
    }
    for id in tips {
        let number = commits.number(id)?;
        marks.mark(&mut commits, number, false)?;
    }
    let mut found = Vec::new();
    while marks.interesting > 0 {
        let Some((_, _, _, number)) = marks.queue.pop() else {
            break;
        };
        let flags = &mut marks.flags[number as usize];
        *flags |= POPPED;
        let is_common = *flags & COMMON != 0;
        if !is_common {
            marks.interesting -= 1;
            found.push(number);
        }
        for which in 0..commits.parent_count(number) {
            let parent = commits.parent(number, which)?;
            marks.mark(&mut commits, parent, is_common)?;
        }
    }
    let mut new = Vec::new();
    for number in found {
        if marks.flags[number as usize] & COMMON != 0 {
            continue;
        }
        let parents = 0..commits.parent_count(number);
        new.push(ExclusiveCommit {
            id: commits.id(number)?,
            time: commits.time(number),
            parents: (parents.map(|which| commits.parent_id(number, which)))
                .collect::<Result<_>>()?,
        });
    }
    Ok(new)
}

impl CommitMarks {
    /// Marks a commit, and its visited ancestors.
    fn mark(
        &mut self,
        commits: &mut Commits<'_>,
        number: CommitNumber,
        is_common: bool,
    ) -> Result<()> {
        let mut left = vec![number];
        while let Some(number) = left.pop() {
            let at = number as usize;
            if self.flags.len() <= at {
                self.flags.resize(at + 1, 0);
            }
            let before = self.flags[at];
            if before & COMMON != 0 || (before & SEEN != 0 && !is_common) {
                continue;
            }
            self.flags[at] |= SEEN | if is_common { COMMON } else { 0 };
            if before & SEEN == 0 {
                let (generation, time) = (commits.generation(number), commits.time(number));
                self.queue.push((generation, time, is_common, number));
                self.interesting += usize::from(!is_common);
            } else if before & POPPED == 0 {
                self.interesting -= 1;
            } else {
                for which in 0..commits.parent_count(number) {
                    left.push(commits.parent(number, which)?);
                }
            }
        }
        Ok(())
    }
}
