//! Shallow fetches: determines the shallow boundary for the client, and the `shallow` and
//! `unshallow` lines.
//!
//! Commits are visited in Git's order, because the client observes the order of the lines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use bstr::BStr;
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_wire::request::{INFINITE_DEPTH, RequestLine};

use super::shown::NamespaceView;
use super::{MOST_IDS, broken, too_much};
use crate::links::links_in;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::CommitLinks;

/// The lines of the client about shallow history (`shallow`, `deepen`, …).
#[derive(Debug, Default)]
pub(super) struct Deepening {
    /// The shallow commits of the client that exist on the server.
    pub(super) client: Vec<ObjectId>,
    seen: HashSet<ObjectId>,
    depth: Option<u32>,
    since: Option<u64>,
    /// The objects of `deepen-not`.
    not: Vec<ObjectId>,
    excludes: bool,
    pub(super) is_relative: bool,
}

/// The shallow boundary of the response.
#[derive(Debug, Default)]
pub(super) struct ShallowCut {
    /// The lines for the client; `None` if no lines are sent.
    pub(super) lines: Option<Vec<String>>,
    /// The shallow commits of the client after the fetch.
    pub(super) commits: Vec<ObjectId>,
    /// Additional wants: the parents of commits that are no longer shallow.
    pub(super) wants: Vec<ObjectId>,
    /// Additional haves: the commits that are no longer shallow.
    pub(super) haves: Vec<ObjectId>,
}

impl Deepening {
    /// Whether the client has sent a line about shallow history.
    pub(super) fn is_requested(&self) -> bool {
        self.is_deepening() || !self.client.is_empty()
    }

    fn is_deepening(&self) -> bool {
        self.depth.is_some() || self.excludes
    }

    /// Returns the part about shallow history of a request's trace, in Git's words.
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

    /// Records `line`, if it is about shallow history. Returns whether it is.
    ///
    /// # Errors
    /// Fails if the line names an object that is not a commit, or a missing ref.
    pub(super) fn take(
        &mut self,
        view: &NamespaceView<'_>,
        line: &RequestLine<'_>,
    ) -> Result<bool> {
        match line {
            RequestLine::Shallow(id) => self.shallow(view.repository, *id)?,
            RequestLine::Deepen(depth) => self.depth = Some(*depth),
            RequestLine::DeepenSince(time) => {
                self.since = Some(*time);
                self.excludes = true;
            }
            RequestLine::DeepenNot(name) => self.not(view, name)?,
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

    fn not(&mut self, view: &NamespaceView<'_>, name: &BStr) -> Result<()> {
        if self.not.len() >= MOST_IDS {
            return Err(too_much());
        }
        let found = view.repository.find_reference(name)?;
        // A hidden ref is treated as missing.
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

    /// Determines the shallow boundary for `wants`. With `is_v2`, a request without depth is
    /// limited by the server's own shallow boundary.
    ///
    /// # Errors
    /// Fails if the lines contradict each other, no commit is selected, or a commit cannot be read.
    pub(super) fn cut(
        &self,
        repository: &Repository,
        wants: &[ObjectId],
        is_v2: bool,
        interrupt: &Interrupt,
    ) -> Result<ShallowCut> {
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
        let mut history = ShallowHistory {
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
                return Ok(ShallowCut {
                    commits: self.client.clone(),
                    ..ShallowCut::default()
                });
            }
        };
        self.describe(&history, &boundary)
    }

    fn by_depth(
        &self,
        history: &mut ShallowHistory<'_>,
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

    fn by_exclusion(
        &self,
        history: &mut ShallowHistory<'_>,
        wants: &[ObjectId],
    ) -> Result<Boundary> {
        let selected = history.selected(wants, &self.not, self.since)?;
        if selected.is_empty() {
            return Err(broken("no commits selected for shallow requests"));
        }
        history.ends_of(&selected)
    }

    fn describe(&self, history: &ShallowHistory<'_>, boundary: &Boundary) -> Result<ShallowCut> {
        let mut cut = ShallowCut::default();
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

/// The commits of a shallow history.
#[derive(Debug, Default)]
struct Boundary {
    /// The shallow commits, the last found first.
    ends: Vec<ObjectId>,
    /// The other commits.
    inside: HashSet<ObjectId>,
}

/// Reads commits with their parents in this repository. Each commit is read once.
struct ShallowHistory<'a> {
    repository: &'a Repository,
    /// The shallow commits of the server.
    own: &'a HashSet<ObjectId>,
    interrupt: &'a Interrupt,
    read: HashMap<ObjectId, CommitLinks>,
}

impl ShallowHistory<'_> {
    fn links(&mut self, id: &ObjectId) -> Result<&CommitLinks> {
        if !self.read.contains_key(id) {
            self.interrupt.check().map_err(crate::interrupted)?;
            let links = self.repository.commit_links(id, &mut Vec::new())?;
            self.read.insert(*id, links);
        }
        (self.read.get(id))
            .ok_or_else(|| Error::new(ErrorKind::MissingObject, "could not read commit"))
    }

    /// Returns the links of a commit as its object contains them, regardless of shallow commits.
    fn written(&self, id: &ObjectId) -> Result<CommitLinks> {
        links_in(self.repository.objects()?, id, &mut Vec::new())
    }

    /// Peels `ids` to commits.
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

    /// Visits commits from `heads` with their distances, and visits a commit again if a shorter
    /// path to it is found. `visit` decides whether the parents of a commit are visited. As in Git,
    /// all heads and their last parents precede other parents.
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

    /// Returns the commits that are reachable from `wants` and not from `not`, and are not older
    /// than `since`, the newest first.
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

    /// Returns the boundary of a history of these commits: the commits that would lose a parent.
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
