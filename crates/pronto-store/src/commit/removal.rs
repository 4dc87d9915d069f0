//! The removal of a repository, by a generation that marks it as removed.

use std::sync::Arc;

use super::Settled;
use super::plan::GenerationPlan;
use crate::Result;
use crate::backend::StoreBackend;
use crate::clock::Clock as _;
use crate::repository::StoreRepository;

impl<B: StoreBackend> StoreRepository<B> {
    /// Removes the repository. Requests that begin later do not find it. Upkeep deletes the objects
    /// after the retention. The repository can be created again.
    ///
    /// # Errors
    /// Fails for the same reasons as [`latest`](StoreRepository::latest), and with
    /// `ErrorKind::Unknown`(crate::ErrorKind::Unknown) if the repository may or may not be
    /// removed.
    pub async fn remove(&self) -> Result<()> {
        let _turn = self.queue.turn.lock().await;
        let begun = self.backend.clock().now();
        loop {
            let known = self.base(begun).await?;
            let base = &*known.generation;
            if base.manifest.is_removed {
                return Err(self.not_found());
            }
            let plan = GenerationPlan::removal(self, base)?;
            let asked = self.backend.clock().now();
            match (self.create_next(base, &plan).await?, &plan.next) {
                (Settled::Ours, Some(next)) => {
                    self.learn(Arc::new(next.generation()), asked, None);
                    return Ok(());
                }
                (Settled::Ours, None) => return Ok(()),
                (Settled::Theirs(bytes), _) => {
                    let found = self.accept(&bytes, base.number() + 1, Some(base)).await?;
                    self.learn(Arc::new(found), known.confirmed, None);
                }
            }
        }
    }
}
