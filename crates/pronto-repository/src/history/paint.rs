//! A walk from two sides that determines which commits are reachable from which.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_pack::commit_graph::GENERATION_INFINITY;

use super::{Commits, Number};
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
/// A child of it, or a descendant, is reachable from both sides.
const STALE: u8 = 4;
const QUEUED: u8 = 8;
/// Its parents were told once already.
const EXPANDED: u8 = 16;

/// The number of commits that are read beyond the point where nothing could change with correct
/// clocks. Git uses the same.
const SLOP: u32 = 5;

/// The end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until it is known which commits only one side leads to.
    Divided,
    /// Until it is known which commits only the left side leads to.
    LeftKnown,
    /// Until the best of the common commits are known.
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

/// A queue entry, ordered by generation, then time, then arrival.
type Queued = (u64, i64, Reverse<Number>);

/// A walk: commits with a higher generation first, among equals the newest. Where generations
/// are known, a commit comes after all its descendants, whatever the clocks were.
pub struct Painting<'a> {
    commits: Commits<'a>,
    sides: Vec<u8>,
    queue: BinaryHeap<Queued>,
    until: Until,
    /// Commits in the queue that still change what is to be known, or come too late, after their
    /// parents were told otherwise.
    undecided: usize,
    /// Nothing below this generation matters.
    floor: u64,
    /// The oldest commit that is of interest so far.
    oldest: i64,
}

impl<'a> Painting<'a> {
    /// A walk in `repository` that has not begun.
    ///
    /// # Errors
    /// As [`Repository::commit_graph`].
    pub fn new(repository: &'a Repository, until: Until) -> Result<Self> {
        Ok(Painting::over(Commits::new(repository)?, until))
    }

    /// Does the same as [`new`](Self::new), but treats a missing commit as one without parents,
    /// whichever side leads to it. Callers that need the commits of the left side read them again.
    ///
    /// # Errors
    /// As [`new`](Self::new).
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

    /// Adds `id` to the starting points of the left side.
    ///
    /// # Errors
    /// It is no commit, or cannot be read.
    pub fn left(&mut self, id: &oid) -> Result<()> {
        let number = self.commits.number(id)?;
        self.add(number, LEFT);
        Ok(())
    }

    /// Adds `id` to the starting points of the right side.
    ///
    /// # Errors
    /// As [`left`](Self::left).
    pub fn right(&mut self, id: &oid) -> Result<()> {
        let number = self.commits.number(id)?;
        self.add(number, RIGHT);
        Ok(())
    }

    fn sides(&self, number: Number) -> u8 {
        self.sides.get(number as usize).copied().unwrap_or(0)
    }

    fn is_undecided(&self, number: Number) -> bool {
        let sides = self.sides(number);
        sides & QUEUED != 0 && (!self.until.is_done(sides) || sides & EXPANDED != 0)
    }

    fn add(&mut self, number: Number, sides: u8) {
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

    /// Takes the next commit out of the queue and passes its sides to its parents.
    fn step(&mut self) -> Result<Option<Number>> {
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

    /// Walks as far as needed.
    ///
    /// # Errors
    /// A commit cannot be read, or the walk was interrupted.
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
                    // What has no generation may be older than its parents.
                    Some((GENERATION_INFINITY, time, _)) if *time >= self.oldest => slop = SLOP,
                    Some((GENERATION_INFINITY, ..)) if slop > 0 => slop -= 1,
                    _ => return Ok(()),
                }
            }
            self.step()?;
        }
    }

    fn numbers(&self, sides: u8) -> impl Iterator<Item = Number> + '_ {
        let of = move |(number, found): (usize, &u8)| {
            (found & (BOTH | STALE) == sides).then_some(number as Number)
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

    /// The commits that both sides lead to and of which no other one is a descendant, the newest
    /// first.
    ///
    /// # Errors
    /// The commit-graph cannot be read.
    pub(crate) fn bases(&self) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        for number in self.numbers(BOTH) {
            found.push((Reverse(self.commits.time(number)), self.commits.id(number)?));
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns the commits reachable only from the left side, newest first, and among those with the same
    /// time in the order in which they were found.
    ///
    /// # Errors
    /// The commit-graph cannot be read.
    pub fn all_left(&self) -> Result<Vec<ObjectId>> {
        let mut found: Vec<Number> = self.numbers(LEFT).collect();
        found.sort_by_key(|number| Reverse(self.commits.time(*number)));
        found
            .into_iter()
            .map(|number| self.commits.id(number))
            .collect()
    }

    /// The commits that only the left side leads to, in the order in which a walk by time from
    /// `start` finds them.
    ///
    /// # Errors
    /// A commit cannot be read.
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

/// Returns whether a commit is reachable from `left` and not from `right`. Both must be commits.
///
/// Costs reading the history between the two; with a commit-graph no object is read.
///
/// # Errors
/// A commit is missing or malformed, or the walk was interrupted.
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
    /// Whether `ancestor` can be reached from `descendant` if history ends at `cut`. What is not
    /// there has no parents.
    ///
    /// # Errors
    /// A commit is malformed.
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

    /// The best common ancestors of `left` and `right`: those that are not ancestors of another
    /// one. Newest first.
    ///
    /// Costs reading the history back to them.
    ///
    /// # Errors
    /// A commit is missing or malformed.
    pub fn merge_bases(&self, left: ObjectId, right: ObjectId) -> Result<Vec<ObjectId>> {
        if left == right {
            return Ok(vec![left]);
        }
        let mut painting = Painting::new(self, Until::BasesKnown)?;
        painting.left(&left)?;
        painting.right(&right)?;
        painting.run(&Watch::none())?;
        let mut bases = painting.bases()?;
        // Without generations, one may turn out to be an ancestor of another by a detour.
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
