//! The links of commits, with grafts and shallow boundaries.

use bstr::ByteSlice;
use pronto_hash::{ObjectId, oid};

use crate::links::links_in;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::CommitLinks;

impl Repository {
    /// Returns the links of the commit `id`. `buffer` holds its content afterwards.
    ///
    /// # Errors
    /// It does not exist, is no commit, or is malformed.
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

    /// Like [`commit_links`](Self::commit_links), wherever history was cut off.
    pub(crate) fn uncut_links(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
        let mut links = links_in(self.objects()?, id, buffer)?;
        if let Some(parents) = self.grafts()?.parents(id) {
            links.parents = parents.to_vec();
        }
        Ok(links)
    }

    /// The commits at which history was cut off, sorted.
    ///
    /// # Errors
    /// The file `shallow` cannot be read, or has a line that is no object id.
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
