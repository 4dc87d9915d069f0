//! Reads local commits for the negotiation and for checks.

use std::collections::BTreeSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::{IdCache, ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::commit_graph::{CommitGraph, GraphPosition};
use pronto_wire::ErrorKind as WireKind;
use pronto_wire::fetch::Nothing;
use pronto_wire::negotiate::{AddTips, CommitInfo, CommitSupplier, Consecutive, Skipping};

use crate::config::Config;
use pronto_object::{CommitLinks, TagRef};

/// Returns the negotiator of `fetch.negotiationAlgorithm`.
pub(crate) fn negotiator<'a>(
    config: &Config,
    commits: NegotiationHistory<'a>,
) -> Box<dyn AddTips + 'a> {
    let named = config.raw("fetch.negotiationalgorithm").unwrap_or_default();
    match named.to_ascii_lowercase().as_slice() {
        b"noop" => Box::new(Nothing),
        b"skipping" => Box::new(Skipping::new(commits)),
        _ => Box::new(Consecutive::new(commits)),
    }
}

/// Reads commits from a store. Parents beyond the shallow boundary are hidden.
pub struct NegotiationHistory<'a> {
    store: &'a Store,
    shallow: &'a BTreeSet<ObjectId>,
    graph: Option<&'a CommitGraph>,
    positions: Vec<GraphPosition>,
    buffer: Vec<u8>,
    /// The cache of peeled commits, because many refs may point to one object.
    peeled: IdCache<ObjectId>,
}

impl<'a> NegotiationHistory<'a> {
    /// Returns the history in `store`, which ends at the shallow commits `shallow`.
    pub fn new(store: &'a Store, shallow: &'a BTreeSet<ObjectId>) -> Self {
        NegotiationHistory {
            store,
            shallow,
            graph: None,
            positions: Vec::new(),
            buffer: Vec::new(),
            peeled: IdCache::default(),
        }
    }

    /// Adds a commit-graph, from which commits are read if it contains them. Does not check whether
    /// these commits exist.
    pub(crate) fn with_graph(mut self, graph: Option<&'a CommitGraph>) -> Self {
        self.graph = graph.filter(|_| self.shallow.is_empty());
        self
    }

    /// Returns the links of the commit `id`; `None` if the object is missing or not a commit.
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

    /// Peels `id` to a commit; `None` if that is not possible.
    ///
    /// # Errors
    /// Fails if an object cannot be read.
    pub fn peel(&mut self, id: &oid) -> Result<Option<ObjectId>, pronto_odb::Error> {
        let (store, buffer) = (self.store, &mut self.buffer);
        // A failed peel may succeed later, and is not cached.
        let ask = || peel(store, id, buffer).map_err(Some)?.ok_or(None);
        match self.peeled.get_or_insert_with(id, ask) {
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

/// The limit for the nesting of tags.
const MAX_TAGS: usize = 64;

impl NegotiationHistory<'_> {
    fn commit_in_graph(&mut self, id: &oid) -> Result<Option<CommitInfo>, pronto_pack::Error> {
        let Some(graph) = self.graph else {
            return Ok(None);
        };
        let Some(position) = graph.find(id)? else {
            return Ok(None);
        };
        let commit = graph.commit_at(position, &mut self.positions)?;
        let parents = self.positions.iter().map(|parent| graph.id_at(*parent));
        Ok(Some(CommitInfo {
            time: i64::try_from(commit.time).unwrap_or(i64::MAX),
            parents: parents.collect::<Result<_, _>>()?,
        }))
    }
}

impl CommitSupplier for NegotiationHistory<'_> {
    fn commit(&mut self, id: &oid) -> Result<Option<CommitInfo>, pronto_wire::Error> {
        let found = self.commit_in_graph(id);
        if let Some(found) = found.map_err(|error| error.map_kind(|_| WireKind::Local))? {
            return Ok(Some(found));
        }
        let links = self
            .links(id)
            .map_err(|error| error.map_kind(|_| WireKind::Local))?;
        Ok(links.map(|links| CommitInfo {
            time: links.time,
            parents: links.parents,
        }))
    }
}
