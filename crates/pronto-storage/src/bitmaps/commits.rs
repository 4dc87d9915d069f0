//! The history for bitmaps, and the selection of commits that get one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::progress::Progress;
use pronto_pack::idx::IndexPosition;
use pronto_repository::links::links_in;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};

use super::lacking;
use super::{BitmapContext, BitmapObjects, BitmapTips};

/// The number of commits below which each commit gets a bitmap.
const FEW: usize = 100;
/// The number of newest commits that all get a bitmap.
const ALWAYS: usize = 100;
/// The largest number of commits between two bitmaps among the newest ones.
const NEAR: usize = 100;
const RECENT: usize = 20_000;
/// The largest number of commits between two bitmaps among older commits.
const FAR: usize = 5_000;

/// The number of a commit in a [`NumberedHistory`].
pub(super) type BitmapCommitNumber = u32;

/// The marker for a missing parent.
const NONE: BitmapCommitNumber = BitmapCommitNumber::MAX;

/// A commit with its tree and parents.
#[derive(Clone, Debug)]
pub(super) struct BitmapCommit {
    id: ObjectId,
    /// The id of its tree.
    pub(super) tree: ObjectId,
    /// The row of the commit in the pack index; `None` if the commit is in another pack.
    row: Option<IndexPosition>,
    time: i64,
    parents: Range<u32>,
}

impl BitmapCommit {
    /// Returns the row of the commit in the pack index.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the commit is not in the index.
    pub(super) fn row(&self) -> Result<IndexPosition> {
        self.row.ok_or_else(|| lacking(&self.id))
    }
}

/// Commits, numbered, and their parents.
#[derive(Debug, Default)]
pub(super) struct NumberedHistory {
    commits: Vec<BitmapCommit>,
    parents: Vec<BitmapCommitNumber>,
    /// The commits to which refs point, in the order of the refs.
    tips: Vec<BitmapCommitNumber>,
}

/// A part of a history, numbered so that commits precede their parents.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    /// The commits by their numbers.
    pub(super) commits: Vec<BitmapCommit>,
    parents: Vec<BitmapCommitNumber>,
    /// The commits that get bitmaps, in the order in which the bitmaps are stored.
    pub(super) selected: Vec<BitmapCommitNumber>,
}

impl Ordered {
    /// Returns the parents of commit `of`.
    pub(super) fn parents(&self, of: BitmapCommitNumber) -> &[BitmapCommitNumber] {
        let range = &self.commits[of as usize].parents;
        &self.parents[range.start as usize..range.end as usize]
    }
}

struct Gathering<'a> {
    work: &'a BitmapContext<'a>,
    objects: &'a BitmapObjects<'a>,
    /// The shallow boundary, sorted.
    cut: &'a [ObjectId],
    /// Whether commits may be missing.
    is_partial: bool,
    history: NumberedHistory,
    /// The parents of all commits; each commit has a range of them.
    parent_ids: Vec<ObjectId>,
    by_id: HashMap<ObjectId, BitmapCommitNumber>,
    buffer: Vec<u8>,
}

/// Collects all commits that are reachable from `tips`.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a commit is missing or malformed.
pub(super) fn gather(
    work: &BitmapContext<'_>,
    objects: &BitmapObjects<'_>,
    tips: &BitmapTips,
) -> Result<NumberedHistory> {
    let mut gathering = Gathering {
        work,
        objects,
        cut: work.repository.shallow_commits()?,
        is_partial: !work.store.promisor_packs().map_err(from_odb)?.is_empty(),
        history: NumberedHistory::default(),
        parent_ids: Vec::new(),
        by_id: HashMap::new(),
        buffer: Vec::new(),
    };
    for tip in &tips.ids {
        gathering.tip(tip)?;
    }
    // The parents of each commit follow those of the preceding commit, here and in `parent_ids`.
    while let Some(id) = gathering.parent_ids.get(gathering.history.parents.len()) {
        let number = gathering.number(&id.to_owned())?;
        gathering.history.parents.push(number);
    }
    Ok(gathering.history)
}

