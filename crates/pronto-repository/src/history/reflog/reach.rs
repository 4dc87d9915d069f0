//! Tests whether commits are reachable from tips, for a series of queries.
//!
//! The walk reads only the commits that the queries need. With the generation numbers of the
//! commit-graph file it ends as soon as all remaining commits are below the queried commit.

use std::collections::{BinaryHeap, HashMap, HashSet};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_pack::commit_graph::GENERATION_INFINITY;

use crate::history::{CommitNumber, Commits};
use crate::{Repository, Result};

/// The commits that were read, shared by all reflogs of one call.
pub(super) struct ReflogHistory<'r> {
    repository: &'r Repository,
    commits: Commits<'r>,
    /// The commits to which object ids peel.
    peeled: HashMap<ObjectId, Option<CommitNumber>>,
}

impl<'r> ReflogHistory<'r> {
    pub(super) fn new(repository: &'r Repository) -> Result<Self> {
        let mut commits = Commits::new(repository)?;
        commits.pass_over_missing();
        Ok(ReflogHistory {
            repository,
            commits,
            peeled: HashMap::new(),
        })
    }

    /// Returns the commit to which `id` peels; `None` if the object is missing or does not peel to a
    /// commit.
    pub(super) fn commit(&mut self, id: ObjectId) -> Option<CommitNumber> {
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

/// The commits that are reachable from some tips, as far as they were walked.
pub(super) struct ReachableCommits {
    seen: HashSet<CommitNumber>,
    /// Seen commits whose parents were not visited yet. The one with the highest generation number
    /// comes first, then the newest.
    left: BinaryHeap<(u64, i64, CommitNumber)>,
}

impl ReachableCommits {
    pub(super) fn new(
        history: &ReflogHistory<'_>,
        tips: impl IntoIterator<Item = CommitNumber>,
    ) -> Self {
        let mut reach = ReachableCommits {
            seen: HashSet::new(),
            left: BinaryHeap::new(),
        };
        for tip in tips {
            reach.add(history, tip);
        }
        reach
    }

    fn add(&mut self, history: &ReflogHistory<'_>, number: CommitNumber) {
        if self.seen.insert(number) {
            let commits = &history.commits;
            let entry = (commits.generation(number), commits.time(number), number);
            self.left.push(entry);
        }
    }

    /// Returns whether `wanted` is one of the tips or an ancestor of a tip.
    pub(super) fn contains(
        &mut self,
        history: &mut ReflogHistory<'_>,
        wanted: CommitNumber,
    ) -> Result<bool> {
        let bound = history.commits.generation(wanted);
        while !self.seen.contains(&wanted) {
            // A parent has a lower generation number than its child. Commits outside of the
            // commit-graph file have no comparable number.
            let may_be_above = |&(generation, ..): &(u64, i64, CommitNumber)| {
                generation > bound || generation == GENERATION_INFINITY
            };
            if !self.left.peek().is_some_and(may_be_above) {
                return Ok(false);
            }
            let Some((_, _, number)) = self.left.pop() else {
                return Ok(false);
            };
            for which in 0..history.commits.parent_count(number) {
                // As in Git, an unreadable commit counts as one without parents.
                if let Ok(parent) = history.commits.parent(number, which) {
                    self.add(history, parent);
                }
            }
        }
        Ok(true)
    }
}
