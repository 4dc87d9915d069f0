//! Searches many ids in any order in parallel. Each id needs as many memory accesses as in a single
//! search, but the accesses of a whole group are started before the first result is needed.

use std::ops::Range;

use pronto_hash::oid;

use super::rows::{IdRows, corrections, first_guess};
use super::{Fanout, RowSearch, prefix64};

/// The number of ids that are searched together: more than the number of concurrent cache misses of
/// a core.
pub(super) const GROUP: usize = 16;

/// The state of the search for one id.
#[derive(Clone, Default)]
struct IdSearch {
    wanted: u64,
    rows: Range<u32>,
    guess: u32,
    left: u32,
}

/// Searches `group`, which has at most [`GROUP`] ids. Each result is at the position of its id.
/// `hint` is called with the row of each id that is found, before any row is used.
#[inline]
pub(super) fn search(
    table: IdRows<'_>,
    fanout: &Fanout,
    group: &[&oid],
    hint: impl Fn(u32),
) -> [RowSearch; GROUP] {
    let mut steps: [IdSearch; GROUP] = Default::default();
    let steps = &mut steps[..group.len()];
    let mut rounds = 0;
    for (step, id) in steps.iter_mut().zip(group) {
        let wanted = prefix64(id.as_bytes());
        let rows = fanout.bucket(id.first_byte());
        let guess = first_guess(&rows, wanted);
        table.prefetch_rows(guess, 1);
        let left = corrections(&rows);
        rounds = rounds.max(left);
        *step = IdSearch {
            wanted,
            rows,
            guess,
            left,
        };
    }
    for _ in 0..rounds {
        for step in steps.iter_mut().filter(|step| step.left > 0) {
            step.left -= 1;
            step.guess = table.better_guess(&step.rows, step.guess, step.wanted, step.left == 0);
        }
    }
    let mut found = [Err(0); GROUP];
    for ((step, id), found) in steps.iter().zip(group).zip(&mut found) {
        *found = table.search_near(step.rows.clone(), step.guess, id);
        if let Ok(row) = *found {
            hint(row);
        }
    }
    found
}
