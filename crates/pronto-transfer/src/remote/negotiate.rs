//! The local commits, for the negotiation and for checks.

use std::collections::BTreeSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::{IdCache, ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::commit_graph::{CommitGraph, Position};
use pronto_wire::ErrorKind as WireKind;
use pronto_wire::fetch::Nothing;
use pronto_wire::negotiate::{Commit, Commits, Consecutive, Skipping, Tips};

use crate::config::Config;
use pronto_object::{CommitLinks, TagRef};

/// Returns the negotiator that `fetch.negotiationAlgorithm` chooses.
pub(crate) fn negotiator<'a>(config: &Config, commits: History<'a>) -> Box<dyn Tips + 'a> {
    let named = config.raw("fetch.negotiationalgorithm").unwrap_or_default();
    match named.to_ascii_lowercase().as_slice() {
        b"noop" => Box::new(Nothing),
        b"skipping" => Box::new(Skipping::new(commits)),
        _ => Box::new(Consecutive::new(commits)),
    }
}

/// Reads commits from a store. Parents beyond a cut of the history are not seen.
pub struct History<'a> {
    store: &'a Store,
    shallow: &'a BTreeSet<ObjectId>,
    graph: Option<&'a CommitGraph>,
    positions: Vec<Position>,
    buffer: Vec<u8>,
    /// The commits that ids lead to: many refs may lead to one.
    peeled: IdCache<ObjectId>,
}

impl<'a> History<'a> {
    /// Returns the history in `store`, which ends at the commits of `shallow`.
    pub fn new(store: &'a Store, shallow: &'a BTreeSet<ObjectId>) -> Self {
        History {
            store,
            shallow,
            graph: None,
            positions: Vec::new(),
            buffer: Vec::new(),
            peeled: IdCache::default(),
        }
    }

    /// Does the same, with commits from `graph` if it has them. Does not check whether these
    /// commits exist.
    pub(crate) fn with_graph(mut self, graph: Option<&'a CommitGraph>) -> Self {
        self.graph = graph.filter(|_| self.shallow.is_empty());
        self
    }

    /// The links of commit `id`; `None` if there is no such object or it is no commit.
    pub(crate) fn links(&mut self, id: &oid) -> Result<Option<CommitLinks>, pronto_odb::Error> {
        let found = self.store.find(id, &mut self.buffer)?;
        if found != Some(ObjectKind::Commit) {
            return Ok(None);
        }
        let mut links = CommitLinks::parse(&self.buffer);
        if let Some(links) = &mut links
            && self.shallow.contains(id)
        {
            links.parents.clear();
        }
        Ok(links)
    }

    /// The commit that `id` is or leads to through tags; `None` if it is something else.
    ///
    /// # Errors
    /// An object cannot be read.
    pub fn peel(&mut self, id: &oid) -> Result<Option<ObjectId>, pronto_odb::Error> {
        let (store, buffer) = (self.store, &mut self.buffer);
        // What leads to no commit now may do so later, and is not kept.
        let ask = || peel(store, id, buffer).map_err(Some)?.ok_or(None);
        match self.peeled.get_or_ask(id, ask) {
            Ok(commit) => Ok(Some(commit)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

fn peel(
    store: &Store,
    id: &oid,
    buffer: &mut Vec<u8>,
) -> Result<Option<ObjectId>, pronto_odb::Error> {
    let mut id = id.to_owned();
    for _ in 0..MAX_TAGS {
        match store.find(&id, buffer)? {
            Some(ObjectKind::Commit) => return Ok(Some(id)),
            Some(ObjectKind::Tag) => match TagRef::new(buffer).target() {
                Some(target) => id = target,
                None => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Tags of tags of tags are followed only so far.
const MAX_TAGS: usize = 64;

impl History<'_> {
    fn commit_in_graph(&mut self, id: &oid) -> Result<Option<Commit>, pronto_pack::Error> {
        let Some(graph) = self.graph else {
            return Ok(None);
        };
        let Some(position) = graph.find(id)? else {
            return Ok(None);
        };
        let commit = graph.commit_at(position, &mut self.positions)?;
        let parents = self.positions.iter().map(|parent| graph.id_at(*parent));
        Ok(Some(Commit {
            time: i64::try_from(commit.time).unwrap_or(i64::MAX),
            parents: parents.collect::<Result<_, _>>()?,
        }))
    }
}

impl Commits for History<'_> {
    fn commit(&mut self, id: &oid) -> Result<Option<Commit>, pronto_wire::Error> {
        let found = self.commit_in_graph(id);
        if let Some(found) = found.map_err(|error| error.map_kind(|_| WireKind::Local))? {
            return Ok(Some(found));
        }
        let links = self
            .links(id)
            .map_err(|error| error.map_kind(|_| WireKind::Local))?;
        Ok(links.map(|links| Commit {
            time: links.time,
            parents: links.parents,
        }))
    }
}
