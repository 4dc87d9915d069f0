//! Missing objects that are fetched when they are read.

use pronto_hash::oid;

use super::Store;
use crate::error::Error;

/// Objects that a store lacks and another place promises to have, as those of a partial clone.
pub trait Promised: std::fmt::Debug + Send + Sync {
    /// Fetches `id` into the directory of the store. Returns whether it did: not if fetching is turned off.
    ///
    /// # Errors
    /// `Missing` if no place that promises to have objects sends it.
    fn fetch(&self, id: &oid) -> Result<bool, Error>;
}

impl Store {
    /// Lets this store and its clones fetch missing objects when they are read. Only the first call counts. Asking
    /// whether an object is [there](Self::contains) fetches nothing.
    pub fn fetch_missing_with(&self, promised: Box<dyn Promised>) {
        // Another caller may have been first.
        let _ = self.inner.promised.set(promised);
    }

    /// Fetches `id`, which was not found. Returns whether to look again.
    #[cold]
    pub(super) fn fetch_missing(&self, id: &oid) -> Result<bool, Error> {
        let Some(promised) = self.inner.promised.get() else {
            return Ok(false);
        };
        if id.is_null() || id.is_empty_tree() || !promised.fetch(id)? {
            return Ok(false);
        }
        self.refresh()?;
        Ok(true)
    }
}
