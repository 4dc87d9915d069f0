//! Walks over commits in the orders of `git rev-list`.
//!
//! A walk without excluded commits yields each commit as soon as it is the newest of the queued ones.
//! With excluded commits, or in topological order, all commits are found before the first is yielded.

mod topological;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pronto_hash::ObjectId;
use pronto_io::watch::Watch;

use super::{CommitNumber, Commits};
use crate::{Error, ErrorKind, Repository, Result};

/// The order of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkOrder {
    /// The newest first (by default). A commit with a wrong date may follow its parents.
    #[default]
    ByDate,
    /// No commit before all of its children, and without interleaving lines of history
    /// (`--topo-order`).
    Topological,
    /// No commit before all of its children, and otherwise the newest first (`--date-order`).
    TopologicalByDate,
}

/// A side of a symmetric difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkSide {
    /// `A` of `A...B`.
    Left,
    /// `B` of `A...B`.
    Right,
}

/// Options of a [`CommitWalk`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WalkOptions {
    /// The order of the commits.
    pub order: WalkOrder,
    /// Follow only the first parent of a merge (`--first-parent`).
    pub first_parent: bool,
    /// End the walk at commits before this time, in seconds since 1970 (`--since`).
    pub since: Option<i64>,
    /// Omit commits after this time, in seconds since 1970 (`--until`).
    pub until: Option<i64>,
    /// Omit commits with fewer parents (`--min-parents`).
    pub min_parents: u32,
    /// Omit commits with more parents (`--max-parents`).
    pub max_parents: Option<u32>,
    /// Keep only the commits of this side of a symmetric difference (`--left-only`, `--right-only`).
    pub side: Option<WalkSide>,
    /// Skip this number of commits at the start (`--skip`).
    pub skip: u64,
    /// End after this number of commits (`--max-count`).
    pub max_count: Option<u64>,
}

/// A commit from which a walk starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkStart {
    /// The id of the commit.
    pub id: ObjectId,
    /// Whether the commit and its ancestors are excluded (`^A`).
    pub is_excluded: bool,
    /// Whether the commit is the left side of a symmetric difference (`A...B`).
    pub is_left: bool,
}

/// A commit that a walk yielded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedCommit {
    /// The number of the commit in [`CommitWalk::commits`].
    pub number: CommitNumber,
    /// Whether the commit is reachable from the left side of a symmetric difference (`--left-right`).
    pub is_left: bool,
}

const EXCLUDED: u8 = 1;
const LEFT: u8 = 2;
const SEEN: u8 = 4;
const QUEUED: u8 = 8;

/// The number of commits that are read after only excluded ones are queued, in case of wrong committer
/// dates. Git reads the same number.
const SLOP: u32 = 5;

/// An entry of the queue, ordered by committer date, then by the order in which it was added.
type WalkEntry = (i64, Reverse<u64>, CommitNumber);

/// A walk over commits. Reads each commit once, from the commit-graph file if it contains the commit.
///
/// Costs a lookup for each commit and parent, and 64 bytes for each commit that was read, until the
/// walk is dropped. A walk belongs to one thread at a time; several walks may run at once.
pub struct CommitWalk<'a> {
    commits: Commits<'a>,
    options: WalkOptions,
    flags: Vec<u8>,
    queue: BinaryHeap<WalkEntry>,
    arrivals: u64,
    /// The number of commits in the queue that are not excluded.
    included: usize,
    /// Whether all commits have to be found before the first is yielded.
    is_limited: bool,
    found: Option<Vec<CommitNumber>>,
    /// The index of the next commit in `found`.
    next: usize,
}

impl std::fmt::Debug for CommitWalk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let options = &self.options;
        f.debug_struct("CommitWalk")
            .field("options", options)
            .finish_non_exhaustive()
    }
}

