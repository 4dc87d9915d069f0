//! Shallow history: where the history that the client gets ends, and what it is told about that.
//!
//! The commits are visited in Git's order, because the client sees it in the order of the lines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use bstr::BStr;
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_wire::request::{INFINITE_DEPTH, Line};

use super::shown::View;
use super::{MOST_IDS, broken, too_much};
use crate::links::links_in;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::CommitLinks;

/// The lines of the client about the end of its history.
#[derive(Debug, Default)]
pub(super) struct Deepening {
    /// Its commits without parents, as far as they are here.
    pub(super) client: Vec<ObjectId>,
    seen: HashSet<ObjectId>,
    depth: Option<u32>,
    since: Option<u64>,
    /// The objects that `deepen-not` names.
    not: Vec<ObjectId>,
    excludes: bool,
    pub(super) is_relative: bool,
}

/// The end of the history that a client gets.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// The lines for the client; `None` if it gets none.
    pub(super) lines: Option<Vec<String>>,
    /// The commits at which the client's history ends.
    pub(super) commits: Vec<ObjectId>,
    /// More objects that the client wants: the parents of commits that get them back.
    pub(super) wants: Vec<ObjectId>,
    /// More objects that it has: those commits.
    pub(super) haves: Vec<ObjectId>,
}

impl Deepening {
    /// Whether the client said something.
    pub(super) fn is_requested(&self) -> bool {
        self.is_deepening() || !self.client.is_empty()
    }

    fn is_deepening(&self) -> bool {
        self.depth.is_some() || self.excludes
    }

    /// Returns the part of the trace of a request that is about shallow history, in Git's words.
    pub(super) fn traced(&self) -> String {
        format!(
            "\"depth\":{},\"shallows\":{},\"deepen-since\":{},\"deepen-not\":{},\
             \"deepen-relative\":{}",
            self.depth.unwrap_or(0),
            self.client.len(),
            self.since.is_some(),
            self.not.len(),
            self.is_relative
        )
    }

