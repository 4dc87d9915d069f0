//! Finds the missing object that Git would report, after a check has found that an object is
//! missing.

use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::fmt;

use bstr::BString;
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_odb::Store;

use super::connectivity::Cuts;
use super::negotiate::NegotiationHistory;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Result};
use pronto_object::{TagRef, TreeEntries};

/// An object that is missing after a fetch. `Display` writes the lines of `git rev-list`, with their
/// prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// The target of this local ref, or its value.
    Reference(BString),
    /// The target of a ref or of a tag.
    Tip(ObjectId),
    /// A parent of a commit.
    Parent {
        /// The commit.
        commit: ObjectId,
        /// The missing parent.
        parent: ObjectId,
    },
    /// A tree.
    Tree(ObjectId),
    /// A blob.
    Blob(ObjectId),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Reference(name) => write!(f, "fatal: bad object {name}"),
            Absent::Tip(id) => write!(f, "fatal: bad object {id}"),
            Absent::Parent { commit, parent } => write!(
                f,
                "error: Could not read {parent}\n\
                 fatal: Failed to traverse parents of commit {commit}"
            ),
            Absent::Tree(id) => write!(f, "fatal: bad tree object {id}"),
            Absent::Blob(id) => write!(f, "fatal: missing blob object '{id}'"),
        }
    }
}

impl std::error::Error for Absent {}

/// The source and the objects of an incomplete fetch.
pub struct FetchedTips<'a> {
    /// The name of the remote, for the message.
    pub source: &'a str,
    /// The store with the existing and the received objects.
    pub store: &'a Store,
    /// The objects that were fetched.
    pub tips: &'a [ObjectId],
    /// The tips from before the fetch, whose reachable objects all exist.
    pub known: &'a [ObjectId],
    /// The shallow boundaries before and after the fetch.
    pub cuts: Cuts<'a>,
}

/// Returns the error for an incomplete fetch, with the [`Absent`] object as its cause. Callers have
/// found that an object is missing; this function searches for the one that Git would report.
///
/// Costs reading all commits of `known`, and all new commits, trees and tags. Keeps their ids in
/// memory.
///
/// # Errors
/// Fails if an existing object cannot be read, or the search is interrupted.
pub fn incomplete(fetched: &FetchedTips<'_>, watch: &Watch<'_>) -> Result<Error> {
    let FetchedTips {
        source,
        store,
        tips,
        known,
        cuts,
    } = *fetched;
    let message = format!("{source} did not send all necessary objects");
    let error = Error::new(ErrorKind::Incomplete, message);
    let mut search = AbsentObjects {
        store,
        watch,
        history: NegotiationHistory::new(store, cuts.new),
        content: Vec::new(),
    };
    Ok(match search.run(tips, known, cuts.old)? {
        Some(absent) => error.because(absent),
        None => error,
    })
}

struct AbsentObjects<'a> {
    store: &'a Store,
    watch: &'a Watch<'a>,
    history: NegotiationHistory<'a>,
    content: Vec<u8>,
}