impl<'a> CommitWalk<'a> {
    /// Creates a walk in `repository` from `starts`, and reads these commits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a starting point is missing or is not a commit; otherwise as
    /// for [`Repository::commit_graph`].
    pub fn new(
        repository: &'a Repository,
        starts: &[WalkStart],
        options: WalkOptions,
    ) -> Result<Self> {
        let is_excluding = starts.iter().any(|start| start.is_excluded);
        let mut walk = CommitWalk {
            commits: Commits::new(repository)?.with_trees(),
            is_limited: is_excluding
                || options.order != WalkOrder::ByDate
                || options.side.is_some(),
            options,
            flags: Vec::new(),
            queue: BinaryHeap::new(),
            arrivals: 0,
            included: 0,
            found: None,
            next: 0,
        };
        let mut numbers = Vec::with_capacity(starts.len());
        for start in starts {
            let number = walk.commits.number(&start.id)?;
            let excluded = if start.is_excluded { EXCLUDED } else { 0 };
            let left = if start.is_left { LEFT } else { 0 };
            walk.set(number, excluded | left);
            numbers.push(number);
        }
        for number in &numbers {
            if walk.has(*number, EXCLUDED) {
                walk.exclude_known_ancestors(*number)?;
            }
        }
        for number in numbers {
            walk.enqueue(number);
        }
        Ok(walk)
    }

