//! Selects the objects of a pack for a receiver (wants and haves), and reads the configuration of
//! packs.
//!
//! ```no_run
//! # use pronto_io::watch::Watch;
//! # use pronto_repository::Repository;
//! # use pronto_storage::pack_objects::{self, Select};
//! # fn send(repository: &Repository, out: &mut dyn std::io::Write) -> pronto_repository::Result<()> {
//! let watch = Watch::none();
//! let head = repository.resolve("HEAD")?;
//! let parent = repository.resolve("HEAD~1")?;
//! let select = Select { thin: true, ..Select::default() };
//! let selection = pack_objects::select(repository, &[head], &[parent], &select, &watch)?;
//! let options = pack_objects::packing_options(repository)?;
//! pack_objects::send(repository, &selection, &options, out, &watch)?;
//! # Ok(())
//! # }
//! ```

mod filter;
mod filtered;
mod leave_out;
mod linked;
mod listing;
mod promised;
mod sending;
mod tags;
mod tips;
mod trees;
mod whole;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::pool;
use pronto_io::progress::Meter;
use pronto_io::watch::Watch;
use pronto_object::TagRef;
use pronto_odb::packing::{BitmapSubset, Options, PackMember};
use pronto_odb::{Bitmapped, Store};
use pronto_repository::history::reachable::ids;
use pronto_repository::history::{Painting, Until};
use pronto_repository::objects::from_odb;
use pronto_repository::packs::compression;
use pronto_repository::{Error, ErrorKind, Repository, Result};

pub use filter::ObjectFilter;
pub use filtered::{ReceiverTips, select_filtered};
pub(crate) use leave_out::{ExistingPack, known_packs, mark, names, packed};
pub use leave_out::{LeaveOut, leave_out, loose_objects};
pub use listing::{NamedObject, ObjectListing, list};
pub use promised::MissingObjects;
pub use sending::{SentPack, report_totals, send, totals};
pub use tags::include_tags;
pub use tips::{include_indexed, ref_tips, reflog_tips};
pub use whole::{KeptWhole, kept_whole};

/// The largest number of the receiver's tips that are tried as delta bases. Git limits them by
/// `pack.window`, too.
const MOST_EDGES: usize = 10;

/// The objects of a pack that is to be written.
#[derive(Clone, Debug, Default)]
pub struct SelectedObjects {
    /// The objects to pack, each once: commits from newest to oldest, then tags, then trees and blobs.
    pub members: Vec<PackMember>,
    /// Objects of the receiver with similar paths, which may be delta bases of a thin pack.
    pub bases: Vec<PackMember>,
    /// The members that must not become deltas or bases of new deltas (attribute `-delta`): see
    /// [`KeptWhole`].
    pub whole: HashSet<ObjectId>,
    /// The objects that were omitted because they are missing: see [`MissingObjects::LeaveOut`].
    pub missing: Vec<ObjectId>,
    /// Missing trees of the receiver, if missing objects are omitted. Members and missing objects may
    /// be reachable from them, although the receiver has these objects.
    pub unknown: Vec<ObjectId>,
    /// Further objects to pack, as bits of bitmaps: see [`Select::blocks`].
    pub block: Option<BitmapSubset>,
    /// The objects that bitmaps list for the receiver of a thin pack.
    pub known: Option<BitmapSubset>,
    /// The pack with the bitmap that selected the members. Objects that a sent pack copies from it are
    /// counted as reused.
    pub bitmapped: Option<PathBuf>,
}

/// Options for selecting objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Use objects of the receiver as delta bases (`--thin`).
    pub thin: bool,
    /// Compare trees only along changed paths (`--sparse`, `pack.useSparse`).
    pub sparse: bool,
    /// Use bitmaps (`--use-bitmap-index`, `pack.useBitmaps`), which makes the selection exact. Without
    /// bitmaps, as in Git, an object that the receiver has only in its older history may be sent again.
    pub bitmaps: bool,
    /// Select only commits that are not packed yet, with all objects reachable from them
    /// (`--unpacked`).
    pub unpacked: bool,
    /// Treat all objects in the trees of the receiver's tips as known. A shallow history requires this
    /// (`--shallow`), so that these tips need not be parents of sent commits.
    pub all_edges: bool,
    /// The treatment of missing objects in a partial clone (`--missing`).
    pub missing: MissingObjects,
    /// Represent large numbers of objects that bitmaps select as bits ([`SelectedObjects::block`]), for packs
    /// that are sent.
    pub blocks: bool,
}

