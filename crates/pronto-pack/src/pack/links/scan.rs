//! Determines which entries of a pack are trees, and their delta bases.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use gix_object::Kind as ObjectKind;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::{self, Workers};

use super::super::{PackOffset, PackPosition, ReadWindow};
use super::PackFiles;
use crate::entry::EntryHeader;
use crate::error::{Error, ErrorKind};

/// The value for an entry that is a tree and not a delta; not a position in the pack.
pub(super) const TREE: u32 = u32::MAX;
const COMMIT: u32 = u32::MAX - 1;
const OTHER: u32 = u32::MAX - 2;
/// The value for an entry that cannot be read, or whose chain of bases is a cycle.
const BROKEN: u32 = u32::MAX - 3;
/// The largest number of entries of a pack that is scanned.
const MOST_ENTRIES: u32 = BROKEN - 1;

/// The number of consecutive entries that a worker scans.
const ROW_LEN: u32 = 4096;

/// The scanned headers of a pack: four bytes for each entry.
#[derive(Debug)]
pub struct Scan {
    /// The position of the base of each entry, or the type of the entry.
    pub(super) bases: Vec<u32>,
    /// The type of the object of each entry.
    kinds: Vec<u32>,
    commits: u32,
}

impl Scan {
    /// Reads the header of each entry of a pack once, in `threads` threads; inflates nothing.
    /// Returns `None` if the pack has too many entries. An invalid entry is unknown, as are all
    /// deltas based on it.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Interrupted` if the operation is cancelled, and with
    /// `ErrorKind::Truncated` if the mapped pack was truncated.
    pub fn new(
        files: PackFiles<'_>,
        threads: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<Scan>, Error> {
        let PackFiles { pack, order, .. } = files;
        if order.len() > MOST_ENTRIES {
            return Ok(None);
        }
        let bases: Vec<AtomicU32> = (0..order.len()).map(|_| AtomicU32::new(BROKEN)).collect();
        let stopped = Mutex::new(None);
        pool::run(
            Workers::Exactly(threads),
            order.len().div_ceil(ROW_LEN) as usize,
            ReadWindow::default,
            |window, rows| {
                if let Err(reason) = interrupt.check() {
                    let error = Error::new(ErrorKind::Interrupted, reason.to_string());
                    *stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return ControlFlow::Break(());
                }
                let start = rows.start as u32 * ROW_LEN;
                let end = (rows.end as u32).saturating_mul(ROW_LEN).min(order.len());
                for position in start..end {
                    let base = base_of(files, window, position);
                    bases[position as usize].store(base.unwrap_or(BROKEN), Relaxed);
                }
                ControlFlow::Continue(())
            },
            drop,
        );
        if let Some(error) = stopped.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        pack.intact(0)?;
        let bases: Vec<u32> = bases.into_iter().map(AtomicU32::into_inner).collect();
        let kinds = kinds(&bases);
        let commits = kinds.iter().filter(|kind| **kind == COMMIT).count() as u32;
        Ok(Some(Scan {
            bases,
            kinds,
            commits,
        }))
    }

    /// Returns the number of commits in the pack.
    pub fn commits(&self) -> u32 {
        self.commits
    }

    pub(super) fn is_tree(&self, position: u32) -> bool {
        self.kinds[position as usize] == TREE
    }
}

fn base_of(
    PackFiles { pack, index, order }: PackFiles<'_>,
    window: &mut ReadWindow,
    position: u32,
) -> Option<u32> {
    let (offset, _) = order.get(PackPosition(position))?;
    let header = pack.entry_in(window, offset).ok()?.header;
    let base: PackOffset = match &header {
        EntryHeader::Object(ObjectKind::Tree) => return Some(TREE),
        EntryHeader::Object(ObjectKind::Commit) => return Some(COMMIT),
        EntryHeader::Object(_) => return Some(OTHER),
        EntryHeader::OffsetDelta { .. } => pack.base_offset(offset, &header).ok()??,
        EntryHeader::RefDelta { base } => index.find_offset(base).ok()??,
    };
    order.position(base).map(|position| position.0)
}

/// Returns the type of the object of each entry.
fn kinds(bases: &[u32]) -> Vec<u32> {
    const UNKNOWN: u32 = 0;
    const UNDER_WAY: u32 = 1;
    let mut kinds = vec![UNKNOWN; bases.len()];
    let mut chain = Vec::new();
    for start in 0..bases.len() {
        let mut at = start;
        let kind = loop {
            match kinds[at] {
                UNKNOWN => {}
                UNDER_WAY => break BROKEN,
                kind => break kind,
            }
            kinds[at] = UNDER_WAY;
            chain.push(at);
            match bases[at] {
                kind @ BROKEN.. => break kind,
                base => at = base as usize,
            }
        };
        for at in chain.drain(..) {
            kinds[at] = kind;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_what_their_bases_are() {
        let bases = [TREE, 0, 4, COMMIT, 1, 6, 5, 3, BROKEN, 8, 10];
        let expected = [
            TREE, TREE, TREE, COMMIT, TREE, BROKEN, BROKEN, COMMIT, BROKEN, BROKEN, BROKEN,
        ];
        assert_eq!(kinds(&bases), expected);
    }
}