impl AbsentObjects<'_> {
    fn check(&self) -> Result<()> {
        self.watch.interrupt().check().map_err(crate::interrupted)
    }

    fn run(
        &mut self,
        tips: &[ObjectId],
        known: &[ObjectId],
        old_cut: &BTreeSet<ObjectId>,
    ) -> Result<Option<Absent>> {
        for tip in tips {
            if !self.store.contains(tip).map_err(from_odb)? {
                return Ok(Some(Absent::Tip(*tip)));
            }
        }
        let (mut commits, mut trees) = (Vec::new(), Vec::new());
        for tip in tips {
            self.check()?;
            if let Some(absent) = self.peel(*tip, &mut commits, &mut trees)? {
                return Ok(Some(absent));
            }
        }
        let known = self.ancestors(known, old_cut)?;
        if let Some(absent) = self.walk(&commits, &known, &mut trees)? {
            return Ok(Some(absent));
        }
        let mut seen = HashSet::new();
        for tree in trees {
            if let Some(absent) = self.tree(tree, &mut seen)? {
                return Ok(Some(absent));
            }
        }
        Ok(None)
    }

    /// Peels the tags from `id` on, and adds the resulting commit or tree to `commits` or `trees`.
    fn peel(
        &mut self,
        mut id: ObjectId,
        commits: &mut Vec<ObjectId>,
        trees: &mut Vec<ObjectId>,
    ) -> Result<Option<Absent>> {
        let mut seen = HashSet::new();
        while seen.insert(id) {
            match self.store.find(&id, &mut self.content).map_err(from_odb)? {
                None => return Ok(Some(Absent::Tip(id))),
                Some(ObjectKind::Commit) => commits.push(id),
                Some(ObjectKind::Tree) => trees.push(id),
                Some(ObjectKind::Blob) => {}
                Some(ObjectKind::Tag) => match TagRef::new(&self.content).target() {
                    Some(target) => id = target,
                    None => return Ok(Some(Absent::Tip(id))),
                },
            }
        }
        Ok(None)
    }

    /// Returns all ancestors of `tips` that the store has.
    fn ancestors(
        &mut self,
        tips: &[ObjectId],
        cut: &BTreeSet<ObjectId>,
    ) -> Result<HashSet<ObjectId>> {
        let (mut found, mut left) = (HashSet::new(), Vec::new());
        for tip in tips {
            left.extend(self.history.peel(tip).map_err(from_odb)?);
        }
        while let Some(id) = left.pop() {
            self.check()?;
            if !found.insert(id) || cut.contains(&id) {
                continue;
            }
            let links = self.history.links(&id).map_err(from_odb)?;
            left.extend(links.into_iter().flat_map(|links| links.parents));
        }
        Ok(found)
    }

    /// Searches for a missing parent, in the newest commits first. Adds the trees of all commits to
    /// `trees`.
    fn walk(
        &mut self,
        tips: &[ObjectId],
        known: &HashSet<ObjectId>,
        trees: &mut Vec<ObjectId>,
    ) -> Result<Option<Absent>> {
        let (mut seen, mut queue) = (HashSet::new(), BinaryHeap::new());
        for tip in tips {
            if let Some(links) = self.history.links(tip).map_err(from_odb)?
                && !known.contains(tip)
                && seen.insert(*tip)
            {
                queue.push((links.time, *tip));
            }
        }
        while let Some((_, commit)) = queue.pop() {
            self.check()?;
            let Some(links) = self.history.links(&commit).map_err(from_odb)? else {
                continue;
            };
            trees.push(links.tree);
            for parent in links.parents {
                if known.contains(&parent) || !seen.insert(parent) {
                    continue;
                }
                match self.history.links(&parent).map_err(from_odb)? {
                    Some(links) => queue.push((links.time, parent)),
                    None => return Ok(Some(Absent::Parent { commit, parent })),
                }
            }
        }
        Ok(None)
    }

    /// Searches for a missing object in the tree `id`, in the order of its entries.
    fn tree(&mut self, id: ObjectId, seen: &mut HashSet<ObjectId>) -> Result<Option<Absent>> {
        let length = self.store.kind().len_in_bytes();
        let mut left = vec![(id, true)];
        while let Some((id, is_tree)) = left.pop() {
            self.check()?;
            if !seen.insert(id) {
                continue;
            }
            if !is_tree {
                match self.store.contains(&id).map_err(from_odb)? {
                    true => continue,
                    false => return Ok(Some(Absent::Blob(id))),
                }
            }
            let found = self.store.find(&id, &mut self.content).map_err(from_odb)?;
            if found != Some(ObjectKind::Tree) {
                return Ok(Some(Absent::Tree(id)));
            }
            let start = left.len();
            for entry in TreeEntries::new(&self.content, length) {
                if let (false, Ok(child)) = (entry.is_submodule(), ObjectId::try_from(entry.id)) {
                    left.push((child, entry.is_directory()));
                }
            }
            left[start..].reverse();
        }
        Ok(None)
    }
}
