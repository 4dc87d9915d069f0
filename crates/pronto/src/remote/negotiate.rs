//! The commits that are here, for the negotiation and for checks.

use std::collections::{BTreeSet, BinaryHeap, HashMap};

use bstr::ByteSlice;
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_odb::Store;
use pronto_wire::ErrorKind as WireKind;
use pronto_wire::negotiate::{Commit, Commits};

/// Reads commits from a store. Parents beyond a cut of the history are not seen.
pub(crate) struct History<'a> {
    store: &'a Store,
    shallow: &'a BTreeSet<ObjectId>,
    buffer: Vec<u8>,
}

/// The links of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitLinks {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) time: i64,
}

impl<'a> History<'a> {
    pub(crate) fn new(store: &'a Store, shallow: &'a BTreeSet<ObjectId>) -> Self {
        History {
            store,
            shallow,
            buffer: Vec::new(),
        }
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

impl Commits for History<'_> {
    fn commit(&mut self, id: &oid) -> Result<Option<Commit>, pronto_wire::Error> {
        let links = self
            .links(id)
            .map_err(|error| error.map_kind(|_| WireKind::Local))?;
        Ok(links.map(|links| Commit {
            time: links.time,
            parents: links.parents,
        }))
    }
}

/// Whether `ancestor` can be reached from `descendant`. Walks from both, newest first, until
/// nothing is left that could still tell.
pub(crate) fn is_ancestor(
    history: &mut History<'_>,
    ancestor: &oid,
    descendant: &oid,
) -> Result<bool, pronto_odb::Error> {
    const ANCESTOR: u8 = 1;
    const DESCENDANT: u8 = 2;
    const STALE: u8 = 4;
    if ancestor == descendant {
        return Ok(true);
    }
    let mut flags: HashMap<ObjectId, u8> = HashMap::new();
    let mut queue = BinaryHeap::new();
    for (id, flag) in [(ancestor, ANCESTOR), (descendant, DESCENDANT)] {
        if let Some(links) = history.links(id)? {
            flags.insert(id.to_owned(), flag);
            queue.push((links.time, id.to_owned(), links.parents));
        }
    }
    let is_fresh = |flags: &HashMap<ObjectId, u8>, id: &ObjectId| flags[id] & STALE == 0;
    while queue.iter().any(|(_, id, _)| is_fresh(&flags, id)) {
        let Some((_, id, parents)) = queue.pop() else {
            break;
        };
        let mut passed = flags[&id];
        if passed & (ANCESTOR | DESCENDANT) == ANCESTOR | DESCENDANT {
            if id == ancestor {
                return Ok(true);
            }
            passed |= STALE;
        }
        for parent in parents {
            let known = flags.entry(parent).or_default();
            if *known & passed == passed {
                continue;
            }
            *known |= passed;
            if let Some(links) = history.links(&parent)? {
                queue.push((links.time, parent, links.parents));
            }
        }
    }
    Ok(false)
}

/// Reads the lines of a commit up to the committer.
pub(crate) fn parse_commit(content: &[u8]) -> Option<CommitLinks> {
    let mut lines = content.lines();
    let tree = ObjectId::from_hex(lines.next()?.strip_prefix(b"tree ")?).ok()?;
    let mut parents = Vec::new();
    for line in lines {
        if let Some(parent) = line.strip_prefix(b"parent ") {
            parents.push(ObjectId::from_hex(parent).ok()?);
        } else if let Some(committer) = line.strip_prefix(b"committer ") {
            let time = committer
                .rsplit_once_str("> ")
                .and_then(|(_, time)| time.fields().next()?.to_str().ok()?.parse().ok());
            let time = time.unwrap_or(0);
            return Some(CommitLinks {
                tree,
                parents,
                time,
            });
        } else if line.is_empty() {
            break;
        }
    }
    Some(CommitLinks {
        tree,
        parents,
        time: 0,
    })
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
