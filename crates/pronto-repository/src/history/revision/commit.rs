//! The parents, tree and date of commits, with grafts and the shallow boundary.

use bstr::ByteSlice;
use pronto_hash::{ObjectId, oid};

use crate::links::links_in;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::CommitLinks;

impl Repository {
    /// Returns the parents, tree and date of the commit `id`. `buffer` holds the content of the commit
    /// afterwards.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the object does not exist, is not a commit, or is malformed.
    pub fn commit_links(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
        let mut links = self.uncut_links(id, buffer)?;
        let cut = self.shallow_commits()?;
        if !cut.is_empty()
            && cut.binary_search(&id.to_owned()).is_ok()
            && !self.grafts()?.contains(id)
        {
            links.parents.clear();
        }
        Ok(links)
    }

    /// Does the same as [`commit_links`](Self::commit_links), but ignores the shallow boundary.
    pub(crate) fn uncut_links(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
        let mut links = links_in(self.objects()?, id, buffer)?;
        if let Some(parents) = self.grafts()?.parents(id) {
            links.parents = parents.to_vec();
        }
        Ok(links)
    }

    /// Returns the shallow commits (the file `shallow`), sorted.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file `shallow` cannot be read, or [`ErrorKind::Object`] if a
    /// line is not an object id.
    pub fn shallow_commits(&self) -> Result<&[ObjectId]> {
        if let Some(known) = self.shallow.get() {
            return Ok(known);
        }
        let mut ids = Vec::new();
        match pronto_io::untrusted::content(self.shallow_path()) {
            Ok(text) => {
                for line in text.lines().filter(|line| !line.is_empty()) {
                    let Ok(id) = pronto_hash::parse_hex(line) else {
                        let message = format!("bad shallow line: {}", line.as_bstr());
                        return Err(Error::new(ErrorKind::Corrupt, message));
                    };
                    ids.push(id);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = "could not read the shallow file";
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
        }
        ids.sort_unstable();
        Ok(self.shallow.get_or_init(|| ids))
    }
}
