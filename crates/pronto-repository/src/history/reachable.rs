//! The objects that are reachable from some tips and not from others (`git rev-list --objects`).

use std::collections::HashSet;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_odb::{Bitmapped, Store};
use pronto_pack::bitmap::Bits;

use crate::objects::from_odb;
use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::{TagRef, TreeEntries};

/// The reachable objects, each listed once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    /// The objects that bitmaps cover, in the order of their offsets in the pack or the
    /// multi-pack-index.
    pub packed: Vec<ObjectId>,
    /// The objects that no bitmap covers, in the order of the walk.
    pub others: Vec<ObjectId>,
}

/// The reachable objects as bits of the bitmaps, and as ids where there is no bit.
pub struct ReachableBits {
    /// The objects that bitmaps cover.
    pub bits: Bits,
    /// The objects that no bitmap covers, in the order of the walk.
    pub others: Vec<ObjectId>,
    /// The objects that are reachable from the haves and that bitmaps cover.
    pub known: Bits,
}

/// Returns the ids of the objects in `bits`, in the order of the bits.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if a pack index cannot be read.
pub fn ids(bitmaps: &Bitmapped, bits: &Bits) -> Result<Vec<ObjectId>> {
    bits.iter()
        .map(|bit| bitmaps.id(bit).map_err(from_odb))
        .collect()
}

impl Repository {
    /// Returns the objects that are reachable from `wants` and not from `haves`, including the wanted
    /// objects. A commit leads to its parents and its tree; submodule entries are not followed. Missing
    /// objects that are reachable from `haves` are ignored.
    ///
    /// Bitmaps are used if they exist, `pack.useBitmaps` permits, and the history has no replacements
    /// or grafts. Only the history that is newer than the bitmaps is walked then. Without bitmaps every
    /// commit and tree is read.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object reachable from `wants` is missing or malformed, or
    /// with [`ErrorKind::Interrupted`].
    pub fn reachable(
        &self,
        wants: &[ObjectId],
        haves: &[ObjectId],
        watch: &Watch<'_>,
    ) -> Result<Reachable> {
        let bitmaps = self.usable_bitmaps(self.objects()?)?;
        self.reachable_by(bitmaps.as_deref(), wants, haves, watch)
    }

    /// Does the same as [`reachable`](Self::reachable), with `bitmaps` instead of those of the
    /// repository. Without bitmaps every commit and tree is read.
    ///
    /// # Errors
    /// As for [`reachable`](Self::reachable).
    pub fn reachable_by(
        &self,
        bitmaps: Option<&Bitmapped>,
        wants: &[ObjectId],
        haves: &[ObjectId],
        watch: &Watch<'_>,
    ) -> Result<Reachable> {
        let found = self.reachable_bits(bitmaps, wants, haves, watch)?;
        let packed = bitmaps
            .map(|bitmaps| ids(bitmaps, &found.bits))
            .transpose()?;
        Ok(Reachable {
            packed: packed.unwrap_or_default(),
            others: found.others,
        })
    }

    /// Returns the objects that are reachable from `wants` and not from `haves`: as bits where bitmaps
    /// cover them, as ids otherwise.
    ///
    /// # Errors
    /// As for [`reachable`](Self::reachable).
    pub fn reachable_bits(
        &self,
        bitmaps: Option<&Bitmapped>,
        wants: &[ObjectId],
        haves: &[ObjectId],
        watch: &Watch<'_>,
    ) -> Result<ReachableBits> {
        let known = ReachabilityWalk::new(self, bitmaps, true).run(haves, watch)?;
        let found = ReachabilityWalk::new(self, bitmaps, false).run(wants, watch)?;
        let (mut bits, mut others) = (found.bits, found.order);
        bits.subtract(&known.bits);
        others.retain(|id| !known.others.contains(id));
        let known = known.bits;
        Ok(ReachableBits {
            bits,
            others,
            known,
        })
    }

