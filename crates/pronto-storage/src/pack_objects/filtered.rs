//! Selects trees and blobs of commits through an object filter.
//!
//! An object is selected if all rules of the filter permit it at any of its paths. Without rules about
//! paths and depths each tree is visited once. With a rule about depths it is visited again at a
//! smaller depth, and with a rule about paths once for each path.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_object::TreeEntries;
use pronto_odb::Bitmapped;
use pronto_pack::bitmap::name_hash;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Repository, Result};
use pronto_worktree::sparse::Sparse;

use super::{
    MissingObjects, ObjectFilter, ObjectSelection, Select, SelectedObjects, SentCommit,
    select_by_bitmaps,
};

/// The wants and haves of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverTips<'a> {
    /// The objects that the receiver wants.
    pub wants: &'a [ObjectId],
    /// The objects that the receiver has. Missing objects are ignored.
    pub haves: &'a [ObjectId],
}

/// Does the same as [`select`](super::select()), but omits objects by `filter` (`--filter`). Objects in
/// `tips.wants` are never omitted.
///
/// # Errors
/// As for [`select`](super::select()), and with [`ErrorKind::Object`] if `filter` names a missing blob.
pub fn select_filtered(
    repository: &Repository,
    tips: ReceiverTips<'_>,
    filter: &ObjectFilter,
    select: &Select,
    watch: &Watch<'_>,
) -> Result<SelectedObjects> {
    let rules = FilterRules::of(repository, filter)?;
    let meter = watch.progress().begin("Enumerating objects", None);
    let mut named: HashSet<ObjectId> = tips.wants.iter().copied().collect();
    for id in tips.wants {
        named.extend(repository.peel_tag(*id)?);
    }
    let mut walk = ObjectSelection::new(repository, select, watch, meter)?;
    if select.bitmaps
        && select.missing == MissingObjects::Fail
        && rules.ignore_places()
        && let Some(bitmaps) = repository.usable_bitmaps(&walk.store)?
    {
        let select = Select {
            blocks: select.blocks && rules.size_limit.is_none(),
            // A partial clone lacks the objects that it filtered.
            thin: false,
            ..*select
        };
        walk.selection = select_by_bitmaps(repository, tips, &bitmaps, &select, watch)?;
        walk.retain(&rules, &named, &bitmaps)?;
        walk.meter.add(walk.selection.len() as u64);
        return walk.end();
    }
    walk.named = named;
    walk.takes_commits = rules.lets_through(ObjectKind::Commit);
    let (commits, trees) = walk.begin(tips)?;
    walk.filtered_trees(&commits, trees, &rules)?;
    walk.end()
}

/// A filter with the data that it needs.
struct FilterRules {
    no_blobs: bool,
    size_limit: Option<u64>,
    depth_limit: Option<u64>,
    kinds: Vec<ObjectKind>,
    sparse: Vec<Sparse>,
    digests: RandomState,
}

impl FilterRules {
    /// Reads the blobs that `filter` names.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object is missing or is not a blob.
    fn of(repository: &Repository, filter: &ObjectFilter) -> Result<FilterRules> {
        let mut rules = FilterRules {
            no_blobs: false,
            size_limit: None,
            depth_limit: None,
            kinds: Vec::new(),
            sparse: Vec::new(),
            digests: RandomState::new(),
        };
        rules.add(repository, filter)?;
        Ok(rules)
    }

    fn add(&mut self, repository: &Repository, filter: &ObjectFilter) -> Result<()> {
        let least = |limit: Option<u64>, new: u64| Some(limit.map_or(new, |old| old.min(new)));
        match filter {
            ObjectFilter::BlobNone => self.no_blobs = true,
            ObjectFilter::BlobLimit(bytes) => self.size_limit = least(self.size_limit, *bytes),
            ObjectFilter::TreeDepth(depth) => self.depth_limit = least(self.depth_limit, *depth),
            ObjectFilter::ObjectType(kind) => self.kinds.push(*kind),
            ObjectFilter::SparseOid(name) => self.sparse.push(patterns(repository, name)?),
            ObjectFilter::Combine(parts) => {
                return (parts.iter()).try_for_each(|part| self.add(repository, part));
            }
        }
        Ok(())
    }

