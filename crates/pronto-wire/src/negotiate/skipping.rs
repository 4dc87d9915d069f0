//! The negotiator `skipping`, which offers commits at growing distances, so that a common commit is
//! found after few rounds. The pack may be larger than with the negotiator `consecutive`.

use std::collections::{BinaryHeap, HashMap};

use pronto_hash::{ObjectId, oid};

use super::{AddTips, CommitSupplier, NegotiationEntry};
use crate::error::{Error, malformed};
use crate::fetch::Negotiator;

/// The negotiator that skips a growing number of commits between offered ones.
///
/// Reads each commit at most once. The memory grows with the number of walked commits.
pub struct Skipping<C> {
    commits: C,
    nodes: HashMap<ObjectId, SkippedCommit>,
    queue: BinaryHeap<NegotiationEntry>,
    /// The number of queued commits that are not known to be common. The walk ends when it is zero.
    uncommon_queued: usize,
    issued: u64,
}

/// A commit that was queued.
struct SkippedCommit {
    parents: Vec<ObjectId>,
    /// Whether the remote side has the commit and its ancestors.
    common: bool,
    /// Whether the commit is the target of a remote ref.
    advertised: bool,
    popped: bool,
    /// The number of commits from the last offered one to the next.
    distance: u32,
    /// The number of commits that are skipped until the next one is offered.
    left: u32,
}

impl<C: CommitSupplier> Skipping<C> {
    /// Creates a negotiator over `commits` without starting points.
    pub fn new(commits: C) -> Self {
        Skipping {
            commits,
            nodes: HashMap::new(),
            queue: BinaryHeap::new(),
            uncommon_queued: 0,
            issued: 0,
        }
    }

    /// Queues a commit, at most once. Returns whether the commit exists locally.
    fn push(&mut self, id: &oid, advertised: bool) -> Result<bool, Error> {
        if self.nodes.contains_key(id) {
            return Ok(true);
        }
        let Some(commit) = self.commits.commit(id)? else {
            return Ok(false);
        };
        self.nodes.insert(
            id.to_owned(),
            SkippedCommit {
                parents: commit.parents,
                common: false,
                advertised,
                popped: false,
                distance: 0,
                left: 0,
            },
        );
        self.uncommon_queued += 1;
        self.issued += 1;
        self.queue.push(NegotiationEntry {
            time: commit.time,
            order: std::cmp::Reverse(self.issued),
            id: id.to_owned(),
        });
        Ok(true)
    }

    /// Marks a commit, and its ancestors that were queued, as common.
    fn mark_common(&mut self, id: &oid) {
        let mut left = vec![id.to_owned()];
        while let Some(id) = left.pop() {
            let Some(node) = self.nodes.get_mut(&id).filter(|node| !node.common) else {
                continue;
            };
            node.common = true;
            self.uncommon_queued -= usize::from(!node.popped);
            left.extend_from_slice(&node.parents);
        }
    }

    /// Queues a parent of a commit. Returns whether the parent was queued.
    fn push_parent(&mut self, parent: &oid, child: &Distance) -> Result<bool, Error> {
        if !self.push(parent, false)? {
            return Ok(false);
        }
        let Some(node) = self.nodes.get_mut(parent).filter(|node| !node.popped) else {
            // The parent was processed before its child, because committer dates are wrong.
            return Ok(false);
        };
        if child.is_known {
            self.mark_common(parent);
            return Ok(true);
        }
        let (distance, left) = match child.left {
            0 => {
                let longer = child.distance.saturating_mul(3) / 2 + 1;
                (longer, longer)
            }
            left => (child.distance, left - 1),
        };
        if node.distance < distance {
            (node.distance, node.left) = (distance, left);
        }
        Ok(true)
    }
}

/// The position of a commit between two offered ones.
struct Distance {
    is_known: bool,
    distance: u32,
    left: u32,
}

impl<C: CommitSupplier> AddTips for Skipping<C> {
    fn add_tip(&mut self, id: &oid) -> Result<(), Error> {
        self.push(id, false).map(|_| ())
    }

    fn add_known_common(&mut self, id: &oid) -> Result<(), Error> {
        self.push(id, true).map(|_| ())
    }
}

impl<C: CommitSupplier> Negotiator for Skipping<C> {
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error> {
        while self.uncommon_queued > 0 {
            let Some(NegotiationEntry { id, .. }) = self.queue.pop() else {
                break;
            };
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            node.popped = true;
            self.uncommon_queued -= usize::from(!node.common);
            let child = Distance {
                is_known: node.common || node.advertised,
                distance: node.distance,
                left: node.left,
            };
            let is_common = node.common;
            let parents = node.parents.clone();
            let mut has_parents = false;
            for parent in &parents {
                has_parents |= self.push_parent(parent, &child)?;
            }
            if !is_common && (child.left == 0 || !has_parents) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn acknowledge(&mut self, id: &oid) -> Result<bool, Error> {
        let Some(node) = self.nodes.get(id) else {
            let message = format!("received ack for commit {id} not sent as 'have'");
            return Err(malformed(message));
        };
        let known = node.common;
        self.mark_common(id);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CommitInfo;
    use super::*;

    /// A line of commits, numbered by their age.
    struct Line(usize);

    fn id(number: usize) -> ObjectId {
        pronto_hash::parse_hex(format!("{number:040x}").as_bytes()).expect("an id")
    }

    impl CommitSupplier for Line {
        fn commit(&mut self, found: &oid) -> Result<Option<CommitInfo>, Error> {
            let number = (0..self.0).find(|number| *id(*number) == *found);
            Ok(number.map(|number| CommitInfo {
                time: i64::try_from(1000 - number).expect("it is small"),
                parents: (number + 1 < self.0)
                    .then(|| id(number + 1))
                    .into_iter()
                    .collect(),
            }))
        }
    }

    fn offered(negotiator: &mut Skipping<Line>) -> Vec<ObjectId> {
        std::iter::from_fn(|| negotiator.next_have().expect("it is read")).collect()
    }

    #[test]
    fn distances_grow_up_to_the_last_commit() {
        let mut negotiator = Skipping::new(Line(40));
        negotiator.add_tip(&id(0)).expect("it is read");
        let expected = [0, 2, 5, 10, 18, 30, 39].map(id);
        assert_eq!(offered(&mut negotiator), expected);
    }

    #[test]
    fn common_commits_end_the_walk() {
        let mut negotiator = Skipping::new(Line(40));
        negotiator.add_known_common(&id(3)).expect("it is read");
        negotiator.add_tip(&id(0)).expect("it is read");
        assert_eq!(offered(&mut negotiator), [0, 2].map(id));
        let mut negotiator = Skipping::new(Line(40));
        negotiator.add_tip(&id(0)).expect("it is read");
        for _ in 0..3 {
            negotiator.next_have().expect("it is read");
        }
        assert!(!negotiator.acknowledge(&id(2)).expect("it was offered"));
        assert!(negotiator.acknowledge(&id(5)).expect("it was offered"));
        assert_eq!(negotiator.next_have().expect("it is read"), None);
        negotiator
            .acknowledge(&id(39))
            .expect_err("it was not offered");
    }
}
