//! Selects the commits to offer. [`Consecutive`] does it like Git's default negotiator: newest first;
//! ancestors of common commits are never offered.

mod skipping;

use std::collections::{BinaryHeap, HashMap};

use pronto_hash::{ObjectId, oid};

use crate::error::Error;
use crate::fetch::{Negotiator, Nothing};

pub use skipping::Skipping;

/// The commits that are here.
pub trait Commits {
    /// Date and parents of `id`; `None` if it is not here or not a commit. Parents beyond the
    /// cut of a shallow repository are left out.
    ///
    /// # Errors
    /// If the object is there but cannot be read.
    fn commit(&mut self, id: &oid) -> Result<Option<Commit>, Error>;
}

/// The properties of a commit that negotiation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The committer's time, in seconds since the epoch.
    pub time: i64,
    /// Its parents.
    pub parents: Vec<ObjectId>,
}

/// A negotiator that can be given the commits with which it begins.
pub trait Tips: Negotiator {
    /// Offers `id` and its ancestors.
    ///
    /// # Errors
    /// The commit cannot be read.
    fn add_tip(&mut self, id: &oid) -> Result<(), Error>;

    /// Records that both sides have `id`, the value of a ref of the other side.
    ///
    /// # Errors
    /// The commit cannot be read.
    fn add_known_common(&mut self, id: &oid) -> Result<(), Error>;
}

/// Offers nothing, as Git's negotiator `noop`.
impl Tips for Nothing {
    fn add_tip(&mut self, _id: &oid) -> Result<(), Error> {
        Ok(())
    }

    fn add_known_common(&mut self, _id: &oid) -> Result<(), Error> {
        Ok(())
    }
}

impl<C: Commits> Tips for Consecutive<C> {
    fn add_tip(&mut self, id: &oid) -> Result<(), Error> {
        Consecutive::add_tip(self, id)
    }

    fn add_known_common(&mut self, id: &oid) -> Result<(), Error> {
        Consecutive::add_known_common(self, id)
    }
}

/// The negotiator that walks from the newest commits to the oldest.
///
/// Reads each commit at most once; memory grows with the commits walked.
pub struct Consecutive<C> {
    commits: C,
    nodes: HashMap<ObjectId, Node>,
    queue: BinaryHeap<Queued>,
    /// Commits in the queue that are not known to be common; when none is left the walk is over.
    uncommon_queued: usize,
    issued: u64,
}

#[derive(Default)]
struct Node {
    commit: Option<Commit>,
    /// The other side has it and that is no news: neither it nor its ancestors are offered.
    common: bool,
    /// The other side has it as the value of a reference: offered once, its ancestors are not.
    common_ref: bool,
    seen: bool,
    popped: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    time: i64,
    /// Of equally old ones the first queued comes first.
    order: std::cmp::Reverse<u64>,
    id: ObjectId,
}

impl<C: Commits> Consecutive<C> {
    /// A negotiator over `commits` with nothing to offer yet.
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
    /// If the commit cannot be read.
    pub fn add_tip(&mut self, id: &oid) -> Result<(), Error> {
        self.push(id, false)
    }

    /// Both sides are known to have `id`, the value of a reference of the other side: it is
    /// offered, its ancestors are not.
    ///
    /// # Errors
    /// If the commit cannot be read.
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
        self.queue.push(Queued {
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

    /// Marks a commit as common. Returns whether it was not yet.
    fn mark(&mut self, id: &oid) -> bool {
        let node = self.nodes.entry(id.to_owned()).or_default();
        if std::mem::replace(&mut node.common, true) {
            return false;
        }
        self.uncommon_queued -= usize::from(node.seen && !node.popped);
        true
    }

    /// Marks those ancestors of `id` as common that were walked or queued, and their parents.
    ///
    /// The parents are marked when their child is taken, as in Git: the order decides which of two equally
    /// old commits is offered first.
    fn mark_ancestors(&mut self, id: &oid) -> Result<(), Error> {
        let mut left = vec![id.to_owned()];
        while let Some(id) = left.pop() {
            if !self.nodes.get(&id).is_some_and(|node| node.seen) {
                // Queued, so that the walk learns of its ancestors when it gets there.
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

impl<C: Commits> Negotiator for Consecutive<C> {
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error> {
        while self.uncommon_queued > 0 {
            let Some(Queued { id, .. }) = self.queue.pop() else {
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
                    // It was a tip, or comes from another child: Git offers it, but not its ancestors.
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