impl Gathering<'_> {
    fn tip(&mut self, id: &oid) -> Result<()> {
        let id = self
            .work
            .repository
            .peel_tag(id.to_owned())?
            .unwrap_or(id.to_owned());
        let header = self.work.store.header(&id).map_err(from_odb)?;
        match header.map(|header| header.kind) {
            Some(ObjectKind::Commit) => {
                // Only tips are numbered at this point, so a new tip gets the next number.
                let next = self.history.commits.len() as BitmapCommitNumber;
                let number = self.number(&id)?;
                if number == next {
                    self.history.tips.push(number);
                }
                Ok(())
            }
            Some(_) => Ok(()),
            None => {
                let message = format!("unable to parse object: {id}");
                Err(Error::new(ErrorKind::Object, message))
            }
        }
    }

    fn number(&mut self, id: &oid) -> Result<BitmapCommitNumber> {
        if let Some(number) = self.by_id.get(id) {
            return Ok(*number);
        }
        if self.by_id.len().is_multiple_of(1024) {
            self.work.check()?;
        }
        let row = self.objects.row(id)?;
        if row.is_none() && self.is_partial && !self.work.store.contains(id).map_err(from_odb)? {
            return Ok(NONE);
        }
        let mut links = links_in(&self.work.store, id, &mut self.buffer)?;
        if self.cut.binary_search(&id.to_owned()).is_ok() {
            links.parents.clear();
        }
        let start = self.parent_ids.len() as u32;
        self.parent_ids.extend(links.parents);
        let number = self.history.commits.len() as BitmapCommitNumber;
        self.history.commits.push(BitmapCommit {
            id: id.to_owned(),
            tree: links.tree,
            row,
            time: links.time,
            parents: start..self.parent_ids.len() as u32,
        });
        self.by_id.insert(id.to_owned(), number);
        Ok(number)
    }
}

