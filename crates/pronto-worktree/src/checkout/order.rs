//! The order in which items are written: directory by directory, so that each is opened once.
//! Directories are in the order of their first blob in the pack, and so are blobs within a directory,
//! so that the pack is read sequentially and neighbouring blobs share delta bases.

use pronto_io::pool;
use pronto_odb::PackLocation;

use super::{CheckoutItem, ObjectSource};

/// The number of items below which a lookup takes no longer than starting a thread.
const ITEMS_PER_THREAD: usize = 4096;

/// An item to write: its index in the plan, and the position of its blob.
#[derive(Clone, Copy)]
pub(super) struct OrderedItem {
    pub(super) at: u32,
    pub(super) position: Option<PackLocation>,
}

/// Returns `items` in the order in which they are written, and the end of each directory in this order.
/// Blobs that are not in a pack come last, in index order.
pub(super) fn order(
    items: &[CheckoutItem],
    objects: &dyn ObjectSource,
) -> (Vec<OrderedItem>, Vec<usize>) {
    let _region = pronto_io::region!("checkout", "order");
    if items.len() < 2 {
        let next = |at| OrderedItem { at, position: None };
        let order: Vec<OrderedItem> = (0..items.len() as u32).map(next).collect();
        let ends = vec![order.len()];
        return (order, ends);
    }
    let positions = positions(items, objects);
    // `None` sorts first, so the key starts with `is_none()`.
    let key = |at: usize| (positions[at].is_none(), positions[at]);
    // The items of one directory need not be consecutive in the index (`a/b`, `a/b/c`, `a/d`). Each run
    // of consecutive items counts as a directory.
    let mut runs = Vec::new();
    let mut from = 0;
    while from < items.len() {
        let directory = items[from].directory();
        let run = items[from..]
            .iter()
            .take_while(|item| item.directory() == directory);
        let to = from + run.count();
        runs.push(((from..to).map(key).min(), from, to));
        from = to;
    }
    runs.sort_unstable();
    let mut order = Vec::with_capacity(items.len());
    let mut ends = Vec::with_capacity(runs.len());
    for (_, from, to) in runs {
        let start = order.len();
        order.extend((from..to).map(|at| OrderedItem {
            at: at as u32,
            position: positions[at],
        }));
        order[start..].sort_unstable_by_key(|next| (key(next.at as usize), next.at));
        ends.push(order.len());
    }
    (order, ends)
}

/// Returns the positions of the blobs of `items`, looked up on all processors if there are many.
fn positions(items: &[CheckoutItem], objects: &dyn ObjectSource) -> Vec<Option<PackLocation>> {
    let mut positions = vec![None; items.len()];
    let part = items.len().div_ceil(pool::cores()).max(ITEMS_PER_THREAD);
    let look_up = |(items, positions): (&[CheckoutItem], &mut [Option<PackLocation>])| {
        for (item, position) in items.iter().zip(positions) {
            *position = objects.position(&item.id);
        }
    };
    let mut parts = items.chunks(part).zip(positions.chunks_mut(part));
    let own = parts.next();
    std::thread::scope(|scope| {
        for part in parts {
            // If no thread can be started, its items are looked up when they are written.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || look_up(part));
        }
        own.map(look_up);
    });
    positions
}
