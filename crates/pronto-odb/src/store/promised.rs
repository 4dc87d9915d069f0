//! Fetches missing objects of a partial clone on demand.

use pronto_hash::oid;

use super::Store;
use crate::error::Error;

/// The source of the promised objects of a partial clone, which the store does not have.
pub trait PromisedObjects: std::fmt::Debug + Send + Sync {
    /// Fetches `id` into the directory of the store. Returns `false` if lazy fetching is turned off
    /// (`GIT_NO_LAZY_FETCH`).
    ///
    /// # Errors
    /// Fails with `ErrorKind::Missing` if no promisor remote sends the object.
    fn fetch(&self, id: &oid) -> Result<bool, Error>;
}

impl Store {
    /// Enables this store and its clones to fetch missing objects when they are read. Only the
    /// first call has an effect. Checking whether an object [exists](Self::contains) does not fetch
    /// it.
    pub fn fetch_missing_with(&self, promised: Box<dyn PromisedObjects>) {
        // Another caller may have set the source first.
        let _ = self.inner.promised.set(promised);
    }

    /// Fetches `id`, which was not found. Returns whether the search must be repeated.
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
