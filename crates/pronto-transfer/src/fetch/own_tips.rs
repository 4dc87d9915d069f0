//! Checks that the local refs lead to objects.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;

use super::map::FetchedRef;
use super::{FetchRun, Outcome};
use crate::objects::from_odb;
use crate::remote::Absent;
use crate::{Error, ErrorKind, Result};

impl FetchRun<'_> {
    /// Refuses the fetch of `entries` if a local ref is broken, or leads to a missing object: a new
    /// object counts as complete if its history ends at objects of the local refs. Git refuses when it
    /// has received the objects, and keeps them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Incomplete`] and the ref as its cause.
    pub(super) fn check_own_tips(&self, entries: &[FetchedRef], outcome: &Outcome) -> Result<()> {
        let is_other = !self.deepen.is_none() || self.options.rules.is_some();
        if entries.is_empty() || is_other || self.repository.has_promisor()? {
            return Ok(());
        }
        let pruned: HashSet<&BString> = match self.options.dry_run {
            true => HashSet::new(),
            false => outcome.updates.iter().map(|update| &update.local).collect(),
        };
        let head = self.repository.refs().head()?.id();
        let mut ids: Vec<ObjectId> = self.ours.values().copied().chain(head).collect();
        ids.sort_unstable();
        ids.dedup();
        let objects = self.repository.objects()?;
        let found = objects.contains_batch(&ids).map_err(from_odb)?;
        let missing: HashSet<ObjectId> = ids
            .into_iter()
            .zip(found)
            .filter_map(|(id, found)| (!found).then_some(id))
            .collect();
        let without_object = self.ours.iter().filter(|(_, id)| missing.contains(*id));
        let names = without_object.map(|(name, _)| name).chain(&self.broken);
        let first = names.filter(|name| !pruned.contains(name)).min();
        let detached = head.filter(|id| missing.contains(id)).map(|_| "HEAD");
        let name = first.map(|name| name.as_bstr());
        match name.or(detached.map(Into::into)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{} did not send all necessary objects", self.source);
                let error = Error::new(ErrorKind::Incomplete, message);
                Err(error.because(Absent::Reference(name.to_owned())))
            }
        }
    }
}
