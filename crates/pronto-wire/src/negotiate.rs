//! Negotiators, which select the haves to offer (`fetch.negotiationAlgorithm`). [`Consecutive`] is
//! Git's default: it offers the newest commits first, and never ancestors of common commits.

mod skipping;

use std::collections::{BinaryHeap, HashMap};

use pronto_hash::{ObjectId, oid};

use crate::error::Error;
use crate::fetch::{Negotiator, Nothing};

pub use skipping::Skipping;

/// The local commits.
pub trait CommitSupplier {
    /// Returns the date and the parents of `id`; `None` if the object does not exist or is not a
    /// commit. Shallow commits have no parents.
    ///
    /// # Errors
    /// Fails if the object exists and cannot be read.
    fn commit(&mut self, id: &oid) -> Result<Option<CommitInfo>, Error>;
}

/// The properties of a commit that negotiation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The committer date, in seconds since 1970.
    pub time: i64,
    /// Its parents.
    pub parents: Vec<ObjectId>,
}

/// A negotiator to which the starting points of its walk can be added.
pub trait AddTips: Negotiator {
    /// Offers `id` and its ancestors.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    fn add_tip(&mut self, id: &oid) -> Result<(), Error>;

    /// Records that both sides have `id`, the target of a ref of the remote side.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    fn add_known_common(&mut self, id: &oid) -> Result<(), Error>;
}

/// The negotiator `noop`, which offers no commit.
impl AddTips for Nothing {
    fn add_tip(&mut self, _id: &oid) -> Result<(), Error> {
        Ok(())
    }

    fn add_known_common(&mut self, _id: &oid) -> Result<(), Error> {
        Ok(())
    }
}

impl<C: CommitSupplier> AddTips for Consecutive<C> {
    fn add_tip(&mut self, id: &oid) -> Result<(), Error> {
        Consecutive::add_tip(self, id)
    }

    fn add_known_common(&mut self, id: &oid) -> Result<(), Error> {
        Consecutive::add_known_common(self, id)
    }
}

/// The negotiator `consecutive`, which walks from the newest commits to the oldest.
///
/// Reads each commit at most once. The memory grows with the number of walked commits.
pub struct Consecutive<C> {
    commits: C,
    nodes: HashMap<ObjectId, NegotiatedCommit>,
    queue: BinaryHeap<NegotiationEntry>,
    /// The number of queued commits that are not known to be common. The walk ends when it is zero.
    uncommon_queued: usize,
    issued: u64,
}

#[derive(Default)]
struct NegotiatedCommit {
    commit: Option<CommitInfo>,
    /// Whether the remote side is known to have the commit: neither the commit nor its ancestors are
    /// offered.
    common: bool,
    /// Whether the commit is the target of a remote ref: the commit is offered once, its ancestors are
    /// not.
    common_ref: bool,
    seen: bool,
    popped: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NegotiationEntry {
    time: i64,
    /// The order of queueing; among equal dates the first commit comes first.
    order: std::cmp::Reverse<u64>,
    id: ObjectId,
}

impl<C: CommitSupplier> Consecutive<C> {
    /// Creates a negotiator over `commits` without starting points.
    pub fn new(commits: C) -> Self {
        Consecutive {
            commits,
            nodes: HashMap::new(),
            queue: BinaryHeap::new(),
            uncommon_queued: 0,
            issued: 0,
        }
    }

    /// Offers `id` and its ancestors.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    pub fn add_tip(&mut self, id: &oid) -> Result<(), Error> {
        self.push(id, false)
    }

    /// Records that both sides have `id`, the target of a ref of the remote side. The commit is
    /// offered, its ancestors are not.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    pub fn add_known_common(&mut self, id: &oid) -> Result<(), Error> {
        if self.nodes.get(id).is_some_and(|node| node.seen) {
            return Ok(());
        }
        self.push(id, true)?;
        self.mark_ancestors(id)
    }

    fn push(&mut self, id: &oid, common_ref: bool) -> Result<(), Error> {
        if self.nodes.get(id).is_some_and(|node| node.seen) {
            return Ok(());
        }
        let Some(commit) = self.commits.commit(id)? else {
            return Ok(());
        };
        let time = commit.time;
        let node = self.nodes.entry(id.to_owned()).or_default();
        node.commit = Some(commit);
        node.seen = true;
        node.common_ref |= common_ref;
        self.uncommon_queued += usize::from(!node.common);
        self.issued += 1;
        self.queue.push(NegotiationEntry {
            time,
            order: std::cmp::Reverse(self.issued),
            id: id.to_owned(),
        });
        Ok(())
    }

    fn parents(&self, id: &oid) -> Vec<ObjectId> {
        self.nodes
            .get(id)
            .and_then(|node| node.commit.as_ref())
            .map(|commit| commit.parents.clone())
            .unwrap_or_default()
    }

    /// Marks a commit as common. Returns whether it was not marked before.
    fn mark(&mut self, id: &oid) -> bool {
        let node = self.nodes.entry(id.to_owned()).or_default();
        if std::mem::replace(&mut node.common, true) {
            return false;
        }
        self.uncommon_queued -= usize::from(node.seen && !node.popped);
        true
    }

    /// Marks the walked or queued ancestors of `id`, and their parents, as common.
    ///
    /// As in Git, parents are marked when their child is removed from the queue. The order decides
    /// which of two commits with equal dates is offered first.
    fn mark_ancestors(&mut self, id: &oid) -> Result<(), Error> {
        let mut left = vec![id.to_owned()];
        while let Some(id) = left.pop() {
            if !self.nodes.get(&id).is_some_and(|node| node.seen) {
                // The commit is queued, so that the walk marks its ancestors later.
                self.push(&id, false)?;
                continue;
            }
            for parent in self.parents(&id) {
                if self.mark(&parent) {
                    left.push(parent);
                }
            }
        }
        Ok(())
    }
}

impl<C: CommitSupplier> Negotiator for Consecutive<C> {
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error> {
        while self.uncommon_queued > 0 {
            let Some(NegotiationEntry { id, .. }) = self.queue.pop() else {
                break;
            };
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            node.popped = true;
            let (common, common_ref) = (node.common, node.common_ref);
            self.uncommon_queued -= usize::from(!common);
            let parents = self.parents(&id);
            for parent in &parents {
                let is_seen = self.nodes.get(parent).is_some_and(|node| node.seen);
                match (common || common_ref, is_seen) {
                    (false, _) => self.push(parent, false)?,
                    (true, false) => {
                        self.mark(parent);
                        self.push(parent, false)?;
                    }
                    // The parent was a tip or has another child: as in Git it is offered, but not its
                    // ancestors.
                    (true, true) => {
                        if !self.nodes.get(parent).is_some_and(|node| node.common) {
                            self.mark_ancestors(parent)?;
                        }
                    }
                }
            }
            if !common {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn acknowledge(&mut self, id: &oid) -> Result<bool, Error> {
        let is_new = self.mark(id);
        if is_new {
            self.mark_ancestors(id)?;
        }
        Ok(!is_new)
    }
}
