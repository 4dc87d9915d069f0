//! Directories in file order: each is followed by everything below it. Shared by cached trees and
//! the untracked cache.

/// Follows directories in file order and determines where each ends.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    at: usize,
    /// Directories directly below that are still to come.
    left: u64,
    /// The last one that came.
    child: Option<usize>,
}

impl Nesting {
    /// The directory above the next one, and the one before it there.
    pub(crate) fn above(&self) -> Option<(usize, Option<usize>)> {
        self.open.last().map(|open| (open.at, open.child))
    }

    /// Enters the directory at `at`, which is the next one, with `children` directly below it.
    /// Calls `ended` for all directories that end with it. Returns `false` if it is nested deeper
    /// than `deepest`.
    pub(crate) fn push(
        &mut self,
        at: usize,
        children: u64,
        deepest: usize,
        mut ended: impl FnMut(usize),
    ) -> bool {
        if let Some(above) = self.open.last_mut() {
            above.left -= 1;
            above.child = Some(at);
        }
        self.open.push(Open {
            at,
            left: children,
            child: None,
        });
        if self.open.len() > deepest {
            return false;
        }
        while let Some(open) = self.open.pop_if(|open| open.left == 0) {
            ended(open.at);
        }
        true
    }

    /// Whether all directories that were announced have come.
    pub(crate) fn is_complete(&self) -> bool {
        self.open.is_empty()
    }
}

/// Returns the positions of the directories directly below the one at `at`. `end` returns the
/// position after everything below a directory.
pub(crate) fn children(at: usize, end: impl Fn(usize) -> usize) -> impl Iterator<Item = usize> {
    let last = end(at);
    let mut next = at + 1;
    std::iter::from_fn(move || {
        let child = (next < last).then_some(next)?;
        next = end(child);
        Some(child)
    })
}
