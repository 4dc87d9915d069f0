//! Topological orders of commits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::WalkOrder;
use crate::Result;
use crate::history::{CommitNumber, Commits};

/// The commits whose children were all yielded.
enum ReadyCommits {
    /// The commit that was added last comes first.
    Stack(Vec<CommitNumber>),
    /// The newest commit comes first, and among equal dates the one that was added first.
    Dates(BinaryHeap<(i64, Reverse<usize>, CommitNumber)>, usize),
}

impl ReadyCommits {
    fn push(&mut self, number: CommitNumber, commits: &Commits<'_>) {
        match self {
            ReadyCommits::Stack(stack) => stack.push(number),
            ReadyCommits::Dates(queue, arrivals) => {
                queue.push((commits.time(number), Reverse(*arrivals), number));
                *arrivals += 1;
            }
        }
    }

    fn pop(&mut self) -> Option<CommitNumber> {
        match self {
            ReadyCommits::Stack(stack) => stack.pop(),
            ReadyCommits::Dates(queue, _) => queue.pop().map(|(_, _, number)| number),
        }
    }
}

/// Sorts `found` so that no commit precedes one of its children. Without dates, a commit directly
/// follows a child if possible, the last parent of a merge first.
///
/// # Errors
/// Fails with `ErrorKind::Object` if the commit-graph file is malformed, or `ErrorKind::Io`.
pub(super) fn sort(
    commits: &Commits<'_>,
    found: &[CommitNumber],
    order: WalkOrder,
) -> Result<Vec<CommitNumber>> {
    let most = found.iter().max().map_or(0, |most| *most as usize + 1);
    // For each commit, the number of children that were not yielded yet plus one; 0 for commits that
    // are not in `found`.
    let mut waiting = vec![0u32; most];
    for number in found {
        waiting[*number as usize] = 1;
    }
    let parents = |number: CommitNumber| {
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
        WalkOrder::TopologicalByDate => ReadyCommits::Dates(BinaryHeap::new(), 0),
        _ => ReadyCommits::Stack(Vec::new()),
    };
    let tips: Vec<CommitNumber> = found
        .iter()
        .copied()
        .filter(|number| waiting[*number as usize] == 1)
        .collect();
    match &mut ready {
        ReadyCommits::Stack(stack) => stack.extend(tips.iter().rev()),
        ReadyCommits::Dates(..) => tips.iter().for_each(|tip| ready.push(*tip, commits)),
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
