//! The order of work: directory by directory, so that each is opened once; directories in the
//! order of their first blob in the pack, and blobs within them likewise, so that the pack is
//! read from front to back and neighbours share delta bases.

use pronto_io::pool::ends_of_groups;
use pronto_odb::Location;

use super::{Item, Objects};

/// An item to write next: which, and where its blob is.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub(super) at: u32,
    pub(super) position: Option<Location>,
}

/// `items` in the order in which to write them, and where in it each directory ends. Blobs that are
/// in no pack come last, in the order of the index.
pub(super) fn order(items: &[Item], objects: &dyn Objects) -> (Vec<Next>, Vec<usize>) {
    let _region = pronto_io::region!("checkout", "order");
    if items.len() < 2 {
        let next = |at| Next { at, position: None };
        let order: Vec<Next> = (0..items.len() as u32).map(next).collect();
        let ends = vec![order.len()];
        return (order, ends);
    }
    let positions: Vec<Option<Location>> = items
        .iter()
        .map(|item| objects.position(&item.id))
        .collect();
    // `None` sorts first, so the question comes before the answer.
    let key = |position: Option<Location>| (position.is_none(), position);
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
        let first = positions[from..to]
            .iter()
            .map(|position| key(*position))
            .min();
        keyed.extend((from..to).map(|at| (first, from as u32, key(positions[at]), at as u32)));
        from = to;
    }
    keyed.sort_unstable();
    let ends = ends_of_groups(&keyed, |(_, from, ..), (_, other, ..)| from == other);
    let next = |(_, _, (_, position), at)| Next { at, position };
    (keyed.into_iter().map(next).collect(), ends)
}
