//! Checks that everything reachable from the peer's tips has arrived, or was present and is known
//! to both.
//!
//! This is stricter than `remote::connectivity`: an object of this repository that is not reachable
//! from what the peer may see or sent before does not count. Otherwise a peer that knows the id of
//! a hidden object could make it part of its history and receive it with the next sync.

use std::collections::{HashMap, HashSet};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::repository::Offer;
use pronto_odb::Store;

use super::walk;
use pronto::links::{links_in, tag_target, tree_entries};
use pronto::objects::from_odb;
use pronto::{Repository, Result};

/// What is judged by.
pub(super) struct Judge<'a> {
    repository: &'a Repository,
    /// All that is here, and what has come.
    store: &'a Store,
    /// Only what has come.
    arrived: Store,
    /// Commits that are known of both.
    known: &'a [ObjectId],
    /// Tags that are known of both, and the commits they lead to.
    known_tags: &'a HashMap<ObjectId, ObjectId>,
    /// Commits at which the new history begins: here before, parents of what has come.
    boundary: HashSet<ObjectId>,
    /// Everything in the trees of the boundary, read on first use.
    old: Option<Contained>,
    commits: HashSet<ObjectId>,
    seen: Contained,
}

/// The entries of trees. An object may be named as a directory in one tree and as a file in another
/// by a malicious author, so the two are kept apart.
#[derive(Default)]
struct Contained {
    trees: HashSet<ObjectId>,
    blobs: HashSet<ObjectId>,
}

/// What is wrong with what has come.
pub(super) enum Fault {
    /// An object is missing, or is of another kind than what links to it says.
    Missing(ObjectId),
    /// The offer at this place does not lead to the commit that the peer says.
    Misled(usize),
}

/// A tree, and those of the same place in the parents.
type Place = (ObjectId, Vec<ObjectId>);

/// The id in an entry of a tree, and whether it is a directory's.
type Entry<'a> = (&'a [u8], bool);

/// What is to be done about a commit: first its parents, then its tree, which is here with them.
enum Step {
    Commit(ObjectId),
    Place(ObjectId, Vec<ObjectId>),
}

/// A tip may lead to its commit by so many tags.
const MOST_TAGS: usize = 64;

