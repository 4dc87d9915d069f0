//! The reasons for which a plan is refused: content that it would lose.

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

    /// Returns the message of Git's plumbing, which names the first path alone.
    pub fn first(&self) -> Option<String> {
        type Say = fn(&BStr) -> String;
        let lists: [(&[BString], Say); 7] = [
            (&self.staged, |path| {
                format!("Entry '{path}' would be overwritten by merge. Cannot merge.")
            }),
            (&self.modified, |path| {
                format!("Entry '{path}' not uptodate. Cannot merge.")
            }),
            (&self.directories, |path| {
                format!("Updating '{path}' would lose untracked files in it")
            }),
            (&self.current_directory, |path| {
                format!("Refusing to remove '{path}' since it is the current working directory.")
            }),
            (&self.overwritten, |path| {
                format!("Untracked working tree file '{path}' would be overwritten by merge.")
            }),
            (&self.removed, |path| {
                format!("Untracked working tree file '{path}' would be removed by merge.")
            }),
            (&self.overlapping, |path| {
                format!("Entry '{path}' overlaps with '{path}'.  Cannot bind.")
            }),
        ];
        let firsts = lists
            .iter()
            .filter_map(|(paths, say)| Some((paths.first()?, say)));
        let (path, say) = firsts.min_by_key(|(path, _)| *path)?;
        Some(say(path.as_bstr()))
    }

    /// Returns Git's message, from `error:` to before `Aborting`. `operation` is Git's word for the
    /// operation ("checkout", "merge"), `advice` the advised action ("switch branches", "merge";
    /// `None` for no advice).
    pub fn message(&self, operation: &str, advice: Option<&str>) -> String {
        let mut text = String::new();
        let mut say = |paths: &[BString], head: String, tail: Option<String>| {
            if paths.is_empty() {
                return;
            }
            text.push_str(&format!("error: {head}\n"));
            for path in paths {
                text.push_str(&format!("\t{}\n", path.to_str_lossy()));
            }
            // Git ends the advice of its format with the line end of `error()`.
            text.push_str(&tail.unwrap_or_default());
            text.push('\n');
        };
        let local = format!(
            "Your local changes to the following files would be overwritten by {operation}:"
        );
        let stash = advice
            .map(|verb| format!("Please commit your changes or stash them before you {verb}."));
        let moving = advice.map(|verb| format!("Please move or remove them before you {verb}."));
        let untracked = |what| {
            format!("The following untracked working tree files would be {what} by {operation}:")
        };
        say(&self.staged, local.clone(), stash.clone());
        say(&self.modified, local, stash);
        let directories = "Updating the following directories would lose untracked files in them:";
        say(&self.directories, directories.to_owned(), None);
        let current = "Refusing to remove the current working directory:";
        say(&self.current_directory, current.to_owned(), None);
        say(&self.overwritten, untracked("overwritten"), moving.clone());
        say(&self.removed, untracked("removed"), moving);
        text
    }
}

fn is_below(path: &BStr, directory: &BStr) -> bool {
    let rest = path.strip_prefix(directory.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}
