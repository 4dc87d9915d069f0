//! Paths that do not follow the patterns of a sparse checkout.

use std::fmt;

use bstr::BString;

/// Paths that do not follow the patterns, in order.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Files that would be lost.
    pub modified: Vec<BString>,
    /// Entries in conflict.
    pub unmerged: Vec<BString>,
    /// Paths that obstruct new files, or directories above them.
    pub obstructed: Vec<BString>,
}

impl Leftover {
    /// Whether everything follows the patterns.
    pub fn is_empty(&self) -> bool {
        self.modified.is_empty() && self.unmerged.is_empty() && self.obstructed.is_empty()
    }
}

/// Git's message, in several lines; empty if everything follows the patterns.
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
