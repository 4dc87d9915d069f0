//! Missing objects of a partial clone during the selection of objects.

use pronto_hash::{ObjectId, oid};
use pronto_repository::Result;
use pronto_repository::objects::from_odb;

use super::ObjectSelection;

/// The treatment of selected objects that are missing because the repository is a partial clone
/// (`--missing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingObjects {
    /// A missing object is an error (`--missing=error`).
    #[default]
    Fail,
    /// A missing object is recorded and omitted, with all objects that are only reachable from it.
    LeaveOut,
}

impl ObjectSelection<'_> {
    /// Returns whether missing objects are omitted.
    pub(super) fn leaves_out(&self) -> bool {
        self.select.missing == MissingObjects::LeaveOut
    }

    /// Returns whether an object is missing and therefore omitted.
    pub(super) fn is_left_out(&self, id: &oid) -> Result<bool> {
        Ok(self.leaves_out() && !self.store.contains(id).map_err(from_odb)?)
    }

    /// Records a missing tree of the receiver.
    pub(super) fn note_unknown(&mut self, id: &oid) {
        if self.leaves_out() {
            self.selection.unknown.push(id.to_owned());
        }
    }

    /// Returns the content of a selected tree; `None` if the tree is missing and omitted.
    pub(super) fn promised_tree(&mut self, id: &oid) -> Result<Option<Vec<u8>>> {
        match self.is_left_out(id)? {
            true => Ok(None),
            false => self.read_tree(id).map(Some),
        }
    }

    /// Moves the selected objects that are missing to the list of missing objects, and removes missing
    /// delta bases.
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
