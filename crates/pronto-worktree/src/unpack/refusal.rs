//! The reasons for which a plan is refused: content that it would lose.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

/// The obstructing paths, by reason, each list in index order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Entries of the index that are neither as in the old tree nor as in the new.
    pub staged: Vec<BString>,
    /// Files that are not as the index says.
    pub modified: Vec<BString>,
    /// Directories that hold untracked files and would become files.
    pub directories: Vec<BString>,
    /// The directory where the user is, which would become a file.
    pub current_directory: Vec<BString>,
    /// Untracked files in place of new ones.
    pub overwritten: Vec<BString>,
    /// Untracked files in place of removed ones.
    pub removed: Vec<BString>,
    /// Entries in place of those of a tree that is read into a directory.
    pub overlapping: Vec<BString>,
}

impl Refusals {
    /// Returns whether there is no obstruction.
    pub fn is_empty(&self) -> bool {
        *self == Refusals::default()
    }

    /// Removes the modified files below `path` from the list, because something else is in the way
    /// there.
    pub(super) fn forget_below(&mut self, path: &BStr) {
        self.modified
            .retain(|modified| !is_below(modified.as_bstr(), path));
    }

    /// Of the modified files below `path` keeps the first only, as Git, which looks no further;
    /// whether there is one.
    pub(super) fn keep_one_below(&mut self, path: &BStr) -> bool {
        let below = self.modified.iter();
        let below = below.filter(|modified| is_below(modified.as_bstr(), path));
        let Some(first) = below.min().cloned() else {
            return false;
        };
        self.forget_below(path);
        self.modified.push(first);
        true
    }

    pub(super) fn sort(&mut self) {
        for paths in [
            &mut self.staged,
            &mut self.modified,
            &mut self.directories,
            &mut self.current_directory,
            &mut self.overwritten,
            &mut self.removed,
            &mut self.overlapping,
        ] {
            paths.sort();
            paths.dedup();
        }
    }

    /// Returns the first path in the order of the index.
    pub fn first(&self) -> Option<Refusal> {
        type Wrap = fn(BString) -> Refusal;
        let lists: [(&[BString], Wrap); 7] = [
            (&self.staged, Refusal::Staged),
            (&self.modified, Refusal::Modified),
            (&self.directories, Refusal::Directory),
            (&self.current_directory, Refusal::CurrentDirectory),
            (&self.overwritten, Refusal::Overwritten),
            (&self.removed, Refusal::Removed),
            (&self.overlapping, Refusal::Overlapping),
        ];
        let firsts = lists
            .iter()
            .filter_map(|(paths, refusal)| Some((paths.first()?, refusal)));
        let (path, refusal) = firsts.min_by_key(|(path, _)| *path)?;
        Some(refusal(path.clone()))
    }
}

/// An obstructing path. [`Display`](fmt::Display) gives the message of Git's plumbing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// An entry of the index that is neither as in the old tree nor as in the new.
    Staged(BString),
    /// A file that is not as the index says.
    Modified(BString),
    /// A directory that holds untracked files and would become a file.
    Directory(BString),
    /// The directory where the user is, which would become a file.
    CurrentDirectory(BString),
    /// An untracked file in place of a new one.
    Overwritten(BString),
    /// An untracked file in place of a removed one.
    Removed(BString),
    /// An entry in place of one of a tree that is read into a directory.
    Overlapping(BString),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Staged(path) => write!(
                f,
                "Entry '{path}' would be overwritten by merge. Cannot merge."
            ),
            Refusal::Modified(path) => write!(f, "Entry '{path}' not uptodate. Cannot merge."),
            Refusal::Directory(path) => {
                write!(f, "Updating '{path}' would lose untracked files in it")
            }
            Refusal::CurrentDirectory(path) => write!(
                f,
                "Refusing to remove '{path}' since it is the current working directory."
            ),
            Refusal::Overwritten(path) => write!(
                f,
                "Untracked working tree file '{path}' would be overwritten by merge."
            ),
            Refusal::Removed(path) => write!(
                f,
                "Untracked working tree file '{path}' would be removed by merge."
            ),
            Refusal::Overlapping(path) => {
                write!(f, "Entry '{path}' overlaps with '{path}'.  Cannot bind.")
            }
        }
    }
}

fn is_below(path: &BStr, directory: &BStr) -> bool {
    let rest = path.strip_prefix(directory.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}
