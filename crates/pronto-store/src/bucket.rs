//! The store as the protocol sees it: few calls, each of which can fail, be slow, or lose its answer.

mod cloud;
mod metered;
mod tls;
mod url;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::Result;

pub use cloud::{Cloud, Location};
pub(crate) use metered::Meter;
pub use metered::{Call, CallKind, Metered, Observer};

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The whole name.
    pub name: String,
    /// The size.
    pub size_bytes: u64,
    /// The time at which it was written, since 1970, by the clock of the store.
    pub modified: Duration,
}

/// A part of a listing.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, sorted by name.
    pub entries: Vec<Entry>,
    /// Names the next page; `None` for the last one.
    pub next: Option<String>,
}

/// The content of an object to be written.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory.
    Bytes(Bytes),
    /// In a file, which does not change.
    File(PathBuf),
}

/// The answer of a conditional creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// The object did not exist, and was written.
    Created,
    /// There was an object of that name. It was not changed.
    Exists,
}

/// An object store. Reads and listings show every write that was answered before they began.
///
/// Errors are of kind [`Unavailable`](crate::ErrorKind::Unavailable) if a repetition may succeed. A
/// write may have happened, or may happen later, although its call failed.
pub trait Bucket: Send + Sync + 'static {
    /// Returns the content of an object of at most `most` bytes; `None` if there is none.
    ///
    /// # Errors
    /// The store does not answer or refuses; the object is larger.
    fn get(&self, name: &str, most: u64) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Returns `len` bytes from `start` on; fewer if the object is shorter, `None` if there is none.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn get_range(
        &self,
        name: &str,
        start: u64,
        len: u64,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Returns size and time of an object; `None` if there is none.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn head(&self, name: &str) -> impl Future<Output = Result<Option<Entry>>> + Send;

    /// Writes an object, which appears as a whole.
    ///
    /// # Errors
    /// The store does not answer or refuses; the file cannot be read.
    fn put(&self, name: &str, content: &Content) -> impl Future<Output = Result<()>> + Send;

    /// Writes an object unless there is one of that name.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn create(&self, name: &str, bytes: Bytes) -> impl Future<Output = Result<Creation>> + Send;

    /// Lists objects whose names begin with `prefix`, which ends with a slash, at most `limit` of them.
    /// `page` is [`Page::next`] of the page before.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn list(
        &self,
        prefix: &str,
        limit: usize,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page>> + Send;

    /// Returns the prefixes directly below `prefix`, which is empty or ends with a slash, that objects have.
    /// Each ends with a slash.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn directories(&self, prefix: &str) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Deletes an object, if there is one.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    fn delete(&self, name: &str) -> impl Future<Output = Result<()>> + Send;
}
