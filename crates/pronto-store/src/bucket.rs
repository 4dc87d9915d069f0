//! The interface of a store: few calls, each of which can fail, be slow, or lose its response.

mod cloud;
mod credentials;
mod failure;
mod metered;
mod tls;
mod url;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::Result;

pub use cloud::{Cloud, StoreLocation};
pub(crate) use metered::CallMeter;
pub use metered::{CallKind, CallObserver, Metered, MeteredCall};

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The complete name.
    pub name: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The time of the write, since 1970, by the clock of the store.
    pub modified: Duration,
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListingPage {
    /// The objects, sorted by name.
    pub entries: Vec<Entry>,
    /// The token of the next page, or `None` for the last page.
    pub next: Option<String>,
}

/// The content of an object to write.
#[derive(Clone, Debug)]
pub enum UploadContent {
    /// In memory.
    Bytes(Bytes),
    /// A file, which does not change.
    File(PathBuf),
}

/// The result of a conditional creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationResult {
    /// The object did not exist, and was written.
    Created,
    /// An object with that name exists, and was not changed.
    Exists,
}

/// An object store. Reads and listings show every write that was acknowledged before they began.
///
/// Errors have the kind [`Unavailable`](crate::ErrorKind::Unavailable) if a retry may succeed. A
/// failed write may have taken effect, or may take effect later.
pub trait Bucket: Send + Sync + 'static {
    /// Returns the content of an object of at most `most` bytes, or `None` if the object does not
    /// exist.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call, or the object is larger.
    fn get(&self, name: &str, most: u64) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Returns `len` bytes from the offset `start`, or fewer if the object is shorter. Returns
    /// `None` if the object does not exist.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn get_range(
        &self,
        name: &str,
        start: u64,
        len: u64,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Returns the size and the time of an object, or `None` if the object does not exist.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn head(&self, name: &str) -> impl Future<Output = Result<Option<Entry>>> + Send;

    /// Writes an object atomically.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call, or the file cannot be read.
    fn put(&self, name: &str, content: &UploadContent) -> impl Future<Output = Result<()>> + Send;

    /// Writes an object unless an object with that name exists.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn create(
        &self,
        name: &str,
        bytes: Bytes,
    ) -> impl Future<Output = Result<CreationResult>> + Send;

    /// Lists at most `limit` objects whose names begin with `prefix`, which ends with a slash.
    /// `page` is [`ListingPage::next`] of the previous page.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn list(
        &self,
        prefix: &str,
        limit: usize,
        page: Option<&str>,
    ) -> impl Future<Output = Result<ListingPage>> + Send;

    /// Returns the prefixes of objects directly below `prefix`, which is empty or ends with a
    /// slash. Each returned prefix ends with a slash.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn directories(&self, prefix: &str) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// Fails if the store does not respond or refuses the call.
    fn delete(&self, name: &str) -> impl Future<Output = Result<()>> + Send;
}