    /// Takes `line`, if it is about shallow history; whether it is.
    ///
    /// # Errors
    /// It names something that is no commit, or no ref.
    pub(super) fn take(&mut self, view: &View<'_>, line: &Line<'_>) -> Result<bool> {
        match line {
            Line::Shallow(id) => self.shallow(view.repository, *id)?,
            Line::Deepen(depth) => self.depth = Some(*depth),
            Line::DeepenSince(time) => {
                self.since = Some(*time);
                self.excludes = true;
            }
            Line::DeepenNot(name) => self.not(view, name)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn shallow(&mut self, repository: &Repository, id: ObjectId) -> Result<()> {
        let header = repository.objects()?.header(&id).map_err(from_odb)?;
        match header.map(|header| header.kind) {
            None => {}
            Some(ObjectKind::Commit) => {
                if self.client.len() >= MOST_IDS {
                    return Err(too_much());
                }
                if self.seen.insert(id) {
                    self.client.push(id);
                }
            }
            Some(_) => return Err(broken(format!("invalid shallow object {id}"))),
        }
        Ok(())
    }

    fn not(&mut self, view: &View<'_>, name: &BStr) -> Result<()> {
        if self.not.len() >= MOST_IDS {
            return Err(too_much());
        }
        let found = view.repository.find_reference(name)?;
        // A hidden ref is as one that does not exist.
        let found = found.filter(|found| !view.hides_full(found.direct.as_ref()));
        let found = match found {
            Some(found) if !found.is_ambiguous => found,
            found => {
                let what = if found.is_some() {
                    "ambiguous deepen-not"
                } else {
                    "deepen-not is not a ref"
                };
                let message = format!("git upload-pack: {what}: deepen-not {name}");
                return Err(broken(message));
            }
        };
        self.not.push(found.id);
        self.excludes = true;
        Ok(())
    }

    /// Determines where the client's history ends when it has `wants`. `is_v2` cuts a request
    /// without depth to what is here.
    ///
    /// # Errors
    /// The requests contradict each other, nothing is selected, or a commit cannot be read.
    pub(super) fn cut(
        &self,
        repository: &Repository,
        wants: &[ObjectId],
        is_v2: bool,
        interrupt: &Interrupt,
    ) -> Result<Cut> {
        if self.depth.is_some() && self.excludes {
            let message = "git upload-pack: deepen and deepen-since (or deepen-not) cannot be used \
                           together";
            return Err(broken(message));
        }
        let mut own: HashSet<ObjectId> = repository.shallow_commits()?.iter().copied().collect();
        let is_shallow = !own.is_empty();
        if !self.is_deepening() {
            own.extend(&self.client);
        }
        let mut history = History {
            repository,
            own: &own,
            interrupt,
            read: HashMap::new(),
        };
        let boundary = match self.depth {
            Some(depth) => self.by_depth(&mut history, wants, depth)?,
            None if self.excludes => self.by_exclusion(&mut history, wants)?,
            None if is_v2 && is_shallow => self.by_depth(&mut history, wants, INFINITE_DEPTH)?,
            None => {
                return Ok(Cut {
                    commits: self.client.clone(),
                    ..Cut::default()
                });
            }
        };
        self.tell(&history, &boundary)
    }

    fn by_depth(
        &self,
        history: &mut History<'_>,
        wants: &[ObjectId],
        depth: u32,
    ) -> Result<Boundary> {
        if depth == INFINITE_DEPTH && history.own.is_empty() {
            return Ok(Boundary {
                ends: Vec::new(),
                inside: self.client.iter().copied().collect(),
            });
        }
        if !self.is_relative {
            return history.cut_at_depth(wants, depth);
        }
        let Some(reached) = history.nearest(wants, &self.seen)? else {
            return Ok(Boundary::default());
        };
        let deeper = match depth {
            INFINITE_DEPTH => depth,
            _ => depth.saturating_add(reached),
        };
        history.cut_at_depth(wants, deeper)
    }

    fn by_exclusion(&self, history: &mut History<'_>, wants: &[ObjectId]) -> Result<Boundary> {
        let selected = history.selected(wants, &self.not, self.since)?;
        if selected.is_empty() {
            return Err(broken("no commits selected for shallow requests"));
        }
        history.ends_of(&selected)
    }

    fn tell(&self, history: &History<'_>, boundary: &Boundary) -> Result<Cut> {
        let mut cut = Cut::default();
        let mut lines = Vec::new();
        for id in &boundary.ends {
            if !self.seen.contains(id) && !boundary.inside.contains(id) {
                lines.push(format!("shallow {id}"));
                cut.commits.push(*id);
            }
        }
        for id in &self.client {
            if boundary.inside.contains(id) {
                lines.push(format!("unshallow {id}"));
                cut.wants.extend(history.written(id)?.parents);
                cut.haves.push(*id);
            }
            cut.commits.push(*id);
        }
        cut.lines = Some(lines);
        Ok(cut)
    }
}

/// The commits of a history, up to its end.
#[derive(Debug, Default)]
struct Boundary {
    /// Its commits without parents, the last one found first.
    ends: Vec<ObjectId>,
    /// Its other commits.
    inside: HashSet<ObjectId>,
}

/// Commits, with the parents that they have here. Each is read once.
struct History<'a> {
    repository: &'a Repository,
    /// The commits at which history ends here.
    own: &'a HashSet<ObjectId>,
    interrupt: &'a Interrupt,
    read: HashMap<ObjectId, CommitLinks>,
}

impl History<'_> {
    fn links(&mut self, id: &ObjectId) -> Result<&CommitLinks> {
        if !self.read.contains_key(id) {
            self.interrupt.check().map_err(crate::interrupted)?;
            let links = self.repository.commit_links(id, &mut Vec::new())?;
            self.read.insert(*id, links);
        }
        (self.read.get(id))
            .ok_or_else(|| Error::new(ErrorKind::MissingObject, "could not read commit"))
    }

    /// The links of a commit as it says itself.
    fn written(&self, id: &ObjectId) -> Result<CommitLinks> {
        links_in(self.repository.objects()?, id, &mut Vec::new())
    }

    /// The commits that `ids` are or lead to by tags.
    fn commits(&self, ids: &[ObjectId]) -> Result<Vec<ObjectId>> {
        let mut commits = Vec::with_capacity(ids.len());
        for id in ids {
            let id = self.repository.peel_tag(*id)?.unwrap_or(*id);
            let header = self.repository.objects()?.header(&id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                commits.push(id);
            }
        }
        Ok(commits)
    }

