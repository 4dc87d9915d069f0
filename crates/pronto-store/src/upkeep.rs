//! Upkeep: merging tables, and deleting what has expired. Any number of processes may do it at the same
//! time.

pub(crate) mod due;
mod pass;
mod repack;
mod role;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::backend::{Backend, Fault, has_fault};
use crate::bucket::{Bucket as _, Content};
use crate::change::{Change, MergedTables, Replacement};
use crate::clock::Clock as _;
use crate::generations::{Generations as _, Listed, time_of};
use crate::manifest::{Manifest, Policy};
use crate::name::{self, CONTENTS};
use crate::repository::Repository;
use crate::upload::AT_ONCE;
use crate::{Error, Result, tables};

pub use pass::{Upkeep, UpkeepOptions};
pub use repack::Repacked;
pub use role::{Pass, UpkeepRole};

/// The number of objects in a page of a listing.
const PAGE: usize = 1000;

/// The number of objects that were deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// Generations.
    pub generations: u64,
    /// Objects that newer generations do not refer to.
    pub dropped: u64,
    /// Objects that no generation ever referred to.
    pub orphans: u64,
}

/// The present by one clock, and how old things must be.
struct Ages {
    now: Duration,
    retention: Duration,
    grace: Duration,
}

impl Ages {
    fn has_expired(&self, next: &Listed) -> bool {
        self.now.saturating_sub(next.created) > self.retention
    }

    fn is_old(&self, modified: Duration) -> bool {
        self.now.saturating_sub(modified) > self.grace
    }
}

impl<B: Backend> Repository<B> {
    /// Merges tables of refs, so that each is larger than all newer ones together. Returns whether that was
    /// necessary.
    ///
    /// # Errors
    /// As for [`commit`](Repository::commit); of kind [`Conflict`](crate::ErrorKind::Conflict) if another process has done
    /// it.
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
            let content = Content::Bytes(bytes.clone());
            self.write(vec![(name::table(record.upload), content)])
                .await?;
        }
        let replacement = Replacement {
            tables: Some(MergedTables {
                old: records[range].iter().map(|record| record.upload).collect(),
                new,
                begun,
            }),
            ..Replacement::default()
        };
        self.commit(Change::Replace(replacement)).await?;
        Ok(true)
    }

    /// Deletes generations after the retention, with the objects that only they refer to. Costs a
    /// listing of the generations, and for each that is deleted one read and one deletion, and one deletion
    /// for each object.
    ///
    /// # Errors
    /// Those of the store. What was not deleted is deleted by the next call.
    pub async fn expire(&self) -> Result<Deleted> {
        let policy = self.tip().await?.manifest.policy;
        let generations = self.backend.generations();
        let now = self.persist(|| generations.time(&self.prefix)).await?;
        let ages = self.ages(policy, now);
        let listed = self.persist(|| generations.list(&self.prefix)).await?;
        let mut deleted = Deleted::default();
        // From the oldest on: only generations up to the expired one may refer to what the next one drops.
        for pair in listed.windows(2).rev() {
            let [next, expired] = pair else { continue };
            if !ages.has_expired(next) {
                break;
            }
            let drops = self.drops_of(next.number).await?;
            // The next generation is there until this one is gone, so that a killed process leaves nothing.
            deleted.dropped += self.delete(drops).await?;
            let remove = || generations.remove(&self.prefix, expired.number);
            self.persist(remove).await?;
            deleted.generations += 1;
        }
        Ok(deleted)
    }

    /// Deletes objects that no generation refers to, such as those of pushes that were never committed.
    /// Costs a listing of all objects, two calls for the time, and one read for each retained generation that drops something.
    ///
    /// # Errors
    /// Those of the store. What was not deleted is deleted by the next call.
    pub async fn sweep(&self) -> Result<Deleted> {
        let policy = self.tip().await?.manifest.policy;
        // Objects have the time of the store, also if generations are in a database with another clock.
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
        // Read after the listing: a commit that uses a candidate came before that, because the uploads of
        // a commit are younger than the grace period.
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
                // It has expired, and so have all that have what it drops.
                None => break,
            }
        }
        let orphans = self.delete(candidates.into_keys().collect()).await?;
        Ok(Deleted {
            orphans,
            ..Deleted::default()
        })
    }

    /// Returns the time of the clock that dates objects. Costs two calls.
    ///
    /// # Errors
    /// Those of the store.
    async fn time(&self) -> Result<Duration> {
        self.persist(|| time_of(self.backend.bucket(), &self.prefix))
            .await
    }

    /// `now` is the time of the clock with which the ages are measured.
    fn ages(&self, policy: Policy, now: Duration) -> Ages {
        let seconds = match has_fault(&*self.backend, Fault::NoGrace) {
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

    /// Lists the objects of the repository below `directory`: names without the prefix, sizes and times.
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

    /// Deletes objects, several at once. Returns how many.
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