impl Default for Select {
    fn default() -> Self {
        Select {
            thin: false,
            sparse: true,
            bitmaps: true,
            unpacked: false,
            all_edges: false,
            missing: MissingObjects::Fail,
            blocks: false,
        }
    }
}

/// The smallest number of objects that bitmaps select as bits. The objects of smaller packs take part
/// in the search for deltas.
const LEAST_BLOCK: u32 = 16 << 10;

impl SelectedObjects {
    /// Returns the number of objects of the pack.
    pub fn len(&self) -> usize {
        self.members.len() + self.block.as_ref().map_or(0, |block| block.len() as usize)
    }

    /// Returns whether the pack has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the configured options for writing packs: `pack.window`, `pack.depth`, `pack.threads`,
/// `pack.windowMemory`, `pack.deltaCacheSize`, `pack.deltaCacheLimit`, `pack.compression`,
/// `core.compression`, `core.bigFileThreshold`.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not of its type or out of range.
pub fn packing_options(repository: &Repository) -> Result<Options> {
    let config = repository.config();
    let mut options = Options::default();
    let size = |key: &str| -> Result<Option<usize>> {
        let value = config.u64(key)?;
        Ok(value.map(|value| usize::try_from(value).unwrap_or(usize::MAX)))
    };
    let search = &mut options.search;
    if let Some(window) = config.i64("pack.window")? {
        search.window = usize::try_from(window).unwrap_or(0);
    }
    if let Some(depth) = config.i64("pack.depth")? {
        // The largest depth that Git can store.
        search.depth = u32::try_from(depth).unwrap_or(0).min(4095);
    }
    search.threads = match config.i64("pack.threads")? {
        None | Some(0) => pool::cores(),
        Some(threads) => usize::try_from(threads).map_err(|_| {
            let message = format!("invalid number of threads specified ({threads})");
            Error::new(ErrorKind::ConfigValue, message)
        })?,
    };
    if let Some(bytes) = size("pack.windowmemory")? {
        search.window_memory_bytes = bytes;
    }
    if let Some(bytes) = size("pack.deltacachesize")? {
        search.kept_bytes = if bytes == 0 { usize::MAX } else { bytes };
    }
    if let Some(bytes) = size("pack.deltacachelimit")? {
        search.kept_delta_bytes = bytes;
    }
    let level = match compression(config, "pack.compression")? {
        Some(level) => Some(level),
        None => compression(config, "core.compression")?,
    };
    options.level = level.unwrap_or(options.level);
    if let Some(bytes) = config.u64("core.bigfilethreshold")? {
        options.large_bytes = bytes;
    }
    Ok(options)
}

/// Selects the objects that are reachable from `wants` and not from `haves`. Missing objects of `haves`
/// and replacements are ignored.
///
/// Costs reading the commits between both sides, their new trees, and the trees of the boundary commits
/// along the same paths. With bitmaps only history that is newer than the bitmaps is read.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if an object reachable from `wants` is missing or malformed, or
/// with [`ErrorKind::Interrupted`].
pub fn select(
    repository: &Repository,
    wants: &[ObjectId],
    haves: &[ObjectId],
    select: &Select,
    watch: &Watch<'_>,
) -> Result<SelectedObjects> {
    let store = repository.objects()?.without_replacements();
    let meter = watch.progress().begin("Enumerating objects", None);
    if select.bitmaps
        && select.missing == MissingObjects::Fail
        && let Some(bitmaps) = repository.usable_bitmaps(&store)?
    {
        let tips = ReceiverTips { wants, haves };
        let selection = select_by_bitmaps(repository, tips, &bitmaps, select, watch)?;
        meter.add(selection.len() as u64);
        meter.finish();
        return Ok(selection);
    }
    let mut walk = ObjectSelection::new(repository, select, watch, meter)?;
    let (commits, trees) = walk.begin(ReceiverTips { wants, haves })?;
    let is_all = haves.is_empty() && !select.unpacked && select.missing == MissingObjects::Fail;
    let links = match is_all {
        true => walk.store.tree_links(commits.len(), watch.interrupt()),
        false => Ok(None),
    };
    match links.map_err(from_odb)? {
        Some(pack) => walk.linked_trees(&pack, &commits, trees)?,
        None => walk.trees(&commits, trees)?,
    }
    walk.end()
}

fn select_by_bitmaps(
    repository: &Repository,
    tips: ReceiverTips<'_>,
    bitmaps: &Arc<Bitmapped>,
    select: &Select,
    watch: &Watch<'_>,
) -> Result<SelectedObjects> {
    let found = repository.reachable_bits(Some(bitmaps), tips.wants, tips.haves, watch)?;
    let member = |id| PackMember { id, name_hash: 0 };
    let others = found.others.into_iter().map(member);
    let is_thin = select.thin && !found.known.is_empty();
    let known = is_thin.then(|| BitmapSubset::new(bitmaps.clone(), found.known));
    if select.blocks && found.bits.count() >= LEAST_BLOCK {
        return Ok(SelectedObjects {
            members: others.collect(),
            block: Some(BitmapSubset::new(bitmaps.clone(), found.bits)),
            known,
            ..SelectedObjects::default()
        });
    }
    let packed = ids(bitmaps, &found.bits)?.into_iter().map(member);
    Ok(SelectedObjects {
        members: packed.chain(others).collect(),
        bitmapped: bitmaps.reused_pack().map_err(from_odb)?,
        known,
        ..SelectedObjects::default()
    })
}

struct ObjectSelection<'a> {
    repository: &'a Repository,
    store: Store,
    select: Select,
    watch: &'a Watch<'a>,
    meter: Meter,
    /// The objects that a filter must not omit, because they were requested by id.
    named: HashSet<ObjectId>,
    /// Whether commits are selected that were not requested by id.
    takes_commits: bool,
    /// The selected objects.
    seen: HashSet<ObjectId>,
    /// The visited objects of the receiver.
    hidden: HashSet<ObjectId>,
    selection: SelectedObjects,
    kept_whole: KeptWhole,
    buffer: Vec<u8>,
}

