//! Upkeep: merging tables, and deleting expired data. Any number of processes may do this
//! concurrently.

pub(crate) mod due;
mod pass;
mod repack;
mod role;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::backend::{PlantedFault, StoreBackend, has_fault};
use crate::bucket::{Bucket as _, UploadContent};
use crate::change::{MergedTables, PackReplacement, StoreChange};
use crate::clock::Clock as _;
use crate::generations::{GenerationStore as _, GenerationSummary, time_of};
use crate::manifest::{Manifest, RetentionPolicy};
use crate::name::{self, CONTENTS};
use crate::repository::StoreRepository;
use crate::upload::AT_ONCE;
use crate::{Error, Result, tables};

pub use pass::{UpkeepOptions, UpkeepPass};
pub use repack::Repacked;
pub use role::{Pass, UpkeepRole};

/// The number of objects in a page of a listing.
const PAGE: usize = 1000;

/// The numbers of objects that were deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The number of generations.
    pub generations: u64,
    /// The number of objects that newer generations do not reference.
    pub dropped: u64,
    /// The number of objects that no generation ever referenced.
    pub orphans: u64,
}

/// The current time of a clock, and the minimum ages for deletion.
struct Ages {
    now: Duration,
    retention: Duration,
    grace: Duration,
}

impl Ages {
    fn has_expired(&self, next: &GenerationSummary) -> bool {
        self.now.saturating_sub(next.created) > self.retention
    }

    fn is_old(&self, modified: Duration) -> bool {
        self.now.saturating_sub(modified) > self.grace
    }
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Merges tables of refs, so that each table is larger than all newer ones together. Returns
    /// whether a merge was necessary.
    ///
    /// # Errors
    /// Fails for the same reasons as [`commit`](StoreRepository::commit), and with
    /// [`Conflict`](crate::ErrorKind::Conflict) if another process has merged the tables.
    pub async fn merge_tables(&self) -> Result<bool> {
        let newest = self.latest().await?;
        let Some(range) = newest.refs.due(0) else {
            return Ok(false);
        };
        let (records, refs) = (&newest.manifest.tables, &newest.refs);
        let begun = self.backend.clock().now();
        let kind = newest.manifest.hash;
        let new = tables::merge(records, refs, range.clone(), kind, self.upload_id())?;
        if let Some((record, bytes)) = &new {
            let content = UploadContent::Bytes(bytes.clone());
            self.write(vec![(name::table(record.upload), content)])
                .await?;
        }
        let replacement = PackReplacement {
            tables: Some(MergedTables {
                old: records[range].iter().map(|record| record.upload).collect(),
                new,
                begun,
            }),
            ..PackReplacement::default()
        };
        self.commit(StoreChange::Replace(replacement)).await?;
        Ok(true)
    }

    /// Deletes generations after the retention, and the objects that only they reference. The cost
    /// is a listing of the generations, one read and one deletion for each expired generation, and
    /// one deletion for each object.
    ///
    /// # Errors
    /// Fails with the errors of the store. The next call deletes the remaining data.
    pub async fn expire(&self) -> Result<Deleted> {
        let policy = self.tip().await?.manifest.policy;
        let generations = self.backend.generations();
        let now = self.persist(|| generations.time(&self.prefix)).await?;
        let ages = self.ages(policy, now);
        let listed = self.persist(|| generations.list(&self.prefix)).await?;
        let mut deleted = Deleted::default();
        // The loop starts with the oldest generation, because only generations up to the expired
        // one may reference the objects that the next one drops.
        for pair in listed.windows(2).rev() {
            let [next, expired] = pair else { continue };
            if !ages.has_expired(next) {
                break;
            }
            let drops = self.drops_of(next.number).await?;
            // The next generation is deleted after its dropped objects, so that a killed process
            // leaves no orphans.
            deleted.dropped += self.delete(drops).await?;
            let remove = || generations.remove(&self.prefix, expired.number);
            self.persist(remove).await?;
            deleted.generations += 1;
        }
        Ok(deleted)
    }