    /// Visits commits from `heads` with their distances, again where a shorter way leads to them.
    /// `visit` decides whether the parents of a commit are visited. All heads and their last
    /// parents come before other parents, as in Git.
    fn walk(
        &mut self,
        heads: &[ObjectId],
        visit: &mut dyn FnMut(&ObjectId, u32) -> bool,
    ) -> Result<()> {
        let mut distances: HashMap<ObjectId, u32> = HashMap::new();
        let mut heads = self.commits(heads)?.into_iter();
        let mut waiting: Vec<ObjectId> = Vec::new();
        let mut next: Option<ObjectId> = None;
        loop {
            let id = match next.take() {
                Some(id) => id,
                None => match heads.next() {
                    Some(head) => {
                        distances.insert(head, 0);
                        head
                    }
                    None => match waiting.pop() {
                        Some(id) => id,
                        None => return Ok(()),
                    },
                },
            };
            let distance = distances.get(&id).copied().unwrap_or(0).saturating_add(1);
            if !visit(&id, distance) {
                continue;
            }
            let parents = self.links(&id)?.parents.clone();
            for (index, parent) in parents.iter().enumerate() {
                let known = distances.entry(*parent).or_insert(u32::MAX);
                if distance >= *known {
                    continue;
                }
                *known = distance;
                if index + 1 == parents.len() {
                    next = Some(*parent);
                } else {
                    waiting.push(*parent);
                }
            }
        }
    }

    fn cut_at_depth(&mut self, heads: &[ObjectId], depth: u32) -> Result<Boundary> {
        let own = self.own;
        let mut boundary = Boundary::default();
        self.walk(heads, &mut |id, distance| {
            let is_end = depth != INFINITE_DEPTH && distance >= depth || own.contains(id);
            match is_end {
                true => boundary.ends.push(*id),
                false => _ = boundary.inside.insert(*id),
            }
            !is_end
        })?;
        boundary.ends.reverse();
        Ok(boundary)
    }

    /// Returns the smallest depth at which a walk from `heads` meets one of `ends`.
    fn nearest(&mut self, heads: &[ObjectId], ends: &HashSet<ObjectId>) -> Result<Option<u32>> {
        let own = self.own;
        let mut nearest: Option<u32> = None;
        self.walk(heads, &mut |id, distance| {
            if ends.contains(id) {
                nearest = Some(nearest.map_or(distance, |known| known.min(distance)));
            }
            !own.contains(id)
        })?;
        Ok(nearest)
    }

    /// The commits that `wants` lead to and `not` do not, not older than `since`, newest first.
    fn selected(
        &mut self,
        wants: &[ObjectId],
        not: &[ObjectId],
        since: Option<u64>,
    ) -> Result<Vec<ObjectId>> {
        let excluded = self.ancestors(not)?;
        let since = since.map_or(i64::MIN, |since| i64::try_from(since).unwrap_or(i64::MAX));
        let mut queue = BinaryHeap::new();
        let mut seen = HashSet::new();
        let mut selected = Vec::new();
        let mut waiting = self.commits(wants)?;
        loop {
            for id in waiting.drain(..) {
                if !excluded.contains(&id) && seen.insert(id) {
                    let arrival = Reverse(seen.len());
                    queue.push((self.links(&id)?.time, arrival, id));
                }
            }
            let Some((time, _, id)) = queue.pop() else {
                return Ok(selected);
            };
            if time >= since {
                selected.push(id);
                waiting.clone_from(&self.links(&id)?.parents);
            }
        }
    }

    fn ancestors(&mut self, tips: &[ObjectId]) -> Result<HashSet<ObjectId>> {
        let mut waiting = self.commits(tips)?;
        let mut seen: HashSet<ObjectId> = waiting.iter().copied().collect();
        while let Some(id) = waiting.pop() {
            let parents = &self.links(&id)?.parents;
            waiting.extend(parents.iter().filter(|parent| seen.insert(**parent)));
        }
        Ok(seen)
    }

    /// The end of a history of these commits: those that would lose a parent.
    fn ends_of(&mut self, selected: &[ObjectId]) -> Result<Boundary> {
        let inside: HashSet<ObjectId> = selected.iter().copied().collect();
        let (mut ends, mut added) = (Vec::new(), HashSet::new());
        for id in selected {
            let parents = &self.links(id)?.parents;
            if parents.iter().any(|parent| !inside.contains(parent)) {
                ends.push(*id);
                added.insert(*id);
            }
        }
        let inside = inside
            .into_iter()
            .filter(|id| !added.contains(id))
            .collect();
        Ok(Boundary { ends, inside })
    }
}
