//! A walk from the commits of two sides that determines which commits are reachable from each side.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_pack::commit_graph::GENERATION_INFINITY;

use super::{CommitNumber, Commits};
use crate::{Error, ErrorKind, Repository, Result};

/// The difference of two histories, as `status --branch` and `%(ahead-behind:…)` show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadBehind {
    /// The number of commits that only our side reaches.
    pub ahead: usize,
    /// The number of commits that only their side reaches.
    pub behind: usize,
}

const LEFT: u8 = 1;
const RIGHT: u8 = 2;
const BOTH: u8 = LEFT | RIGHT;
/// A descendant of the commit is reachable from both sides, so the commit is not a best merge base.
const STALE: u8 = 4;
const QUEUED: u8 = 8;
/// The flags of the commit have been propagated to its parents.
const EXPANDED: u8 = 16;

/// The number of commits without a generation number that are read beyond the point at which the result
/// is final if all committer dates are correct. Git reads the same number.
const SLOP: u32 = 5;

/// The condition that ends a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The commits that are reachable from exactly one side are known.
    Divided,
    /// The commits that are reachable only from the left side are known.
    LeftKnown,
    /// The merge bases are known.
    BasesKnown,
}

impl Until {
    fn is_done(self, sides: u8) -> bool {
        match self {
            Until::Divided => sides & BOTH == BOTH,
            Until::LeftKnown => sides & RIGHT != 0,
            Until::BasesKnown => sides & STALE != 0,
        }
    }
}

/// An entry of the queue, ordered by generation number, then by committer date, then by the order in
/// which it was read.
type PaintEntry = (u64, i64, Reverse<CommitNumber>);

/// A walk from two sides. Commits with higher generation numbers come first, and among equal ones the
/// newest. If generation numbers are known, all descendants of a commit precede the commit, even if
/// committer dates are wrong.
pub struct Painting<'a> {
    commits: Commits<'a>,
    sides: Vec<u8>,
    queue: BinaryHeap<PaintEntry>,
    until: Until,
    /// The number of queued commits that can still change the result, or whose flags have changed after
    /// they were propagated to the parents.
    undecided: usize,
    /// The lowest generation number that matters for the result. Commits below are skipped.
    floor: u64,
    /// The oldest committer date of the commits that matter for the result so far.
    oldest: i64,
}

impl<'a> Painting<'a> {
    /// Creates a walk in `repository` without starting points.
    ///
    /// # Errors
    /// As for [`Repository::commit_graph`].
    pub fn new(repository: &'a Repository, until: Until) -> Result<Self> {
        Ok(Painting::over(Commits::new(repository)?, until))
    }

