//! The local commits, for the negotiation and for checks.

use std::collections::BTreeSet;

use bstr::ByteSlice;
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::commit_graph::{CommitGraph, Position};
use pronto_wire::ErrorKind as WireKind;
use pronto_wire::negotiate::{Commit, Commits};

use crate::revision::{CommitLinks, parse_commit};

/// Reads commits from a store. Parents beyond a cut of the history are not seen.
pub(crate) struct History<'a> {
    store: &'a Store,
    shallow: &'a BTreeSet<ObjectId>,
    graph: Option<&'a CommitGraph>,
    positions: Vec<Position>,
    buffer: Vec<u8>,
}

impl<'a> History<'a> {
    pub(crate) fn new(store: &'a Store, shallow: &'a BTreeSet<ObjectId>) -> Self {
        History {
            store,
            shallow,
            graph: None,
            positions: Vec::new(),
            buffer: Vec::new(),
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
        let mut links = parse_commit(&self.buffer);
        if let Some(links) = &mut links
            && self.shallow.contains(id)
        {
            links.parents.clear();
        }
        Ok(links)
    }

    /// The commit that `id` is or leads to through tags; `None` if it is something else.
    pub(crate) fn peel(&mut self, id: &oid) -> Result<Option<ObjectId>, pronto_odb::Error> {
        let mut id = id.to_owned();
        for _ in 0..MAX_TAGS {
            match self.store.find(&id, &mut self.buffer)? {
                Some(ObjectKind::Commit) => return Ok(Some(id)),
                Some(ObjectKind::Tag) => match parse_tag(&self.buffer) {
                    Some(target) => id = target,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
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

/// What a tag points to.
pub(crate) fn parse_tag(content: &[u8]) -> Option<ObjectId> {
    ObjectId::from_hex(content.lines().next()?.strip_prefix(b"object ")?).ok()
}

/// The entries of a tree: whether it is a directory, and its id. Ends early at a broken one.
pub(crate) fn tree_entries(content: &[u8], id_length: usize) -> TreeEntries<'_> {
    TreeEntries { content, id_length }
}

/// See [`tree_entries`].
pub(crate) struct TreeEntries<'a> {
    content: &'a [u8],
    id_length: usize,
}

/// One entry of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeEntry<'a> {
    pub(crate) mode: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) id: &'a [u8],
}

impl TreeEntry<'_> {
    /// How many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        self.mode.len() + self.name.len() + self.id.len() + 2
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.mode, b"40000" | b"040000")
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == b"160000"
    }
}

impl<'a> Iterator for TreeEntries<'a> {
    type Item = TreeEntry<'a>;

    fn next(&mut self) -> Option<TreeEntry<'a>> {
        let space = self.content.iter().position(|&byte| byte == b' ')?;
        let (mode, rest) = (&self.content[..space], &self.content[space + 1..]);
        let end = rest.find_byte(0)?;
        let id = rest.get(end + 1..end + 1 + self.id_length)?;
        self.content = &rest[end + 1 + self.id_length..];
        let name = &rest[..end];
        Some(TreeEntry { mode, name, id })
    }
}
