//! Missing objects of a partial clone, while objects are selected.

use pronto_hash::{ObjectId, oid};
use pronto_io::progress::Progress;

use super::Walk;
use crate::objects::from_odb;
use crate::repository::promised::Promised;
use crate::{FETCH_PROMISED, Result};

/// What happens to a selected object that is missing because the repository is a partial clone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    #[default]
    Fail,
    /// It is left out: the receiver can have it from the same remote.
    LeaveOut,
    /// It is fetched from the remote that promised it.
    Fetch,
}

impl Walk<'_> {
    /// The content of a tree that was selected; `None` if it is missing and left out.
    pub(super) fn promised_tree(&mut self, id: &oid) -> Result<Option<Vec<u8>>> {
        if self.select.missing != Missing::Fail && !self.store.contains(id).map_err(from_odb)? {
            match self.select.missing {
                Missing::Fetch => self.fetch(&[id.to_owned()], &())?,
                _ => return Ok(None),
            }
        }
        self.read_tree(id).map(Some)
    }

    /// Leaves out or fetches those of the selected objects that are missing.
    pub(super) fn supply_missing(&mut self, progress: &dyn Progress) -> Result<()> {
        if self.select.missing == Missing::Fail {
            return Ok(());
        }
        let members = &self.selection.members;
        let ids: Vec<ObjectId> = members.iter().map(|member| member.id).collect();
        let mut found = self
            .store
            .contains_batch(&ids)
            .map_err(from_odb)?
            .into_iter();
        if self.select.missing == Missing::Fetch {
            let missing = ids.iter().zip(found).filter(|(_, found)| !found);
            let missing: Vec<ObjectId> = missing.map(|(id, _)| *id).collect();
            return self.fetch(&missing, progress);
        }
        let members = &mut self.selection.members;
        members.retain(|_| found.next().unwrap_or(false));
        Ok(())
    }

    fn fetch(&self, ids: &[ObjectId], progress: &dyn Progress) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        FETCH_PROMISED(Promised {
            repository: self.repository,
            objects: &self.store,
            ids: &mut ids.iter().copied(),
            progress,
            interrupt: self.interrupt,
        })
    }
}