    /// Returns whether the repository has bitmaps that can answer reachability queries.
    ///
    /// # Errors
    /// As for [`usable_bitmaps`](Self::usable_bitmaps).
    pub fn has_usable_bitmaps(&self) -> Result<bool> {
        Ok(self.usable_bitmaps(self.objects()?)?.is_some())
    }

    /// Opens the bitmaps of `store`. Returns `None` if `pack.useBitmaps` is off, or if replacements,
    /// grafts or shallow commits change the history. Damaged bitmaps are reported as a notice and not
    /// used.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `pack.useBitmaps` is not a boolean, or with
    /// [`ErrorKind::Io`] or [`ErrorKind::Object`] if the list of grafts or shallow commits cannot be
    /// read.
    pub fn usable_bitmaps(&self, store: &Store) -> Result<Option<Arc<Bitmapped>>> {
        let is_wanted = self.config().bool_or("pack.usebitmaps", true)?;
        if !is_wanted || store.has_replacements() || !self.has_plain_history()? {
            return Ok(None);
        }
        match store.bitmaps() {
            Ok(found) => Ok(found.map(Arc::new)),
            Err(error) => {
                self.notify(Notice::Failure(from_odb(error)));
                Ok(None)
            }
        }
    }
}

struct ReachabilityWalk<'a> {
    repository: &'a Repository,
    bitmaps: Option<&'a Bitmapped>,
    /// Whether missing objects are ignored.
    lenient: bool,
    bits: Bits,
    others: HashSet<ObjectId>,
    order: Vec<ObjectId>,
    commits: Vec<ObjectId>,
    trees: Vec<ObjectId>,
    buffer: Vec<u8>,
}

