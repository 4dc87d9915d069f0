//! The line endings of files and the attributes for them: `git ls-files --eol`.

use crate::attributes::{self, AttributeCheck, AttributeSelection, AttributeState};
use crate::{Repository, Result, path};
use bstr::BStr;
use pronto_index::{EntryRef, mode};
use pronto_io::untrusted::{self, SymlinkPolicy};
use pronto_worktree::filter::{attributes_in_words, endings_in_words};

/// Returns the line endings of one path after another in Git's words (`lf`, `mixed`, `text=auto`).
/// The text is empty for entries other than files.
#[derive(Debug)]
pub struct LineEndings<'r> {
    repository: &'r Repository,
    attributes: AttributeCheck<'r>,
}

/// Prepares lookups of line endings.
///
/// # Errors
/// The same as for [`check`](crate::attributes::check).
pub fn line_endings(repository: &Repository) -> Result<LineEndings<'_>> {
    let names = ["text", "crlf", "eol"].map(str::to_owned);
    let attributes = attributes::check(repository, AttributeSelection::Named(names.into()), false)?;
    Ok(LineEndings {
        repository,
        attributes,
    })
}

impl LineEndings<'_> {
    /// Returns the line endings of the blob of an entry (`i/`). Reads the blob.
    ///
    /// # Errors
    /// Fails if the object cannot be read.
    pub fn in_index(&self, entry: &EntryRef<'_>) -> Result<&'static str> {
        if entry.mode & mode::TYPE != mode::FILE & mode::TYPE {
            return Ok("");
        }
        let mut content = Vec::new();
        let store = self.repository.objects()?;
        let found = store.find(entry.id, &mut content);
        Ok(match found.map_err(crate::objects::from_odb)? {
            Some(_) => endings_in_words(&content),
            None => "",
        })
    }

    /// Returns the line endings of the file at `path` (`w/`). Reads the file.
    pub fn in_worktree(&self, path: &BStr) -> &'static str {
        let Some(top) = self.repository.work_tree() else {
            return "";
        };
        let file = top.join(path::borrow(path));
        let metadata = file.symlink_metadata();
        if !metadata.is_ok_and(|metadata| metadata.is_file()) {
            return "";
        }
        let content = untrusted::read(&file, SymlinkPolicy::Refuse, u64::MAX);
        content.map_or("", |content| endings_in_words(&content))
    }

    /// Returns the line endings that the attributes of `path` require (`attr/`).
    ///
    /// # Errors
    /// Fails if an attributes file cannot be read.
    pub fn by_attributes(&mut self, path: &BStr) -> Result<&'static str> {
        let states = self.attributes.states(path)?;
        let unspecified = AttributeState::Unspecified;
        let state = |at: usize| states.get(at).map_or(&unspecified, |found| &found.state);
        Ok(attributes_in_words([state(0), state(1), state(2)]))
    }
}