    /// Returns whether objects of type `kind` pass.
    fn lets_through(&self, kind: ObjectKind) -> bool {
        self.kinds.iter().all(|wanted| *wanted == kind)
    }

    /// Returns whether the path and depth of an object do not matter: no rule depends on them, or no
    /// object below commits passes.
    fn ignore_places(&self) -> bool {
        self.sparse.is_empty() && matches!(self.depth_limit, None | Some(0))
    }

    fn is_within(&self, depth: u64) -> bool {
        self.depth_limit.is_none_or(|limit| depth < limit)
    }

    fn takes_tree(&self, depth: u64) -> bool {
        self.is_within(depth) && self.lets_through(ObjectKind::Tree)
    }

    /// Returns whether any object below a tree with entries at `depth` may pass.
    fn goes_below(&self, depth: u64) -> bool {
        let trees = self.lets_through(ObjectKind::Tree);
        let blobs = !self.no_blobs && self.lets_through(ObjectKind::Blob);
        self.is_within(depth) && (trees || blobs)
    }

    /// Returns whether blobs at this depth may pass, except for their size.
    fn takes_blobs(&self, depth: u64) -> bool {
        !self.no_blobs && self.is_within(depth) && self.lets_through(ObjectKind::Blob)
    }

    /// Returns a digest of `path`, if the filter depends on paths.
    fn digest(&self, path: &BStr) -> u64 {
        match self.sparse.is_empty() {
            true => 0,
            false => self.digests.hash_one(path),
        }
    }

    fn takes_path(&self, path: &BStr) -> bool {
        self.sparse.iter().all(|sparse| sparse.includes(path))
    }
}

/// Reads the sparse-checkout patterns in the blob `name`.
fn patterns(repository: &Repository, name: &BString) -> Result<Sparse> {
    let unreadable = || {
        let message = format!("unable to access sparse blob in '{name}'");
        Error::new(ErrorKind::Object, message)
    };
    let id = repository.resolve(name).map_err(|_| unreadable())?;
    let mut content = Vec::new();
    let store = repository.objects()?;
    match store.find(&id, &mut content).map_err(from_odb)? {
        Some(ObjectKind::Blob) => {}
        _ => {
            let message = format!("unable to parse sparse filter data in {id}");
            return Err(Error::new(ErrorKind::Object, message));
        }
    }
    let ignores_case = repository.config().bool_or("core.ignorecase", false)?;
    Ok(Sparse::parse(&content, false, ignores_case).0)
}

/// A tree to be visited.
struct FilteredTree {
    tree: ObjectId,
    full: BString,
    /// The hash of the path.
    name: u32,
    /// The hash of the path with a slash at the end, except for the root.
    path: u32,
    depth: u64,
    is_named: bool,
}

/// The visited trees. The key is a tree, and a digest of its path if the filter depends on paths.
type Visited = HashMap<(ObjectId, u64), u64>;

