//! The sequence of generations, by which the commits of a repository are decided.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::bucket::{Bucket, CreationResult, Entry, UploadContent};
use crate::{Error, ErrorKind, Result, name};

/// The largest size in bytes of a manifest.
pub const MOST_MANIFEST_BYTES: u64 = 8 << 20;

/// The largest number of repositories that are listed.
pub(crate) const MOST_LISTED: usize = 100_000;

/// The largest depth of directories in which repositories are searched.
pub(crate) const DEEPEST: usize = 16;

/// The largest size in bytes of the marker object of a repository whose generations are in a
/// database.
const MOST_MARKER_BYTES: u64 = 2 << 10;

/// The number of generations in a page of a listing.
const PAGE: usize = 1000;

/// A generation in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationSummary {
    /// The number of the generation.
    pub number: u64,
    /// The time at which it was created, since 1970, by the clock of the store.
    pub created: Duration,
}

/// The storage of the generations of repositories. [`InBucket`] stores them in the store itself. A
/// database can store them for stores that have no conditional creation.
///
/// `prefix` is the prefix of a repository, and ends with a slash. Errors are those of [`Bucket`].
pub trait GenerationStore: Send + Sync + 'static {
    /// Returns the newest generation, or `None` if there is no generation.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn newest(
        &self,
        prefix: &str,
    ) -> impl Future<Output = Result<Option<GenerationSummary>>> + Send;

    /// Returns the manifest of a generation, or `None` if the generation does not exist.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn read(&self, prefix: &str, number: u64)
    -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Creates a generation unless it exists. This conditional creation is the commit.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call. The generation may exist
    /// nevertheless, or appear later.
    fn create(
        &self,
        prefix: &str,
        number: u64,
        manifest: Bytes,
    ) -> impl Future<Output = Result<CreationResult>> + Send;

    /// Returns all generations, the newest first.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<GenerationSummary>>> + Send;

    /// Removes a generation, if it exists.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn remove(&self, prefix: &str, number: u64) -> impl Future<Output = Result<()>> + Send;

    /// Returns the current time of the clock that determines [`GenerationSummary::created`], or a time shortly
    /// before.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn time(&self, prefix: &str) -> impl Future<Output = Result<Duration>> + Send;

    /// Prepares the first generation of a repository, and checks that the repository has no
    /// generations in another storage.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Misplaced`] if generations exist in another storage, and with the
    /// errors of the store.
    fn claim(&self, prefix: &str) -> impl Future<Output = Result<()>> + Send;

    /// Returns the names of directories that may contain a repository, in any order. The caller
    /// checks each directory.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn repositories(&self) -> impl Future<Output = Result<Vec<String>>> + Send;
}

/// Generations as objects of the store.
#[derive(Debug)]
pub struct InBucket<B>(pub Arc<B>);

impl<B: Bucket> GenerationStore for InBucket<B> {
    async fn newest(&self, prefix: &str) -> Result<Option<GenerationSummary>> {
        // Objects with other names may precede the generations. Their writer must not be able to
        // cause a call of the store for each of them.
        let (mut page, mut len) = (None, 1);
        loop {
            let listed = (self.0)
                .list(&directory(prefix), len, page.as_deref())
                .await?;
            len = PAGE;
            let found = listed
                .entries
                .iter()
                .find_map(|entry| read_entry(prefix, entry));
            if found.is_some() {
                return Ok(found);
            }
            if listed.next.is_none() {
                return match marker(&*self.0, prefix).await? {
                    None => Ok(None),
                    Some(_) => Err(in_database(prefix)),
                };
            }
            page = listed.next;
        }
    }

    async fn read(&self, prefix: &str, number: u64) -> Result<Option<Bytes>> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.get(&name, MOST_MANIFEST_BYTES).await
    }

    async fn create(&self, prefix: &str, number: u64, manifest: Bytes) -> Result<CreationResult> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.create(&name, manifest).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<GenerationSummary>> {
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
        if all.is_empty() && marker(&*self.0, prefix).await?.is_some() {
            return Err(in_database(prefix));
        }
        all.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.number));
        Ok(all)
    }

    async fn remove(&self, prefix: &str, number: u64) -> Result<()> {
        let name = format!("{prefix}{}", name::generation(number));
        self.0.delete(&name).await
    }

    async fn time(&self, prefix: &str) -> Result<Duration> {
        time_of(&*self.0, prefix).await
    }

    async fn claim(&self, prefix: &str) -> Result<()> {
        // A process with a database writes the marker before it checks for generations here.
        match marker(&*self.0, prefix).await? {
            None => Ok(()),
            Some(_) => Err(in_database(prefix)),
        }
    }

    async fn repositories(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut directories = vec![String::new()];
        while let Some(directory) = directories.pop() {
            for path in self.0.directories(&directory).await? {
                match path.strip_suffix(".git/") {
                    Some(name) => names.push(name.to_owned()),
                    None if path.matches('/').count() < DEEPEST => directories.push(path),
                    None => {}
                }
            }
            if names.len() >= MOST_LISTED {
                break;
            }
        }
        Ok(names)
    }
}

/// Returns the store name under which a database contains the generations of the repository at
/// `prefix`, or `None` if they are not in a database.
pub(crate) async fn marker(bucket: &impl Bucket, prefix: &str) -> Result<Option<String>> {
    let marker = format!("{prefix}{}", name::DATABASE);
    let found = bucket.get(&marker, MOST_MARKER_BYTES).await?;
    Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned()))
}

/// Returns the current time of a store, which is the modification time of an object written for
/// this purpose.
pub(crate) async fn time_of(bucket: &impl Bucket, prefix: &str) -> Result<Duration> {
    let name = format!("{prefix}{}", name::TIME);
    bucket
        .put(&name, &UploadContent::Bytes(Bytes::new()))
        .await?;
    let entry = bucket.head(&name).await?;
    Ok(entry.map(|entry| entry.modified).unwrap_or_default())
}

fn in_database(prefix: &str) -> Error {
    let repository = prefix.trim_end_matches(".git/");
    let message =
        format!("the generations of '{repository}' are in a database, not in the object store");
    let hint =
        "use --generations postgres://..., or set 'generations' in the configuration of the server";
    Error::new(ErrorKind::Misplaced, message).with_hint(hint)
}

fn directory(prefix: &str) -> String {
    format!("{prefix}{}", name::GENERATIONS)
}

fn read_entry(prefix: &str, entry: &Entry) -> Option<GenerationSummary> {
    let number = name::parse_generation(entry.name.strip_prefix(prefix)?)?;
    Some(GenerationSummary {
        number,
        created: entry.modified,
    })
}
