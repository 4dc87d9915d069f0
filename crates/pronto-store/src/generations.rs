//! The sequence of generations, where the commits of a repository are decided.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::bucket::{Bucket, Content, Creation, Entry};
use crate::{Result, name};

/// The largest manifest.
pub const MOST_MANIFEST_BYTES: u64 = 8 << 20;

/// The number of generations in a page of a listing.
const PAGE: usize = 1000;

/// A generation in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The number.
    pub number: u64,
    /// The time at which it was created, since 1970, by the clock of the store.
    pub created: Duration,
}

/// The generations of repositories. [`InBucket`] keeps them in the store itself; a database can do it
/// for stores that have no conditional creation.
///
/// `prefix` is that of a repository and ends with a slash. Errors are those of
/// [`Bucket`].
pub trait Generations: Send + Sync + 'static {
    /// Returns the newest generation; `None` if there is none.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn newest(&self, prefix: &str) -> impl Future<Output = Result<Option<Listed>>> + Send;

    /// Returns the manifest of a generation; `None` if there is none.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn read(&self, prefix: &str, number: u64)
    -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Creates a generation unless it exists. This decides about a commit.
    ///
    /// # Errors
    /// The store does not answer or refuses. The generation may exist nevertheless, or appear later.
    fn create(
        &self,
        prefix: &str,
        number: u64,
        manifest: Bytes,
    ) -> impl Future<Output = Result<Creation>> + Send;

    /// Returns all generations, the newest first.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<Listed>>> + Send;

    /// Removes a generation, if there is one.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn remove(&self, prefix: &str, number: u64) -> impl Future<Output = Result<()>> + Send;

    /// Returns the present time of the clock that [`Listed::created`] is measured with, or a time
    /// shortly before.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn time(&self, prefix: &str) -> impl Future<Output = Result<Duration>> + Send;
}

/// Generations as objects of the store.
#[derive(Debug)]
pub struct InBucket<B>(pub Arc<B>);

impl<B: Bucket> Generations for InBucket<B> {
    async fn newest(&self, prefix: &str) -> Result<Option<Listed>> {
        // Objects of other names may be in between.
        let mut page = None;
        loop {
            let listed = self.0.list(&directory(prefix), 1, page.as_deref()).await?;
            let found = listed
                .entries
                .iter()
                .find_map(|entry| read_entry(prefix, entry));
            if found.is_some() || listed.next.is_none() {
                return Ok(found);
            }
            page = listed.next;
        }
    }

    async fn read(&self, prefix: &str, number: u64) -> Result<Option<Bytes>> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.get(&name, MOST_MANIFEST_BYTES).await
    }

    async fn create(&self, prefix: &str, number: u64, manifest: Bytes) -> Result<Creation> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.create(&name, manifest).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut all = Vec::new();
        let mut page = None;
        loop {
            let listed = self
                .0
                .list(&directory(prefix), PAGE, page.as_deref())
                .await?;
            let found = listed
                .entries
                .iter()
                .filter_map(|entry| read_entry(prefix, entry));
            all.extend(found);
            match listed.next {
                None => break,
                next => page = next,
            }
        }
        all.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.number));
        Ok(all)
    }

    async fn remove(&self, prefix: &str, number: u64) -> Result<()> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.delete(&name).await
    }

    async fn time(&self, prefix: &str) -> Result<Duration> {
        let name = format!("{prefix}{}", name::TIME);
        self.0.put(&name, &Content::Bytes(Bytes::new())).await?;
        let entry = self.0.head(&name).await?;
        Ok(entry.map(|entry| entry.modified).unwrap_or_default())
    }
}

fn directory(prefix: &str) -> String {
    format!("{prefix}{}", name::GENERATIONS)
}

fn read_entry(prefix: &str, entry: &Entry) -> Option<Listed> {
    let number = name::parse_generation(entry.name.strip_prefix(prefix)?)?;
    Some(Listed {
        number,
        created: entry.modified,
    })
}
