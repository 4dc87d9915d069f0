//! The order of work: directory by directory, so that each is opened once; directories in the
//! order of their first blob in the pack, and blobs within them likewise, so that the pack is
//! read from front to back and neighbours share delta bases.

use super::{Item, Objects};

/// Where a blob is; blobs that are in no pack come last, in the order of the index.
type Position = (u32, u64);

const NOWHERE: Position = (u32::MAX, u64::MAX);

/// The positions of `items` in the order in which to write them.
pub(super) fn order(items: &[Item], objects: &dyn Objects) -> Vec<u32> {
    // For few files the order matters less than the lookups cost.
    if items.len() < 16 {
        return (0..items.len() as u32).collect();
    }
    let positions: Vec<Position> = items
        .iter()
        .map(|item| objects.position(&item.id).unwrap_or(NOWHERE))
        .collect();
    // Items of one directory need not be neighbours in the index (`a/b`, `a/b/c`, `a/d`), but
    // its runs are: each run counts as a directory.
    let mut keyed = Vec::with_capacity(items.len());
    let mut from = 0;
    while from < items.len() {
        let directory = items[from].directory();
        let run = items[from..]
            .iter()
            .take_while(|item| item.directory() == directory);
        let to = from + run.count();
        let first = positions[from..to].iter().copied().min().unwrap_or(NOWHERE);
        keyed.extend((from..to).map(|at| (first, from as u32, positions[at], at as u32)));
        from = to;
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, _, at)| at).collect()
}