impl<'a> Judge<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        store: &'a Store,
        arrived: Store,
        (known, known_tags): (&'a [ObjectId], &'a HashMap<ObjectId, ObjectId>),
    ) -> Self {
        Judge {
            repository,
            store,
            arrived,
            known,
            known_tags,
            boundary: HashSet::new(),
            old: None,
            commits: HashSet::new(),
            seen: Contained::default(),
        }
    }

    /// The first thing that is wrong with `offers` and what they lead to. What is here but not known
    /// of both gives the same answer as what is nowhere.
    pub(super) fn judge(&mut self, offers: &[&Offer]) -> Result<Result<(), Fault>> {
        let mut commits = Vec::new();
        for (at, offer) in offers.iter().enumerate() {
            let commit = match self.commit_of(offer.id)? {
                Ok(commit) => commit,
                Err(missing) => return Ok(Err(Fault::Missing(missing))),
            };
            if commit != offer.commit() || offer.peeled.is_some() != (commit != offer.id) {
                return Ok(Err(Fault::Misled(at)));
            }
            commits.push(commit);
        }
        let missing = self.first_missing(commits)?;
        Ok(missing.map_or(Ok(()), |id| Err(Fault::Missing(id))))
    }

    /// The first object that is missing of what `tips` lead to.
    fn first_missing(&mut self, tips: Vec<ObjectId>) -> Result<Option<ObjectId>> {
        let new = self.arrived_commits(tips)?;
        if let Some(unknown) = self.unknown_of_boundary()? {
            return Ok(Some(unknown));
        }
        let mut buffer = Vec::new();
        for (tree, parents) in new {
            let mut bases = Vec::with_capacity(parents.len());
            for parent in &parents {
                bases.push(links_in(self.store, parent, &mut buffer)?.tree);
            }
            if let Some(missing) = self.trees((tree, bases))? {
                return Ok(Some(missing));
            }
        }
        Ok(None)
    }

    /// Returns the trees and parents of the received commits, each behind its parents, so
    /// everything in a parent's tree was judged before it is skipped in the child's. Records the
    /// boundary without reading it.
    fn arrived_commits(&mut self, tips: Vec<ObjectId>) -> Result<Vec<(ObjectId, Vec<ObjectId>)>> {
        let mut new = Vec::new();
        let mut left: Vec<Step> = tips.into_iter().map(Step::Commit).collect();
        let mut buffer = Vec::new();
        while let Some(step) = left.pop() {
            let id = match step {
                Step::Commit(id) => id,
                Step::Place(tree, parents) => {
                    new.push((tree, parents));
                    continue;
                }
            };
            if !self.commits.insert(id) {
                continue;
            }
            if !self.arrived.contains(&id).map_err(from_odb)? {
                self.boundary.insert(id);
                continue;
            }
            let links = links_in(&self.arrived, &id, &mut buffer)?;
            let parents = links.parents.iter().copied();
            let place = Step::Place(links.tree, links.parents.clone());
            left.push(place);
            left.extend(parents.map(Step::Commit));
        }
        Ok(new)
    }

    /// One of the boundary that is not known of both, whether it is here or not: the one with the
    /// least id, so that the answer does not depend on which of several are here.
    fn unknown_of_boundary(&self) -> Result<Option<ObjectId>> {
        let mut here = Vec::new();
        for id in &self.boundary {
            let header = self.store.header(id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                here.push(*id);
            }
        }
        let reached = walk::reached(self.repository, &here, self.known)?;
        let unknown = self.boundary.iter().filter(|id| !reached.contains(*id));
        Ok(unknown.min().copied())
    }

    /// Returns the commit that a tip leads to through tags, all of which have arrived or are known;
    /// or the missing object. An object that has not arrived is treated as a commit.
    fn commit_of(&self, tip: ObjectId) -> Result<Result<ObjectId, ObjectId>> {
        let (mut id, mut content) = (tip, Vec::new());
        for _ in 0..MOST_TAGS {
            match self.arrived.find(&id, &mut content).map_err(from_odb)? {
                None => return Ok(Ok(self.known_tags.get(&id).copied().unwrap_or(id))),
                Some(ObjectKind::Commit) => return Ok(Ok(id)),
                Some(ObjectKind::Tag) => match tag_target(&content) {
                    Some(target) => id = target,
                    None => return Ok(Err(id)),
                },
                Some(_) => return Ok(Err(id)),
            }
        }
        Ok(Err(id))
    }

    /// The first that is missing of a tree; all of those of the parents were judged.
    fn trees(&mut self, place: Place) -> Result<Option<ObjectId>> {
        let mut places = vec![place];
        let length = self.store.kind().len_in_bytes();
        while let Some((id, bases)) = places.pop() {
            if bases.contains(&id) || !self.seen.trees.insert(id) || id.is_empty_tree() {
                continue;
            }
            let content = match self.tree(&id)? {
                Some(content) if self.is_there(&id, ObjectKind::Tree)? => content,
                _ => return Ok(Some(id)),
            };
            let mut contents = Vec::with_capacity(bases.len());
            for base in &bases {
                contents.push(self.tree(base)?.unwrap_or_default());
            }
            let by_name: Vec<HashMap<&[u8], Entry<'_>>> = contents
                .iter()
                .map(|base| {
                    let entries = tree_entries(base, length).filter(|entry| !entry.is_submodule());
                    entries
                        .map(|entry| (entry.name, (entry.id, entry.is_directory())))
                        .collect()
                })
                .collect();
            for entry in tree_entries(&content, length) {
                let before: Vec<Entry<'_>> = by_name
                    .iter()
                    .filter_map(|base| base.get(entry.name).copied())
                    .collect();
                let is_directory = entry.is_directory();
                if entry.is_submodule() || before.contains(&(entry.id, is_directory)) {
                    continue;
                }
                let Ok(child) = ObjectId::try_from(entry.id) else {
                    return Ok(Some(id));
                };
                if is_directory {
                    let before = before.iter().filter(|(_, is_directory)| *is_directory);
                    let before = before.flat_map(|(id, _)| ObjectId::try_from(*id));
                    places.push((child, before.collect()));
                } else if self.seen.blobs.insert(child)
                    && !self.is_there(&child, ObjectKind::Blob)?
                {
                    return Ok(Some(child));
                }
            }
        }
        Ok(None)
    }

    /// The content of a tree; none if it is missing, or no tree.
    fn tree(&self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let kind = self.store.find(id, &mut content).map_err(from_odb)?;
        Ok((kind == Some(ObjectKind::Tree)).then_some(content))
    }

    /// Whether it has come, or is in a tree of the boundary: a tree or a blob.
    fn is_there(&mut self, id: &ObjectId, kind: ObjectKind) -> Result<bool> {
        if let Some(header) = self.arrived.header(id).map_err(from_odb)? {
            return Ok(header.kind == kind);
        }
        let old = match self.old.take() {
            Some(old) => old,
            None => self.all_of_boundary()?,
        };
        let old = self.old.insert(old);
        Ok(match kind {
            ObjectKind::Tree => old.trees.contains(id),
            _ => old.blobs.contains(id),
        })
    }

    fn all_of_boundary(&self) -> Result<Contained> {
        let (mut all, mut left) = (Contained::default(), Vec::new());
        let (mut buffer, length) = (Vec::new(), self.store.kind().len_in_bytes());
        for commit in &self.boundary {
            left.push(links_in(self.store, commit, &mut buffer)?.tree);
        }
        while let Some(id) = left.pop() {
            if !all.trees.insert(id) {
                continue;
            }
            for entry in tree_entries(&self.tree(&id)?.unwrap_or_default(), length) {
                if let Ok(child) = ObjectId::try_from(entry.id) {
                    if entry.is_directory() {
                        left.push(child);
                    } else if !entry.is_submodule() {
                        all.blobs.insert(child);
                    }
                }
            }
        }
        Ok(all)
    }
}
