//! Paths that a sparse checkout could not update.

use std::fmt;

use bstr::BString;

/// The paths that a sparse checkout could not update, each list in index order.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Modified files outside of the patterns, which are kept.
    pub modified: Vec<BString>,
    /// Entries in conflict.
    pub unmerged: Vec<BString>,
    /// Existing paths, or files in place of their parent directories, that obstruct new files.
    pub obstructed: Vec<BString>,
}

impl Leftover {
    /// Returns whether there are no such paths.
    pub fn is_empty(&self) -> bool {
        self.modified.is_empty() && self.unmerged.is_empty() && self.obstructed.is_empty()
    }
}

/// Writes Git's message of several lines; empty if there are no such paths.
impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = [
            (&self.modified, "are not up to date and were left"),
            (&self.unmerged, "are unmerged and were left"),
            (
                &self.obstructed,
                "were already present and thus not updated",
            ),
        ];
        for (paths, what) in groups.iter().filter(|(paths, _)| !paths.is_empty()) {
            writeln!(
                f,
                "warning: The following paths {what} despite sparse patterns:"
            )?;
            for path in paths.iter() {
                writeln!(f, "\t{path}")?;
            }
            writeln!(f)?;
        }
        match self.is_empty() {
            true => Ok(()),
            false => f.write_str(
                "After fixing the above paths, you may want to run `git \
                 sparse-checkout reapply`.",
            ),
        }
    }
}