    /// Does the same as [`new`](Self::new), but treats missing commits as commits without parents, on
    /// both sides. Callers that need the commits of the left side read them again.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn lenient(repository: &'a Repository, until: Until) -> Result<Self> {
        let mut commits = Commits::new(repository)?;
        commits.pass_over_missing();
        Ok(Painting::over(commits, until))
    }

    fn over(commits: Commits<'a>, until: Until) -> Self {
        Painting {
            commits,
            sides: Vec::new(),
            queue: BinaryHeap::new(),
            until,
            undecided: 0,
            floor: 0,
            oldest: i64::MAX,
        }
    }

    /// Adds the commit `id` to the tips of the left side.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if `id` does not exist or is not a commit, or
    /// [`ErrorKind::Io`].
    pub fn left(&mut self, id: &oid) -> Result<()> {
        let number = self.commits.number(id)?;
        self.add(number, LEFT);
        Ok(())
    }

    /// Adds the commit `id` to the tips of the right side.
    ///
    /// # Errors
    /// As for [`left`](Self::left).
    pub fn right(&mut self, id: &oid) -> Result<()> {
        let number = self.commits.number(id)?;
        self.add(number, RIGHT);
        Ok(())
    }

    fn sides(&self, number: CommitNumber) -> u8 {
        self.sides.get(number as usize).copied().unwrap_or(0)
    }

    fn is_undecided(&self, number: CommitNumber) -> bool {
        let sides = self.sides(number);
        sides & QUEUED != 0 && (!self.until.is_done(sides) || sides & EXPANDED != 0)
    }

    fn add(&mut self, number: CommitNumber, sides: u8) {
        let generation = self.commits.generation(number);
        let slot = number as usize;
        if self.sides.len() <= slot {
            self.sides.resize(slot + 1, 0);
        }
        let before = self.sides[slot];
        if generation < self.floor || before & sides == sides || self.until.is_done(before) {
            return;
        }
        let was_undecided = self.is_undecided(number);
        self.sides[slot] |= sides;
        if self.sides[slot] & QUEUED == 0 {
            self.sides[slot] |= QUEUED;
            let time = self.commits.time(number);
            self.queue.push((generation, time, Reverse(number)));
        }
        self.undecided += usize::from(self.is_undecided(number));
        self.undecided -= usize::from(was_undecided);
    }

    /// Takes the next commit out of the queue and propagates its flags to its parents.
    fn step(&mut self) -> Result<Option<CommitNumber>> {
        let Some((_, time, Reverse(number))) = self.queue.pop() else {
            return Ok(None);
        };
        self.undecided -= usize::from(self.is_undecided(number));
        let sides = &mut self.sides[number as usize];
        *sides = *sides & !QUEUED | EXPANDED;
        let mut passed = *sides & (BOTH | STALE);
        if !self.until.is_done(passed) {
            self.oldest = self.oldest.min(time);
        }
        if passed & BOTH == BOTH && self.until == Until::BasesKnown {
            passed |= STALE;
        }
        for which in 0..self.commits.parent_count(number) {
            let parent = self.commits.parent(number, which)?;
            self.add(parent, passed);
        }
        Ok(Some(number))
    }

    /// Walks until the condition of [`Until`] holds.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a commit is missing or malformed, [`ErrorKind::Io`], or
    /// [`ErrorKind::Interrupted`].
    pub fn run(&mut self, watch: &Watch<'_>) -> Result<()> {
        let mut slop = SLOP;
        loop {
            let interrupted = |reason: pronto_io::interrupt::Interrupted| {
                Error::new(ErrorKind::Interrupted, reason.to_string())
            };
            watch.interrupt().check().map_err(interrupted)?;
            if self.undecided > 0 {
                slop = SLOP;
            } else {
                match self.queue.peek() {
                    // A commit without a generation number may be older than its parents.
                    Some((GENERATION_INFINITY, time, _)) if *time >= self.oldest => slop = SLOP,
                    Some((GENERATION_INFINITY, ..)) if slop > 0 => slop -= 1,
                    _ => return Ok(()),
                }
            }
            self.step()?;
        }
    }

    fn numbers(&self, sides: u8) -> impl Iterator<Item = CommitNumber> + '_ {
        let of = move |(number, found): (usize, &u8)| {
            (found & (BOTH | STALE) == sides).then_some(number as CommitNumber)
        };
        self.sides.iter().enumerate().filter_map(of)
    }

    /// Counts the commits that only one side reaches. The left side is ahead.
    pub fn counts(&self) -> AheadBehind {
        AheadBehind {
            ahead: self.numbers(LEFT).count(),
            behind: self.numbers(RIGHT).count(),
        }
    }

    /// Returns the merge bases, newest first: the commits that are reachable from both sides and are
    /// not ancestors of other such commits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub(crate) fn bases(&self) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        for number in self.numbers(BOTH) {
            found.push((Reverse(self.commits.time(number)), self.commits.id(number)?));
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns the commits that are reachable only from the left side, newest first. Commits with equal
    /// dates keep the order in which they were read.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn all_left(&self) -> Result<Vec<ObjectId>> {
        let mut found: Vec<CommitNumber> = self.numbers(LEFT).collect();
        found.sort_by_key(|number| Reverse(self.commits.time(*number)));
        found
            .into_iter()
            .map(|number| self.commits.id(number))
            .collect()
    }

    /// Returns the commits that are reachable only from the left side, in the order in which a walk by
    /// date from `start` finds them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a commit is missing or malformed, or [`ErrorKind::Io`].
    pub fn only_left(&mut self, start: &oid) -> Result<Vec<ObjectId>> {
        let start = self.commits.number(start)?;
        let mut queue = BinaryHeap::new();
        let mut seen = BTreeSet::new();
        let (mut waiting, mut found) = (vec![start], Vec::new());
        loop {
            for number in waiting.drain(..) {
                if self.sides(number) & (BOTH | STALE) == LEFT && seen.insert(number) {
                    let arrival = Reverse(seen.len());
                    queue.push((self.commits.time(number), arrival, number));
                }
            }
            let Some((_, _, number)) = queue.pop() else {
                return Ok(found);
            };
            found.push(self.commits.id(number)?);
            for which in 0..self.commits.parent_count(number) {
                waiting.push(self.commits.parent(number, which)?);
            }
        }
    }
}