impl NumberedHistory {
    fn parents(&self, of: BitmapCommitNumber) -> impl Iterator<Item = BitmapCommitNumber> + '_ {
        let range = &self.commits[of as usize].parents;
        let parents = &self.parents[range.start as usize..range.end as usize];
        parents.iter().copied().filter(|parent| *parent != NONE)
    }

    /// Returns the commits in the index, newest first. Commits with equal dates are in the order in
    /// which Git visits them.
    fn candidates(&self) -> Vec<BitmapCommitNumber> {
        let mut queue = BinaryHeap::new();
        let mut seen = vec![false; self.commits.len()];
        let mut arrivals = 0u32;
        let mut push = |queue: &mut BinaryHeap<_>, number: BitmapCommitNumber| {
            if !std::mem::replace(&mut seen[number as usize], true) {
                let time = self.commits[number as usize].time;
                queue.push((time, Reverse(arrivals), number));
                arrivals += 1;
            }
        };
        self.tips.iter().for_each(|tip| push(&mut queue, *tip));
        let mut candidates = Vec::with_capacity(self.commits.len());
        while let Some((_, _, number)) = queue.pop() {
            if self.commits[number as usize].row.is_some() {
                candidates.push(number);
            }
            self.parents(number)
                .for_each(|parent| push(&mut queue, parent));
        }
        // Committer dates may be wrong.
        candidates.sort_by_key(|number| Reverse(self.commits[*number as usize].time));
        candidates
    }

    /// Selects the commits that get bitmaps, newest first. As in Git, the newest commits are selected
    /// densely and older ones sparsely. In each stretch a preferred commit is selected, else the oldest
    /// merge, else the oldest commit. Then the newest tips are added, as `tips` requests.
    pub(super) fn select(
        &self,
        progress: &dyn Progress,
        tips: &BitmapTips,
    ) -> Vec<BitmapCommitNumber> {
        let candidates = self.candidates();
        if candidates.len() < FEW {
            return candidates;
        }
        let meter = progress.begin("Selecting bitmap commits", None);
        let mut selected = Vec::new();
        let mut at = 0;
        while let Some(stretch) = candidates.get(at..=at + distance(at)) {
            meter.add(stretch.len() as u64);
            let commit = |number: &BitmapCommitNumber| &self.commits[*number as usize];
            let is_preferred =
                |number: &&BitmapCommitNumber| tips.preferred.contains(&commit(number).id);
            let is_merge = |number: &&BitmapCommitNumber| commit(number).parents.len() > 1;
            let chosen = match stretch {
                [only] => Some(only),
                _ => (stretch.iter().find(is_preferred))
                    .or_else(|| stretch.iter().rfind(is_merge))
                    .or(stretch.last()),
            };
            selected.extend(chosen);
            at += stretch.len();
        }
        meter.finish();
        match tips.bitmapped_tips {
            0 => selected,
            most => self.with_tips(&selected, most, &candidates),
        }
    }

    /// Adds the newest `most` tips to `selected`, in the order of `candidates`.
    fn with_tips(
        &self,
        selected: &[BitmapCommitNumber],
        most: usize,
        candidates: &[BitmapCommitNumber],
    ) -> Vec<BitmapCommitNumber> {
        let mut is_tip = vec![false; self.commits.len()];
        self.tips
            .iter()
            .for_each(|tip| is_tip[*tip as usize] = true);
        let tips = candidates.iter().filter(|number| is_tip[**number as usize]);
        let mut is_selected = vec![false; self.commits.len()];
        let all = selected.iter().chain(tips.take(most));
        all.for_each(|number| is_selected[*number as usize] = true);
        let found = candidates
            .iter()
            .filter(|number| is_selected[**number as usize]);
        found.copied().collect()
    }

    /// Returns the selected commits and their ancestors.
    pub(super) fn ancestors_of(self, selected: &[BitmapCommitNumber]) -> Ordered {
        let order = self.topological(selected);
        let mut numbers = vec![NONE; self.commits.len()];
        for (new, old) in order.iter().enumerate() {
            numbers[*old as usize] = new as BitmapCommitNumber;
        }
        let mut ordered = Ordered {
            commits: Vec::with_capacity(order.len()),
            parents: Vec::new(),
            selected: selected.iter().map(|old| numbers[*old as usize]).collect(),
        };
        for old in order {
            let start = ordered.parents.len() as u32;
            let parents = self.parents(old).map(|parent| numbers[parent as usize]);
            ordered.parents.extend(parents);
            ordered.commits.push(BitmapCommit {
                parents: start..ordered.parents.len() as u32,
                ..self.commits[old as usize].clone()
            });
        }
        ordered
    }

    /// Returns `from` and its ancestors, children first. A first parent directly follows its child if
    /// possible, so that neighbours have many objects in common.
    fn topological(&self, from: &[BitmapCommitNumber]) -> Vec<BitmapCommitNumber> {
        let mut children = vec![0u32; self.commits.len()];
        let mut seen = vec![false; self.commits.len()];
        let mut stack: Vec<BitmapCommitNumber> = Vec::new();
        for number in from {
            if !std::mem::replace(&mut seen[*number as usize], true) {
                stack.push(*number);
            }
        }
        while let Some(number) = stack.pop() {
            for parent in self.parents(number) {
                children[parent as usize] += 1;
                if !std::mem::replace(&mut seen[parent as usize], true) {
                    stack.push(parent);
                }
            }
        }
        let childless = from
            .iter()
            .rev()
            .filter(|number| children[**number as usize] == 0);
        let mut ready: Vec<BitmapCommitNumber> = childless.copied().collect();
        let mut order = Vec::new();
        while let Some(number) = ready.pop() {
            order.push(number);
            let start = ready.len();
            for parent in self.parents(number) {
                children[parent as usize] -= 1;
                if children[parent as usize] == 0 {
                    ready.push(parent);
                }
            }
            ready[start..].reverse();
        }
        order
    }
}

/// Returns the number of commits to skip between the selected commit at `at` and the next one.
fn distance(at: usize) -> usize {
    if at <= ALWAYS {
        0
    } else if at <= RECENT {
        (at - ALWAYS).min(NEAR)
    } else {
        (at - RECENT).clamp(NEAR, FAR)
    }
}
