//! Command line arguments that select revisions, as in `git rev-list` and `git bundle`.

use bstr::{BStr, BString, ByteSlice};

use super::{RefSelection, RevisionSet};
use crate::{Repository, Result};

/// The options that select refs below a directory.
const DIRECTORIES: [(&str, &str); 3] = [
    ("--branches", "refs/heads/"),
    ("--tags", "refs/tags/"),
    ("--remotes", "refs/remotes/"),
];

/// Collects a [`RevisionSet`] from arguments, in their order. An option can affect the arguments that
/// follow.
#[derive(Debug)]
pub struct RevisionParser<'a> {
    repository: &'a Repository,
    set: RevisionSet,
    is_negated: bool,
    /// Patterns of `--exclude` for the next selection of refs.
    excluded: Vec<BString>,
    is_given: bool,
    /// Whether `--all` includes only the `HEAD` of this worktree (`--single-worktree`).
    pub single_worktree: bool,
}

impl<'a> RevisionParser<'a> {
    /// Creates a parser for revisions of `repository`, with an empty set.
    pub fn new(repository: &'a Repository) -> Self {
        RevisionParser {
            repository,
            set: RevisionSet::default(),
            is_negated: false,
            excluded: Vec::new(),
            is_given: false,
            single_worktree: false,
        }
    }

    /// Handles `--not`, `--all`, `--branches`, `--tags`, `--remotes` (with or without `=PATTERN`),
    /// `--glob=PATTERN` and `--exclude=PATTERN`. Returns `false` for all other options.
    ///
    /// Costs a pass over the selected refs, and an object lookup for each.
    ///
    /// # Errors
    /// As for [`RevisionSet::add_refs`].
    pub fn option(&mut self, option: &BStr) -> Result<bool> {
        if option == "--not" {
            self.is_negated = !self.is_negated;
        } else if option == "--all" {
            self.refs(&RefSelection::everything())?;
            self.heads()?;
        } else if let Some(pattern) = option.strip_prefix(b"--glob=") {
            self.refs(&RefSelection::glob(pattern.as_bstr()))?;
        } else if let Some(pattern) = option.strip_prefix(b"--exclude=") {
            self.excluded.push(pattern.into());
        } else {
            let found = DIRECTORIES.iter().find_map(|(name, directory)| {
                match option.strip_prefix(name.as_bytes())? {
                    [] => Some((directory, None)),
                    [b'=', pattern @ ..] => Some((directory, Some(pattern.as_bstr()))),
                    _ => None,
                }
            });
            let Some((directory, pattern)) = found else {
                return Ok(false);
            };
            self.refs(&RefSelection::directory(*directory).matching(pattern))?;
        }
        Ok(true)
    }

    /// Handles a revision or range. Returns `false` if `text` is not a revision.
    ///
    /// # Errors
    /// As for [`RevisionSet::add_text`].
    pub fn revision(&mut self, text: &BStr) -> Result<bool> {
        let is_known = self.set.add_text(self.repository, text, self.is_negated)?;
        self.is_given |= is_known;
        Ok(is_known)
    }

    /// Ends the effect of `--not`.
    pub fn end_negation(&mut self) {
        self.is_negated = false;
    }

    /// Returns whether a revision or a selection of refs was given, even a selection that matches no
    /// ref.
    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// Returns the collected set.
    pub fn into_set(self) -> RevisionSet {
        self.set
    }

    fn refs(&mut self, selection: &RefSelection) -> Result<()> {
        let excluded = std::mem::take(&mut self.excluded);
        self.is_given = true;
        self.set
            .add_refs(self.repository, selection, &excluded, self.is_negated)
    }

    fn heads(&mut self) -> Result<()> {
        if let Some(id) = self.repository.refs().head()?.id() {
            self.set.add("HEAD", id, self.is_negated);
        }
        if !self.single_worktree {
            for name in self.repository.other_head_names() {
                // As in Git, broken refs are skipped.
                if let Ok(Some(id)) = self.repository.refs().id_of(&name) {
                    self.set.add(name, id, self.is_negated);
                }
            }
        }
        Ok(())
    }
}