    /// Deletes objects that no generation references, such as those of pushes that were never
    /// committed. The cost is a listing of all objects, two calls for the time, and one read for
    /// each retained generation that drops objects.
    ///
    /// # Errors
    /// Fails with the errors of the store. The next call deletes the remaining data.
    pub async fn sweep(&self) -> Result<Deleted> {
        let policy = self.tip().await?.manifest.policy;
        // Objects have the time of the store, even if generations are in a database with another
        // clock.
        let ages = self.ages(policy, self.time().await?);
        let mut candidates = BTreeMap::new();
        for directory in CONTENTS {
            self.list(directory, |name, _, modified| {
                if ages.is_old(modified) {
                    candidates.insert(name, ());
                }
            })
            .await?;
        }
        // The generation is read after the listing. A commit that uses a candidate happened before
        // the listing, because the uploads of a commit are younger than the grace period.
        let newest = self.tip().await?;
        for object in newest.manifest.objects() {
            candidates.remove(&object.name);
        }
        let mut dropping = newest.manifest.clone();
        loop {
            for name in &dropping.drops {
                candidates.remove(name);
            }
            if dropping.dropped == 0 || candidates.is_empty() {
                break;
            }
            match self.manifest(dropping.dropped).await? {
                Some(manifest) => dropping = manifest,
                // The generation has expired, and so have all generations that reference the
                // objects that it drops.
                None => break,
            }
        }
        let orphans = self.delete(candidates.into_keys().collect()).await?;
        Ok(Deleted {
            orphans,
            ..Deleted::default()
        })
    }

    /// Returns the time of the clock that determines the times of objects. The cost is two calls.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    async fn time(&self) -> Result<Duration> {
        self.persist(|| time_of(self.backend.bucket(), &self.prefix))
            .await
    }

    /// Returns the ages for `policy`, where `now` is the time of the clock that determines the
    /// ages.
    fn ages(&self, policy: RetentionPolicy, now: Duration) -> Ages {
        let seconds = match has_fault(&*self.backend, PlantedFault::NoGrace) {
            true => |_| Duration::ZERO,
            false => Duration::from_secs,
        };
        Ages {
            now,
            retention: seconds(policy.retention_seconds),
            grace: seconds(policy.grace_seconds),
        }
    }

    async fn drops_of(&self, number: u64) -> Result<Vec<String>> {
        let manifest = self.manifest(number).await?;
        Ok(manifest.map(|manifest| manifest.drops).unwrap_or_default())
    }

    async fn manifest(&self, number: u64) -> Result<Option<Manifest>> {
        let bytes: Option<Bytes> = self.read(number).await?;
        let manifest = bytes.map(|bytes| self.decode(&bytes, number));
        manifest.transpose()
    }

    /// Lists the objects of the repository below `directory`, with names without the prefix, sizes
    /// and times.
    pub(crate) async fn list(
        &self,
        directory: &str,
        mut visit: impl FnMut(String, u64, Duration),
    ) -> Result<()> {
        let bucket = self.backend.bucket();
        let directory = format!("{}{directory}", self.prefix);
        let mut page = None;
        loop {
            let call = || bucket.list(&directory, PAGE, page.as_deref());
            let listed = self.persist(call).await?;
            for entry in listed.entries {
                let name = entry.name.strip_prefix(&self.prefix);
                if let Some(name) = name.filter(|name| name::is_content(name)) {
                    visit(name.to_owned(), entry.size_bytes, entry.modified);
                }
            }
            match listed.next {
                None => return Ok(()),
                next => page = next,
            }
        }
    }

    /// Deletes objects, several concurrently. Returns their number.
    async fn delete(&self, names: Vec<String>) -> Result<u64> {
        let calls = names.into_iter().map(|name| async move {
            let name = format!("{}{name}", self.prefix);
            self.persist(|| self.backend.bucket().delete(&name)).await?;
            Ok::<u64, Error>(1)
        });
        let mut calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        let mut deleted = 0;
        while let Some(count) = calls.try_next().await? {
            deleted += count;
        }
        Ok(deleted)
    }
}