/// A selected commit.
struct SentCommit {
    tree: ObjectId,
    /// The trees of its parents that the receiver has.
    known: Vec<ObjectId>,
}

impl<'a> ObjectSelection<'a> {
    fn new(
        repository: &'a Repository,
        select: &Select,
        watch: &'a Watch<'a>,
        meter: Meter,
    ) -> Result<ObjectSelection<'a>> {
        Ok(ObjectSelection {
            repository,
            store: repository.objects()?.without_replacements(),
            select: *select,
            watch,
            meter,
            named: HashSet::new(),
            takes_commits: true,
            seen: HashSet::new(),
            hidden: HashSet::new(),
            selection: SelectedObjects::default(),
            kept_whole: kept_whole(repository)?,
            buffer: Vec::new(),
        })
    }

    /// Selects the commits. Returns them, and the other objects at the tips.
    fn begin(&mut self, tips: ReceiverTips<'_>) -> Result<(Vec<SentCommit>, Vec<ObjectId>)> {
        let mut trees = Vec::new();
        let wanted = self.tips(tips.wants, &mut trees, false)?;
        let mut known_trees = Vec::new();
        let known = self.tips(tips.haves, &mut known_trees, true)?;
        for tree in known_trees {
            self.hide_tree(tree)?;
        }
        if self.select.all_edges {
            for commit in &known {
                if let Some(tree) = self.known_tree(commit)? {
                    self.hide_tree(tree)?;
                }
            }
        }
        Ok((self.commits(&wanted, &known)?, trees))
    }

    /// Moves missing objects to the missing ones, and returns the selection.
    fn end(mut self) -> Result<SelectedObjects> {
        self.leave_out_missing()?;
        self.meter.finish();
        Ok(self.selection)
    }

    fn check(&self) -> Result<()> {
        let interrupted = |reason: pronto_io::interrupt::Interrupted| {
            Error::new(ErrorKind::Interrupted, reason.to_string())
        };
        self.watch.interrupt().check().map_err(interrupted)
    }

    fn add(&mut self, id: &oid, name_hash: u32) -> bool {
        let id = id.to_owned();
        let is_new = !self.hidden.contains(&id) && self.seen.insert(id);
        if is_new {
            self.meter.add(1);
            self.selection.members.push(PackMember { id, name_hash });
        }
        is_new
    }

    /// Returns the commits among `ids`, and those to which tags peel. Trees are added to `trees`; blobs
    /// and tags are selected or hidden at once.
    fn tips(
        &mut self,
        ids: &[ObjectId],
        trees: &mut Vec<ObjectId>,
        is_known: bool,
    ) -> Result<Vec<ObjectId>> {
        let mut commits = Vec::new();
        for tip in ids {
            let mut id = *tip;
            loop {
                let header = self.store.header(&id).map_err(from_odb)?;
                match header.map(|header| header.kind) {
                    None if is_known => {}
                    None if self.leaves_out() => self.selection.missing.push(id),
                    None => {
                        let message = format!("bad object {id}");
                        return Err(Error::new(ErrorKind::Object, message));
                    }
                    Some(ObjectKind::Commit) => commits.push(id),
                    Some(ObjectKind::Tree) => trees.push(id),
                    Some(ObjectKind::Blob) if is_known => _ = self.hidden.insert(id),
                    Some(ObjectKind::Blob) => trees.push(id),
                    Some(ObjectKind::Tag) => {
                        if is_known {
                            self.hidden.insert(id);
                        } else {
                            trees.push(id);
                        }
                        let found = self.store.find(&id, &mut self.buffer);
                        found.map_err(from_odb)?;
                        let malformed =
                            || Error::new(ErrorKind::Corrupt, "malformed tag").on_object(id);
                        match TagRef::new(&self.buffer).target() {
                            Some(target) => id = target,
                            None if is_known => break,
                            None => return Err(malformed()),
                        }
                        continue;
                    }
                }
                break;
            }
        }
        Ok(commits)
    }

    /// Selects the commits that are reachable from `wanted` and not from `known`.
    fn commits(&mut self, wanted: &[ObjectId], known: &[ObjectId]) -> Result<Vec<SentCommit>> {
        // Missing objects of the left side are reported later.
        let mut painting = Painting::lenient(self.repository, Until::LeftKnown)?;
        for id in wanted {
            painting.left(id)?;
        }
        for id in known {
            painting.right(id)?;
        }
        painting.run(self.watch)?;
        let mut ids = painting.all_left()?;
        if self.select.unpacked {
            let mut packed = packed(self.repository, &ids)?.into_iter();
            ids.retain(|_| !packed.next().unwrap_or(false));
        }
        for id in &ids {
            match self.takes_commits || self.named.contains(id) {
                true => _ = self.add(id, 0),
                false => _ = self.seen.insert(*id),
            }
        }
        let mut commits = Vec::with_capacity(ids.len());
        for id in &ids {
            self.check()?;
            if self.is_left_out(id)? {
                continue;
            }
            let links = self.repository.commit_links(id, &mut self.buffer)?;
            let mut trees = Vec::new();
            for parent in links.parents {
                // Objects reachable from a packed commit need not be packed.
                if self.select.unpacked || self.seen.contains(&parent) {
                    continue;
                }
                // The receiver has the parent, which need not exist in this repository.
                if let Some(tree) = self.known_tree(&parent)? {
                    trees.push(tree);
                }
            }
            commits.push(SentCommit {
                tree: links.tree,
                known: trees,
            });
        }
        Ok(commits)
    }

    /// Returns the tree of a commit of the receiver, if commit and tree exist in this repository.
    fn known_tree(&mut self, commit: &oid) -> Result<Option<ObjectId>> {
        let links = self.repository.commit_links(commit, &mut self.buffer);
        let is_here = |id: &oid| self.store.contains(id).map_err(from_odb);
        match links {
            Ok(links) if is_here(&links.tree)? => Ok(Some(links.tree)),
            Ok(links) => {
                self.note_unknown(&links.tree);
                Ok(None)
            }
            Err(_) if !is_here(commit)? => Ok(None),
            Err(error) => Err(error),
        }
    }
}
