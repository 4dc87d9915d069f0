//! Topological orders of commits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Order;
use crate::Result;
use crate::history::{Commits, Number};

/// The commits whose children were all yielded.
enum Ready {
    /// The commit that was added last comes first.
    Stack(Vec<Number>),
    /// The newest commit comes first, and among equal dates the one that was added first.
    Dates(BinaryHeap<(i64, Reverse<usize>, Number)>, usize),
}

impl Ready {
    fn push(&mut self, number: Number, commits: &Commits<'_>) {
        match self {
            Ready::Stack(stack) => stack.push(number),
            Ready::Dates(queue, arrivals) => {
                queue.push((commits.time(number), Reverse(*arrivals), number));
                *arrivals += 1;
            }
        }
    }

    fn pop(&mut self) -> Option<Number> {
        match self {
            Ready::Stack(stack) => stack.pop(),
            Ready::Dates(queue, _) => queue.pop().map(|(_, _, number)| number),
        }
    }
}

/// Sorts `found` so that no commit precedes one of its children. Without dates, a commit directly
/// follows a child if possible, the last parent of a merge first.
///
/// # Errors
/// Fails with `ErrorKind::Object` if the commit-graph file is malformed, or `ErrorKind::Io`.
pub(super) fn sort(commits: &Commits<'_>, found: &[Number], order: Order) -> Result<Vec<Number>> {
    let most = found.iter().max().map_or(0, |most| *most as usize + 1);
    // For each commit, the number of children that were not yielded yet plus one; 0 for commits that
    // are not in `found`.
    let mut waiting = vec![0u32; most];
    for number in found {
        waiting[*number as usize] = 1;
    }
    let parents = |number: Number| {
        let which = 0..commits.parent_count(number);
        which.map(move |which| commits.known_parent(number, which))
    };
    for number in found {
        for parent in parents(*number) {
            if let Some(count) = parent?.and_then(|parent| waiting.get_mut(parent as usize))
                && *count > 0
            {
                *count += 1;
            }
        }
    }
    let mut ready = match order {
        Order::TopologicalByDate => Ready::Dates(BinaryHeap::new(), 0),
        _ => Ready::Stack(Vec::new()),
    };
    let tips: Vec<Number> = found
        .iter()
        .copied()
        .filter(|number| waiting[*number as usize] == 1)
        .collect();
    match &mut ready {
        Ready::Stack(stack) => stack.extend(tips.iter().rev()),
        Ready::Dates(..) => tips.iter().for_each(|tip| ready.push(*tip, commits)),
    }
    let mut sorted = Vec::with_capacity(found.len());
    while let Some(number) = ready.pop() {
        for parent in parents(number) {
            let Some(parent) = parent? else { continue };
            if let Some(count) = waiting.get_mut(parent as usize)
                && *count > 0
            {
                *count -= 1;
                if *count == 1 {
                    ready.push(parent, commits);
                }
            }
        }
        waiting[number as usize] = 0;
        sorted.push(number);
    }
    Ok(sorted)
}
