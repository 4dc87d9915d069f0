//! The links of the trees of the largest pack, for walks that visit most of its trees.

use std::cmp::Reverse;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::interrupt::Interrupt;
use pronto_io::pool;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::pack::{PackFiles, Scan, TreeLinks};

use super::Store;
use crate::error::{Error, from_pack};
use crate::packs::PackFile;

/// The largest number of objects of a pack whose commits are not estimated first.
const SMALL: u32 = 1 << 18;
/// The number of objects in the sample.
const GUESSED_FROM: u32 = 256;
/// The number of commits below which trees have too little in common.
const FEW_COMMITS: usize = 16;
/// The number of objects below which threads are not worth their cost.
const FEW: u32 = 8192;

/// A pack and the links of its trees. Objects are identified by their row in the index of the pack.
#[derive(Debug)]
pub struct LinkedPack {
    index: Arc<PackIndex>,
    links: TreeLinks,
}

impl LinkedPack {
    /// Returns the links of the trees.
    pub fn links(&self) -> &TreeLinks {
        &self.links
    }

    /// Returns the number of objects; all rows are smaller.
    pub fn len(&self) -> u32 {
        self.index.len()
    }

    /// Returns whether the pack has no objects.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the row of `id`; `None` if the object is not in this pack. Costs one search.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the index cannot be read, and with `ErrorKind::Corrupt` if it
    /// is truncated.
    pub fn row(&self, id: &oid) -> Result<Option<u32>, Error> {
        let found = self.index.find(id).map_err(from_pack)?;
        Ok(found.map(|position| position.0))
    }

    /// Returns the id of the object in `row`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if there is no such row, and as [`row`](Self::row) does.
    pub fn id(&self, row: u32) -> Result<ObjectId, Error> {
        self.index.id_at(IndexPosition(row)).map_err(from_pack)
    }
}

impl Store {
    /// Decodes all trees of the largest pack with all processors, for a walk over the given number
    /// of commits. Returns `None` if this is not worthwhile: if the commits are few or fewer than a
    /// quarter of those in the pack, or if no pack can be read.
    ///
    /// Costs reading the header of every entry and inflating every tree once; see
    /// [`TreeLinks`](pronto_pack::pack::TreeLinks). In a large pack, a sample of entries is read
    /// first, so a small walk costs almost nothing.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed, and with `ErrorKind::Interrupted`
    /// if the operation is cancelled.
    pub fn tree_links(
        &self,
        commits: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<LinkedPack>, Error> {
        if commits < FEW_COMMITS {
            return Ok(None);
        }
        let snapshot = Arc::clone(&*self.snapshot()?);
        let packs = snapshot.all_packs().filter_map(|pack| {
            let index = pack.index().ok()?;
            Some((pack, index))
        });
        let Some((pack, index)) = packs.min_by_key(|(pack, index)| {
            // Among packs of equal size, the choice is deterministic.
            (Reverse(index.len()), pack.number)
        }) else {
            return Ok(None);
        };
        if index.len() > SMALL && 4 * commits < self.guess_commits(pack, index) {
            return Ok(None);
        }
        match self.links_of(pack, index, commits, interrupt) {
            Err(error) if error.kind() == crate::ErrorKind::Interrupted => Err(error),
            // The walk finds another copy, or reports the error.
            Err(_) => Ok(None),
            links => links,
        }
    }

    fn links_of(
        &self,
        pack: &PackFile,
        index: &Arc<PackIndex>,
        commits: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<LinkedPack>, Error> {
        let (opened, order) = (pack.pack()?, pack.order()?);
        let files = PackFiles {
            pack: opened,
            index,
            order,
        };
        let threads = match index.len() < FEW {
            true => 1,
            false => pool::cores(),
        };
        let scan = Scan::new(files, threads, interrupt).map_err(from_pack)?;
        let Some(scan) = scan.filter(|scan| 4 * commits >= scan.commits() as usize) else {
            return Ok(None);
        };
        let links = TreeLinks::new(files, &scan, threads, interrupt).map_err(from_pack)?;
        Ok(Some(LinkedPack {
            index: Arc::clone(index),
            links,
        }))
    }

    /// Returns an approximate lower bound for the number of commits in a pack.
    fn guess_commits(&self, pack: &PackFile, index: &PackIndex) -> usize {
        let step = index.len() / GUESSED_FROM;
        let is_commit = |row: &u32| {
            let offset = index.offset_at(IndexPosition(*row)).ok();
            let header = offset.and_then(|offset| self.packed_header(pack, offset).ok());
            header.is_some_and(|header| header.kind == ObjectKind::Commit)
        };
        let rows = (0..GUESSED_FROM).map(|number| number * step);
        // The random sample may contain too many commits.
        rows.filter(is_commit).count().saturating_sub(1) * step as usize / 2
    }
}