impl ObjectSelection<'_> {
    /// Keeps the selected objects that are `named` or pass `rules`. `bitmaps` gives their types.
    fn retain(
        &mut self,
        rules: &FilterRules,
        named: &HashSet<ObjectId>,
        bitmaps: &Bitmapped,
    ) -> Result<()> {
        let takes_kind = |kind| match kind {
            ObjectKind::Tree => rules.takes_tree(0),
            ObjectKind::Blob => rules.takes_blobs(0),
            kind => rules.lets_through(kind),
        };
        if let Some(block) = &mut self.selection.block {
            block.retain_kinds(takes_kind, named).map_err(from_odb)?;
        }
        let members = std::mem::take(&mut self.selection.members);
        for member in members {
            let id = member.id;
            let passes = named.contains(&id)
                || match self.kind(&id, bitmaps)? {
                    kind if !takes_kind(kind) => false,
                    ObjectKind::Blob => self.is_small(&id, rules.size_limit)?,
                    _ => true,
                };
            if passes {
                self.selection.members.push(member);
            }
        }
        Ok(())
    }

    fn kind(&self, id: &oid, bitmaps: &Bitmapped) -> Result<ObjectKind> {
        if let Some(bit) = bitmaps.bit(id).map_err(from_odb)? {
            let kinds = [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit];
            let is_of = |kind: &ObjectKind| bitmaps.file().of_kind(*kind).contains(bit);
            return Ok(kinds.into_iter().find(is_of).unwrap_or(ObjectKind::Tag));
        }
        let header = self.store.header(id).map_err(from_odb)?;
        let gone = || Error::new(ErrorKind::MissingObject, format!("bad object {id}"));
        header.map(|header| header.kind).ok_or_else(gone)
    }

    /// Selects the objects reachable from the commits, and the other requested objects, if they pass
    /// `rules`.
    fn filtered_trees(
        &mut self,
        commits: &[SentCommit],
        others: Vec<ObjectId>,
        rules: &FilterRules,
    ) -> Result<()> {
        self.hide_edges(commits)?;
        let mut roots = Vec::new();
        let place = |tree: ObjectId, is_named: bool| FilteredTree {
            tree,
            full: BString::default(),
            name: 0,
            path: 0,
            depth: 0,
            is_named,
        };
        for id in others {
            let header = self.store.header(&id).map_err(from_odb)?;
            match header.map(|header| header.kind) {
                Some(ObjectKind::Tree) => roots.push(place(id, true)),
                _ => _ = self.add(&id, 0),
            }
        }
        roots.extend(commits.iter().map(|commit| place(commit.tree, false)));
        let mut visited = Visited::new();
        for root in roots {
            self.check()?;
            let mut stack = vec![root];
            while let Some(place) = stack.pop() {
                self.filtered_tree(&place, rules, &mut visited, &mut stack)?;
            }
        }
        Ok(())
    }

    fn filtered_tree(
        &mut self,
        place: &FilteredTree,
        rules: &FilterRules,
        visited: &mut Visited,
        stack: &mut Vec<FilteredTree>,
    ) -> Result<()> {
        if self.hidden.contains(&place.tree) {
            return Ok(());
        }
        // The filter does not apply to a tree that was requested by id.
        let below = place.depth + u64::from(!place.is_named);
        let key = (place.tree, rules.digest(place.full.as_bstr()));
        let before = visited.get(&key).copied();
        if before.is_some_and(|before| before <= below || rules.depth_limit.is_none()) {
            return Ok(());
        }
        visited.insert(key, below);
        if place.is_named || rules.takes_tree(place.depth) {
            self.add(&place.tree, place.name);
            self.is_kept_whole(&place.tree, place.full.as_bstr())?;
        }
        if !rules.goes_below(below) {
            return Ok(());
        }
        let Some(content) = self.promised_tree(&place.tree)? else {
            return Ok(());
        };
        let first = stack.len();
        let mut full = place.full.clone();
        if !full.is_empty() {
            full.push(b'/');
        }
        let directory_len = full.len();
        for entry in TreeEntries::new(&content, place.tree.kind().len_in_bytes()) {
            let Ok(id) = ObjectId::try_from(entry.id) else {
                continue;
            };
            let hash = name_hash(place.path, entry.name);
            full.truncate(directory_len);
            full.extend_from_slice(entry.name);
            if entry.is_directory() {
                stack.push(FilteredTree {
                    tree: id,
                    full: full.clone(),
                    name: hash,
                    path: name_hash(hash, b"/"),
                    depth: below,
                    is_named: false,
                });
            } else if !entry.is_submodule()
                && rules.takes_blobs(below)
                && !self.seen.contains(&id)
                && rules.takes_path(full.as_bstr())
                && self.is_small(&id, rules.size_limit)?
                && self.add(&id, hash)
            {
                self.is_kept_whole(&id, full.as_bstr())?;
            }
        }
        stack[first..].reverse();
        self.buffer = content;
        Ok(())
    }

    /// Returns whether a blob has less than `limit` bytes. A missing blob passes, because its size is
    /// unknown.
    fn is_small(&self, id: &oid, limit: Option<u64>) -> Result<bool> {
        let Some(limit) = limit else { return Ok(true) };
        let header = self.store.header(id).map_err(from_odb)?;
        Ok(header.is_none_or(|header| header.kind != ObjectKind::Blob || header.size < limit))
    }
}
