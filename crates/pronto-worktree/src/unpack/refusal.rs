//! The paths because of which a plan is refused.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

/// The obstructing paths by reason, each list in index order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Index entries that match neither the old nor the new tree.
    pub staged: Vec<BString>,
    /// Files that differ from their index entries.
    pub modified: Vec<BString>,
    /// Directories with untracked files that would become files.
    pub directories: Vec<BString>,
    /// The current directory of the user, which would become a file.
    pub current_directory: Vec<BString>,
    /// Untracked files that new files would overwrite.
    pub overwritten: Vec<BString>,
    /// Untracked files at paths that the plan removes.
    pub removed: Vec<BString>,
    /// Index entries that a tree which is read into a directory would overwrite.
    pub overlapping: Vec<BString>,
}

impl Refusals {
    /// Returns whether there are no obstructing paths.
    pub fn is_empty(&self) -> bool {
        *self == Refusals::default()
    }

    /// Returns Git's error messages for `operation` (`checkout`, `merge`), one for each reason, without
    /// the prefix `error: `. The paths follow on lines of their own. `advice` completes the
    /// recommendation: `switch branches` gives `Please commit your changes or stash them before you
    /// switch branches.`
    pub fn messages(&self, operation: &str, advice: Option<&str>) -> Vec<String> {
        let local = format!(
            "Your local changes to the following files would be overwritten by {operation}:"
        );
        let untracked = |result| {
            format!("The following untracked working tree files would be {result} by {operation}:")
        };
        let advise = |words: &str| {
            advice.map_or_else(String::new, |verb| {
                format!("Please {words} before you {verb}.")
            })
        };
        let stash = advise("commit your changes or stash them");
        let remove = advise("move or remove them");
        let (overwritten, removed) = (untracked("overwritten"), untracked("removed"));
        let directories = "Updating the following directories would lose untracked files in them:";
        let current = "Refusing to remove the current working directory:";
        let lists = [
            (&self.staged, &*local, &*stash),
            (&self.modified, &*local, &*stash),
            (&self.directories, directories, ""),
            (&self.current_directory, current, ""),
            (&self.overwritten, &*overwritten, &*remove),
            (&self.removed, &*removed, &*remove),
        ];
        let mut messages: Vec<String> = lists
            .iter()
            .filter(|(paths, _, _)| !paths.is_empty())
            .map(|(paths, head, tail)| {
                let paths: Vec<String> = paths.iter().map(|path| format!("\t{path}\n")).collect();
                format!("{head}\n{}{tail}", paths.concat())
            })
            .collect();
        let overlapping = self.overlapping.iter().cloned();
        messages.extend(overlapping.map(|path| ObstructedPath::Overlapping(path).to_string()));
        messages
    }

    /// Removes the modified files below `path` from the list, because another reason for refusal
    /// applies there.
    pub(super) fn forget_below(&mut self, path: &BStr) {
        self.modified
            .retain(|modified| !is_below(modified.as_bstr(), path));
    }

    /// Keeps only the first modified file below `path`, because Git stops there. Returns whether there
    /// is such a file.
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

    /// Returns the first obstructing path in index order.
    pub fn first(&self) -> Option<ObstructedPath> {
        type Wrap = fn(BString) -> ObstructedPath;
        let lists: [(&[BString], Wrap); 7] = [
            (&self.staged, ObstructedPath::Staged),
            (&self.modified, ObstructedPath::Modified),
            (&self.directories, ObstructedPath::Directory),
            (&self.current_directory, ObstructedPath::CurrentDirectory),
            (&self.overwritten, ObstructedPath::Overwritten),
            (&self.removed, ObstructedPath::Removed),
            (&self.overlapping, ObstructedPath::Overlapping),
        ];
        let firsts = lists
            .iter()
            .filter_map(|(paths, refusal)| Some((paths.first()?, refusal)));
        let (path, refusal) = firsts.min_by_key(|(path, _)| *path)?;
        Some(refusal(path.clone()))
    }
}

/// The messages of `git checkout`, without advice, prefix and empty lines.
impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, message) in self.messages("checkout", None).iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", message.trim_end_matches('\n'))?;
        }
        Ok(())
    }
}

/// An obstructing path. [`Display`](fmt::Display) writes the message of Git's plumbing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObstructedPath {
    /// An index entry that matches neither the old nor the new tree.
    Staged(BString),
    /// A file that differs from its index entry.
    Modified(BString),
    /// A directory with untracked files that would become a file.
    Directory(BString),
    /// The current directory of the user, which would become a file.
    CurrentDirectory(BString),
    /// An untracked file that a new file would overwrite.
    Overwritten(BString),
    /// An untracked file at a path that the plan removes.
    Removed(BString),
    /// An index entry that a tree which is read into a directory would overwrite.
    Overlapping(BString),
}

impl fmt::Display for ObstructedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObstructedPath::Staged(path) => write!(
                f,
                "Entry '{path}' would be overwritten by merge. Cannot merge."
            ),
            ObstructedPath::Modified(path) => {
                write!(f, "Entry '{path}' not uptodate. Cannot merge.")
            }
            ObstructedPath::Directory(path) => {
                write!(f, "Updating '{path}' would lose untracked files in it")
            }
            ObstructedPath::CurrentDirectory(path) => write!(
                f,
                "Refusing to remove '{path}' since it is the current working directory."
            ),
            ObstructedPath::Overwritten(path) => write!(
                f,
                "Untracked working tree file '{path}' would be overwritten by merge."
            ),
            ObstructedPath::Removed(path) => write!(
                f,
                "Untracked working tree file '{path}' would be removed by merge."
            ),
            ObstructedPath::Overlapping(path) => {
                write!(f, "Entry '{path}' overlaps with '{path}'.  Cannot bind.")
            }
        }
    }
}

fn is_below(path: &BStr, directory: &BStr) -> bool {
    let rest = path.strip_prefix(directory.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_displayed_in_the_words_of_checkout() {
        let refusals = Refusals {
            modified: vec!["a".into(), "d/b".into()],
            overwritten: vec!["new".into()],
            ..Refusals::default()
        };
        let expected = "Your local changes to the following files would be overwritten by checkout:\n\ta\n\td/b\n\
            The following untracked working tree files would be overwritten by checkout:\n\tnew";
        assert_eq!(refusals.to_string(), expected);
        let messages = refusals.messages("merge", Some("merge"));
        let expected = "The following untracked working tree files would be overwritten by merge:\n\tnew\n\
            Please move or remove them before you merge.";
        assert_eq!(messages[1], expected);
    }
}
