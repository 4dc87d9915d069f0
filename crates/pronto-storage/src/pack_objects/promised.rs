//! Missing objects of a partial clone, while objects are selected.

use pronto_hash::{ObjectId, oid};
use pronto_repository::Result;
use pronto_repository::objects::from_odb;

use super::Walk;

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
    /// Whether missing objects are left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.select.missing == Missing::LeaveOut
    }

    /// Whether an object is missing and therefore left out.
    pub(super) fn is_left_out(&self, id: &oid) -> Result<bool> {
        Ok(self.leaves_out() && !self.store.contains(id).map_err(from_odb)?)
    }

    /// Notes a missing tree of the receiver.
    pub(super) fn note_unknown(&mut self, id: &oid) {
        if self.leaves_out() {
            self.selection.unknown.push(id.to_owned());
        }
    }

    /// The content of a tree that was selected; `None` if it is missing and left out.
    pub(super) fn promised_tree(&mut self, id: &oid) -> Result<Option<Vec<u8>>> {
        match self.is_left_out(id)? {
            true => Ok(None),
            false => self.read_tree(id).map(Some),
        }
    }

    /// Moves those of the selected objects that are missing to the missing ones, and drops missing
    /// bases.
    pub(super) fn leave_out_missing(&mut self) -> Result<()> {
        if !self.leaves_out() {
            return Ok(());
        }
        let bases: Vec<ObjectId> = self.selection.bases.iter().map(|base| base.id).collect();
        let mut found = self
            .store
            .contains_batch(&bases)
            .map_err(from_odb)?
            .into_iter();
        self.selection.bases.retain(|_| found.next() == Some(true));
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