impl<'a> ReachabilityWalk<'a> {
    fn new(repository: &'a Repository, bitmaps: Option<&'a Bitmapped>, lenient: bool) -> Self {
        ReachabilityWalk {
            repository,
            bitmaps,
            lenient,
            bits: bitmaps.map_or_else(|| Bits::new(0), Bitmapped::empty),
            others: HashSet::new(),
            order: Vec::new(),
            commits: Vec::new(),
            trees: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Adds `id` to the found objects. Returns whether it is new.
    fn add(&mut self, id: &oid) -> Result<bool> {
        let bit = match self.bitmaps {
            Some(bitmaps) => bitmaps.bit(id).map_err(from_odb)?,
            None => None,
        };
        if let Some(bit) = bit {
            return Ok(self.bits.insert(bit));
        }
        let is_new = self.others.insert(id.to_owned());
        if is_new {
            self.order.push(id.to_owned());
        }
        Ok(is_new)
    }

    /// Walks commits before trees, because the bitmaps of commits cover most trees.
    fn run(mut self, tips: &[ObjectId], watch: &Watch<'_>) -> Result<Self> {
        // Tags are peeled together, so that their targets can be prefetched together.
        let mut tips = tips.to_vec();
        while !tips.is_empty() {
            self.prefetch(&tips)?;
            let mut targets = Vec::new();
            for tip in tips {
                targets.extend(self.tip(tip)?);
            }
            tips = targets;
        }
        self.cover()?;
        self.prefetch(&self.commits)?;
        loop {
            let interrupted = |reason: pronto_io::interrupt::Interrupted| {
                Error::new(ErrorKind::Interrupted, reason.to_string())
            };
            watch.interrupt().check().map_err(interrupted)?;
            if let Some(commit) = self.commits.pop() {
                self.commit(&commit)?;
            } else if let Some(tree) = self.trees.pop() {
                self.tree(&tree)?;
            } else {
                return Ok(self);
            }
        }
    }

    /// Requests the objects `ids` in advance, if they are in remote storage.
    fn prefetch(&self, ids: &[ObjectId]) -> Result<()> {
        let store = self.repository.objects()?;
        store.prefetch(ids.iter().map(AsRef::as_ref));
        Ok(())
    }

    /// Adds the objects that the bitmaps of tips cover. Other tips are often ancestors of those with a
    /// bitmap.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if a bitmap cannot be read.
    fn cover(&mut self) -> Result<()> {
        for id in std::mem::take(&mut self.commits) {
            if !self.is_covered(&id)? {
                self.commits.push(id);
            }
        }
        Ok(())
    }

    /// Returns whether all objects reachable from commit `id` are in the set. If the commit has a
    /// bitmap, the bitmap is added first.
    ///
    /// # Errors
    /// As for [`cover`](Self::cover).
    fn is_covered(&mut self, id: &oid) -> Result<bool> {
        let Some(bitmaps) = self.bitmaps else {
            return Ok(false);
        };
        let Some(bit) = bitmaps.bit(id).map_err(from_odb)? else {
            return Ok(false);
        };
        if self.bits.contains(bit) {
            return Ok(true);
        }
        let found = bitmaps.reachable_from(id).map_err(from_odb)?;
        if let Some(bits) = &found {
            self.bits.union(bits);
        }
        Ok(found.is_some())
    }

    /// Queues a tip for the walk. If the tip is a tag, returns its target.
    fn tip(&mut self, id: ObjectId) -> Result<Option<ObjectId>> {
        let store = self.repository.objects()?;
        let header = store.header(&id).map_err(from_odb)?;
        match header.map(|header| header.kind) {
            None if self.lenient => {}
            None => {
                let message = format!("bad object {id}");
                return Err(Error::new(ErrorKind::Object, message));
            }
            Some(ObjectKind::Commit) => self.commits.push(id),
            Some(ObjectKind::Tree) => self.trees.push(id),
            Some(ObjectKind::Blob) => _ = self.add(&id)?,
            Some(ObjectKind::Tag) => {
                self.add(&id)?;
                store.find(&id, &mut self.buffer).map_err(from_odb)?;
                let target = TagRef::new(&self.buffer).target();
                if target.is_none() && !self.lenient {
                    return Err(Error::new(ErrorKind::Corrupt, "malformed tag").on_object(id));
                }
                return Ok(target);
            }
        }
        Ok(None)
    }

    fn commit(&mut self, id: &oid) -> Result<()> {
        if self.is_covered(id)? || !self.add(id)? {
            return Ok(());
        }
        let store = self.repository.objects()?;
        if self.lenient && !store.contains(id).map_err(from_odb)? {
            return Ok(());
        }
        let links = self.repository.commit_links(id, &mut self.buffer)?;
        if store.can_prefetch() {
            self.prefetch(&links.parents)?;
            self.prefetch(&[links.tree])?;
        }
        self.commits.extend(links.parents);
        // The tree is only queued: a bitmap may cover it before it is read.
        self.trees.push(links.tree);
        Ok(())
    }

    fn tree(&mut self, id: &oid) -> Result<()> {
        if !self.add(id)? {
            return Ok(());
        }
        let store = self.repository.objects()?;
        let mut content = std::mem::take(&mut self.buffer);
        match store.find(id, &mut content).map_err(from_odb)? {
            Some(ObjectKind::Tree) => {}
            None if self.lenient => content.clear(),
            _ => {
                let message = format!("bad tree object {id}");
                return Err(Error::new(ErrorKind::Object, message));
            }
        }
        let before = self.trees.len();
        for entry in TreeEntries::new(&content, id.kind().len_in_bytes()) {
            let Ok(child) = ObjectId::try_from(entry.id) else {
                continue;
            };
            if entry.is_directory() {
                self.trees.push(child);
            } else if !entry.is_submodule() {
                self.add(&child)?;
            }
        }
        self.buffer = content;
        if self.repository.objects()?.can_prefetch() {
            self.prefetch(&self.trees[before..])?;
        }
        Ok(())
    }
}
