//! The objects named by trees of the largest pack, for walks that need most of them.

use std::cmp::Reverse;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::interrupt::Interrupt;
use pronto_io::pool;
use pronto_pack::idx::{Index, IndexPosition};
use pronto_pack::pack::{PackFiles, Scan, TreeLinks};

use super::Store;
use crate::error::{Error, from_pack};
use crate::packs::PackFile;

/// Of a pack with more objects it is guessed first how many of them are commits.
const SMALL: u32 = 1 << 18;
/// The number of objects in the sample.
const GUESSED_FROM: u32 = 256;
/// Trees of fewer commits have too little in common.
const FEW_COMMITS: usize = 16;
/// With fewer objects threads are not worth starting.
const FEW: u32 = 8192;

/// A pack, and the links of its trees. Objects are identified by their row in its index.
#[derive(Debug)]
pub struct LinkedPack {
    index: Arc<Index>,
    links: TreeLinks,
}

impl LinkedPack {
    /// Returns the links of its trees.
    pub fn links(&self) -> &TreeLinks {
        &self.links
    }

    /// Returns the number of objects: rows are smaller.
    pub fn len(&self) -> u32 {
        self.index.len()
    }

    /// Whether it has no object.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The row of `id`; `None` if it is not in this pack. Costs one search.
    ///
    /// # Errors
    /// `Io` or `Truncated` when the index cannot be read.
    pub fn row(&self, id: &oid) -> Result<Option<u32>, Error> {
        let found = self.index.find(id).map_err(from_pack)?;
        Ok(found.map(|position| position.0))
    }

    /// The id of a row.
    ///
    /// # Errors
    /// `Corrupt` when there is no such row, `Io` or `Truncated` as for [`row`](Self::row).
    pub fn id(&self, row: u32) -> Result<ObjectId, Error> {
        self.index.id_at(IndexPosition(row)).map_err(from_pack)
    }
}

impl Store {
    /// Decodes all trees of the largest pack, on all processors, for a walk over the given number
    /// of commits. `None` if that is not worthwhile: the commits are few, or fewer than a quarter of
    /// those in the pack, or no pack can be read.
    ///
    /// Costs reading the header of every entry and inflating every tree once; see
    /// [`TreeLinks`](pronto_pack::pack::TreeLinks). For a large pack a sample is read first, so a
    /// small walk costs almost nothing.
    ///
    /// # Errors
    /// `Io` when the packs cannot be listed; `Interrupted`.
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
            // Among equals always the same one.
            (Reverse(index.len()), pack.number)
        }) else {
            return Ok(None);
        };
        if index.len() > SMALL && 4 * commits < self.guess_commits(pack, index) {
            return Ok(None);
        }
        match self.links_of(pack, index, commits, interrupt) {
            Err(error) if *error.kind() == crate::ErrorKind::Interrupted => Err(error),
            // The walk will find another copy, or report the error.
            Err(_) => Ok(None),
            links => links,
        }
    }

    fn links_of(
        &self,
        pack: &PackFile,
        index: &Arc<Index>,
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

    /// Roughly how many commits a pack has, rather too few.
    fn guess_commits(&self, pack: &PackFile, index: &Index) -> usize {
        let step = index.len() / GUESSED_FROM;
        let is_commit = |row: &u32| {
            let offset = index.offset_at(IndexPosition(*row)).ok();
            let header = offset.and_then(|offset| self.packed_header(pack, offset).ok());
            header.is_some_and(|header| header.kind == ObjectKind::Commit)
        };
        let rows = (0..GUESSED_FROM).map(|number| number * step);
        // Chance may have found too many.
        rows.filter(is_commit).count().saturating_sub(1) * step as usize / 2
    }
}