/// Returns whether any commit is reachable from `left` and not from `right`. All ids must be commits.
///
/// Costs reading the history between the two sides. With a commit-graph file no object is read.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a commit is missing or malformed, or with
/// [`ErrorKind::Interrupted`].
pub fn leads_beyond(
    repository: &Repository,
    left: &[ObjectId],
    right: &[ObjectId],
    watch: &Watch<'_>,
) -> Result<bool> {
    let mut painting = Painting::new(repository, Until::LeftKnown)?;
    left.iter().try_for_each(|id| painting.left(id))?;
    right.iter().try_for_each(|id| painting.right(id))?;
    painting.run(watch)?;
    Ok(painting.numbers(LEFT).next().is_some())
}

impl Repository {
    /// Returns whether `ancestor` is reachable from `descendant` if the history ends at the shallow
    /// commits `cut`. Missing commits are treated as commits without parents.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a commit is malformed.
    pub fn is_ancestor(
        &self,
        ancestor: &oid,
        descendant: &oid,
        cut: &BTreeSet<ObjectId>,
    ) -> Result<bool> {
        if ancestor == descendant {
            return Ok(true);
        }
        let mut painting = Painting::over(Commits::lenient(self, cut)?, Until::BasesKnown);
        let wanted = painting.commits.number(ancestor)?;
        let generation = painting.commits.generation(wanted);
        if generation != GENERATION_INFINITY {
            painting.floor = generation;
        }
        painting.left(ancestor)?;
        painting.right(descendant)?;
        while painting.sides(wanted) & RIGHT == 0 && painting.undecided > 0 {
            painting.step()?;
        }
        Ok(painting.sides(wanted) & RIGHT != 0)
    }

    /// Returns the merge bases of `left` and `right`, newest first: their common ancestors that are not
    /// ancestors of other common ancestors.
    ///
    /// Costs reading the history back to the merge bases.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a commit is missing or malformed.
    pub fn merge_bases(&self, left: ObjectId, right: ObjectId) -> Result<Vec<ObjectId>> {
        if left == right {
            return Ok(vec![left]);
        }
        let mut painting = Painting::new(self, Until::BasesKnown)?;
        painting.left(&left)?;
        painting.right(&right)?;
        painting.run(&Watch::none())?;
        let mut bases = painting.bases()?;
        // Without generation numbers, a merge base may turn out to be an ancestor of another one on a
        // longer path.
        let cut = self.shallow_commits()?.iter().copied().collect();
        let mut at = 0;
        while bases.len() > 1 && at < bases.len() {
            let base = bases[at];
            let others = bases.iter().filter(|other| **other != base);
            let mut redundant = false;
            for other in others {
                redundant = redundant || self.is_ancestor(&base, other, &cut)?;
            }
            match redundant {
                true => _ = bases.remove(at),
                false => at += 1,
            }
        }
        Ok(bases)
    }
}
