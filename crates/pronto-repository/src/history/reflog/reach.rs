//! Answers whether commits are reachable from tips, one after another.
//!
//! The walk goes only as far as the queries need. With the generations of the commit-graph it ends
//! as soon as everything that remains is below the queried commit.

use std::collections::{BinaryHeap, HashMap, HashSet};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_pack::commit_graph::GENERATION_INFINITY;

use crate::history::{Commits, Number};
use crate::{Repository, Result};

/// Commits that were read, for all logs of one call.
pub(super) struct History<'r> {
    repository: &'r Repository,
    commits: Commits<'r>,
    /// The commits that ids lead to over tags.
    peeled: HashMap<ObjectId, Option<Number>>,
}

impl<'r> History<'r> {
    pub(super) fn new(repository: &'r Repository) -> Result<Self> {
        let mut commits = Commits::new(repository)?;
        commits.pass_over_missing();
        Ok(History {
            repository,
            commits,
            peeled: HashMap::new(),
        })
    }

    /// The commit that `id` leads to; `None` when it is none, or is not there.
    pub(super) fn commit(&mut self, id: ObjectId) -> Option<Number> {
        if let Some(known) = self.peeled.get(&id) {
            return *known;
        }
        let tags = self.repository.peel_tags(id).ok().flatten();
        let is_commit = |id: &ObjectId| {
            let kind = self.repository.kind_of(*id);
            kind.is_ok_and(|kind| kind == Some(ObjectKind::Commit))
        };
        let commit = tags.filter(is_commit);
        let number = commit.and_then(|commit| self.commits.number(&commit).ok());
        self.peeled.insert(id, number);
        number
    }
}

/// What has been found reachable from some tips.
pub(super) struct Reach {
    seen: HashSet<Number>,
    /// Seen, and their parents not yet: the one with the highest generation, then the newest, comes first.
    left: BinaryHeap<(u64, i64, Number)>,
}

impl Reach {
    pub(super) fn new(history: &History<'_>, tips: impl IntoIterator<Item = Number>) -> Self {
        let mut reach = Reach {
            seen: HashSet::new(),
            left: BinaryHeap::new(),
        };
        for tip in tips {
            reach.add(history, tip);
        }
        reach
    }

    fn add(&mut self, history: &History<'_>, number: Number) {
        if self.seen.insert(number) {
            let commits = &history.commits;
            let entry = (commits.generation(number), commits.time(number), number);
            self.left.push(entry);
        }
    }

    /// Whether `wanted` is one of the tips or an ancestor of one.
    pub(super) fn contains(&mut self, history: &mut History<'_>, wanted: Number) -> Result<bool> {
        let bound = history.commits.generation(wanted);
        while !self.seen.contains(&wanted) {
            // A parent has a lower generation than its child; those not in the graph have none to compare.
            let may_be_above = |&(generation, ..): &(u64, i64, Number)| {
                generation > bound || generation == GENERATION_INFINITY
            };
            if !self.left.peek().is_some_and(may_be_above) {
                return Ok(false);
            }
            let Some((_, _, number)) = self.left.pop() else {
                return Ok(false);
            };
            for which in 0..history.commits.parent_count(number) {
                // What cannot be read has no parents, as for Git.
                if let Ok(parent) = history.commits.parent(number, which) {
                    self.add(history, parent);
                }
            }
        }
        Ok(true)
    }
}
