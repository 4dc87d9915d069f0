//! Directories in file order: each directory is followed by everything below it. Shared by cached
//! trees and the untracked cache.

/// Determines the end of each directory from the directories in file order.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<OpenNesting>,
}

#[derive(Debug)]
struct OpenNesting {
    at: usize,
    /// The number of direct subdirectories that follow.
    left: u64,
    /// The position of the last subdirectory so far.
    child: Option<usize>,
}

impl Nesting {
    /// Returns the parent of the next directory, and the previous subdirectory of this parent.
    pub(crate) fn above(&self) -> Option<(usize, Option<usize>)> {
        self.open.last().map(|open| (open.at, open.child))
    }

    /// Enters the next directory at position `at`, with `children` direct subdirectories. Calls
    /// `ended` for all directories that end with this one. Returns `false` if the directory is
    /// nested deeper than `deepest`.
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
        self.open.push(OpenNesting {
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

    /// Returns whether all announced directories have been entered.
    pub(crate) fn is_complete(&self) -> bool {
        self.open.is_empty()
    }
}

/// Returns the positions of the direct subdirectories of the directory at `at`. `end` returns the
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
