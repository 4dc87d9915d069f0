//! Missing objects of a partial clone, while objects are selected.

use pronto_hash::{ObjectId, oid};

use super::Walk;
use crate::Result;
use crate::objects::from_odb;

/// The treatment of selected objects that are missing because the repository is a partial clone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// A missing object is an error.
    #[default]
    Fail,
    /// A missing object is left out, with all that only it leads to, and recorded.
    LeaveOut,
}

impl Walk<'_> {
    /// The content of a tree that was selected; `None` if it is missing and left out.
    pub(super) fn promised_tree(&mut self, id: &oid) -> Result<Option<Vec<u8>>> {
        if self.select.missing == Missing::LeaveOut && !self.store.contains(id).map_err(from_odb)? {
            return Ok(None);
        }
        self.read_tree(id).map(Some)
    }

    /// Moves those of the selected objects that are missing to the missing ones.
    pub(super) fn leave_out_missing(&mut self) -> Result<()> {
        if self.select.missing == Missing::Fail {
            return Ok(());
        }
        let members = std::mem::take(&mut self.selection.members);
        let ids: Vec<ObjectId> = members.iter().map(|member| member.id).collect();
        let found = self.store.contains_batch(&ids).map_err(from_odb)?;
        for (member, is_here) in members.into_iter().zip(found) {
            match is_here {
                true => self.selection.members.push(member),
                false => self.selection.missing.push(member.id),
            }
        }
        Ok(())
    }
}