    /// Returns the commits that were read so far.
    pub fn commits(&self) -> &Commits<'a> {
        &self.commits
    }

    /// Returns the next commit; `None` at the end.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a commit is missing or malformed, or with
    /// [`ErrorKind::Interrupted`].
    pub fn next(&mut self, watch: &Watch<'_>) -> Result<Option<WalkedCommit>> {
        if self.options.max_count == Some(0) {
            return Ok(None);
        }
        if self.is_limited && self.found.is_none() {
            let found = self.limit(watch)?;
            self.found = Some(match self.options.order {
                WalkOrder::ByDate => found,
                order => topological::sort(&self.commits, &found, order)?,
            });
        }
        loop {
            let Some(number) = self.advance(watch)? else {
                return Ok(None);
            };
            if !self.shows(number) {
                continue;
            }
            if self.options.skip > 0 {
                self.options.skip -= 1;
                continue;
            }
            if let Some(count) = &mut self.options.max_count {
                *count -= 1;
            }
            let is_left = self.has(number, LEFT);
            return Ok(Some(WalkedCommit { number, is_left }));
        }
    }

    /// Returns the boundary commits (`--boundary`), each once: excluded parents of the commits in
    /// `shown`, and commits that were found before they turned out to be excluded.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn edges(&self, shown: &[CommitNumber]) -> Result<Vec<CommitNumber>> {
        let found = self.found.iter().flatten().copied();
        let mut edges: Vec<CommitNumber> =
            found.filter(|number| self.has(*number, EXCLUDED)).collect();
        for number in shown {
            for which in 0..self.commits.parent_count(*number) {
                let parent = self.commits.known_parent(*number, which)?;
                edges.extend(parent.filter(|parent| self.has(*parent, EXCLUDED)));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        Ok(edges)
    }

    fn has(&self, number: CommitNumber, flag: u8) -> bool {
        let flags = self.flags.get(number as usize);
        flags.is_some_and(|flags| flags & flag != 0)
    }

    fn set(&mut self, number: CommitNumber, flags: u8) {
        let slot = number as usize;
        if self.flags.len() <= slot {
            self.flags.resize(slot + 1, 0);
        }
        self.flags[slot] |= flags;
    }

    fn enqueue(&mut self, number: CommitNumber) {
        if self.has(number, SEEN) {
            return;
        }
        self.set(number, SEEN | QUEUED);
        self.included += usize::from(!self.has(number, EXCLUDED));
        let time = self.commits.time(number);
        self.queue.push((time, Reverse(self.arrivals), number));
        self.arrivals += 1;
    }

    fn dequeue(&mut self) -> Option<CommitNumber> {
        let (_, _, number) = self.queue.pop()?;
        self.flags[number as usize] &= !QUEUED;
        self.included -= usize::from(!self.has(number, EXCLUDED));
        Some(number)
    }

    fn exclude(&mut self, number: CommitNumber) {
        if !self.has(number, EXCLUDED) {
            self.included -= usize::from(self.has(number, QUEUED));
            self.set(number, EXCLUDED);
        }
    }

    /// Returns the next commit, before the filters of the options apply.
    fn advance(&mut self, watch: &Watch<'_>) -> Result<Option<CommitNumber>> {
        if let Some(found) = &self.found {
            let number = found.get(self.next).copied();
            self.next += 1;
            return Ok(number);
        }
        while let Some(number) = self.dequeue() {
            check(watch)?;
            if !self.is_too_old(number) {
                self.expand(number)?;
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Finds all commits of the walk, without the excluded ones.
    fn limit(&mut self, watch: &Watch<'_>) -> Result<Vec<CommitNumber>> {
        let mut found = Vec::new();
        let (mut slop, mut last) = (SLOP, i64::MAX);
        while let Some(number) = self.dequeue() {
            check(watch)?;
            if self.is_too_old(number) {
                self.set(number, EXCLUDED);
            }
            self.expand(number)?;
            if self.has(number, EXCLUDED) {
                self.exclude_known_ancestors(number)?;
                let Some((newest, ..)) = self.queue.peek() else {
                    break;
                };
                slop = match last <= *newest || self.included > 0 {
                    true => SLOP,
                    false => slop - 1,
                };
                if slop == 0 {
                    break;
                }
            } else if !self.is_too_new(number) {
                last = self.commits.time(number);
                found.push(number);
            }
        }
        Ok(found)
    }

    fn is_too_old(&self, number: CommitNumber) -> bool {
        let since = self.options.since;
        since.is_some_and(|since| self.commits.time(number) < since)
    }

    fn is_too_new(&self, number: CommitNumber) -> bool {
        let until = self.options.until;
        until.is_some_and(|until| self.commits.time(number) > until)
    }

    /// Propagates the flags of a commit to its parents, and queues new parents.
    fn expand(&mut self, number: CommitNumber) -> Result<()> {
        let count = self.commits.parent_count(number);
        if self.has(number, EXCLUDED) {
            for which in 0..count {
                // An excluded commit may be missing.
                let was_lenient = std::mem::replace(&mut self.commits.lenient, true);
                let parent = self.commits.parent(number, which);
                self.commits.lenient = was_lenient;
                let parent = parent?;
                self.exclude(parent);
                self.exclude_known_ancestors(parent)?;
                self.enqueue(parent);
            }
            return Ok(());
        }
        let left = self.flags[number as usize] & LEFT;
        let count = match self.options.first_parent {
            true => count.min(1),
            false => count,
        };
        for which in 0..count {
            let parent = self.commits.parent(number, which)?;
            self.set(parent, left);
            self.enqueue(parent);
        }
        Ok(())
    }

    /// Excludes the ancestors of a newly excluded commit that were read before.
    fn exclude_known_ancestors(&mut self, number: CommitNumber) -> Result<()> {
        let mut stack = vec![number];
        while let Some(number) = stack.pop() {
            for which in 0..self.commits.parent_count(number) {
                let parent = self.commits.known_parent(number, which)?;
                if let Some(parent) = parent.filter(|parent| !self.has(*parent, EXCLUDED)) {
                    self.exclude(parent);
                    stack.push(parent);
                }
            }
        }
        Ok(())
    }

    fn shows(&self, number: CommitNumber) -> bool {
        let parents = self.commits.parent_count(number);
        let options = &self.options;
        let is_on_side = match options.side {
            None => true,
            Some(side) => self.has(number, LEFT) == (side == WalkSide::Left),
        };
        is_on_side
            && !self.has(number, EXCLUDED)
            && !self.is_too_new(number)
            && parents >= options.min_parents
            && options.max_parents.is_none_or(|most| parents <= most)
    }
}

fn check(watch: &Watch<'_>) -> Result<()> {
    let interrupted = |reason: pronto_io::interrupt::Interrupted| {
        Error::new(ErrorKind::Interrupted, reason.to_string())
    };
    watch.interrupt().check().map_err(interrupted)
}
