//! Reports each call of a store to an observer.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Bucket, CreationResult, Entry, ListingPage, UploadContent};
use crate::{ErrorKind, Result};

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// Reads an object, or a part of an object.
    Get,
    /// Reads the size and the time of an object.
    Head,
    /// Writes an object.
    Put,
    /// Writes an object unless it exists.
    Create,
    /// Lists names.
    List,
    /// Deletes an object.
    Delete,
    /// Reads a generation, or the time, from the database.
    DatabaseRead,
    /// Creates a generation in the database unless it exists.
    DatabaseCreate,
    /// Lists generations or repositories of the database.
    DatabaseList,
    /// Deletes a generation from the database.
    DatabaseDelete,
}

impl CallKind {
    /// Returns the name of the kind, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Get => "get",
            CallKind::Head => "head",
            CallKind::Put => "put",
            CallKind::Create => "create",
            CallKind::List => "list",
            CallKind::Delete => "delete",
            CallKind::DatabaseRead => "database_read",
            CallKind::DatabaseCreate => "database_create",
            CallKind::DatabaseList => "database_list",
            CallKind::DatabaseDelete => "database_delete",
        }
    }

    /// Returns whether the call uses the database of generations, and not the store.
    pub fn is_of_database(self) -> bool {
        matches!(
            self,
            CallKind::DatabaseRead
                | CallKind::DatabaseCreate
                | CallKind::DatabaseList
                | CallKind::DatabaseDelete
        )
    }
}

/// A completed call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MeteredCall {
    /// The kind of the call.
    pub kind: CallKind,
    /// The number of bytes that were read or written.
    pub bytes: u64,
    /// The duration of the call.
    pub duration: Duration,
    /// The kind of the error, or `None` if the call succeeded.
    pub error: Option<ErrorKind>,
}

/// A receiver of completed calls, which runs on the thread that waits for the call, and must not
/// block.
pub trait CallObserver: Send + Sync + 'static {
    /// Receives a completed call.
    fn called(&self, call: &MeteredCall);
}

/// Measures calls, and reports them to an observer.
#[derive(Default)]
pub(crate) struct CallMeter(OnceLock<Arc<dyn CallObserver>>);

/// A store whose calls are observed.
pub struct Metered<B> {
    inner: B,
    meter: CallMeter,
}

impl<B> Metered<B> {
    /// Returns a store without an observer.
    pub fn new(inner: B) -> Self {
        Metered {
            inner,
            meter: CallMeter::default(),
        }
    }

    /// Reports all calls to `observer` from now on. A second observer is ignored.
    pub fn observe(&self, observer: Arc<dyn CallObserver>) {
        self.meter.observe(observer);
    }

    async fn measure<T>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Result<T>> + Send,
        bytes: impl FnOnce(&T) -> u64 + Send,
    ) -> Result<T> {
        self.meter.measure(kind, call, bytes).await
    }
}

impl CallMeter {
    /// Reports all calls to `observer` from now on. A second observer is ignored.
    pub(crate) fn observe(&self, observer: Arc<dyn CallObserver>) {
        let _ = self.0.set(observer);
    }

    /// Waits for a call, and reports the call to the observer.
    pub(crate) async fn measure<T>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Result<T>> + Send,
        bytes: impl FnOnce(&T) -> u64 + Send,
    ) -> Result<T> {
        let begun = Instant::now();
        let answer = call.await;
        if let Some(observer) = self.0.get() {
            observer.called(&MeteredCall {
                kind,
                bytes: answer.as_ref().map_or(0, bytes),
                duration: begun.elapsed(),
                error: answer.as_ref().err().map(|error| error.kind()),
            });
        }
        answer
    }
}

fn len(bytes: &Option<Bytes>) -> u64 {
    bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
}

impl<B: Bucket> Bucket for Metered<B> {
    async fn get(&self, name: &str, most: u64) -> Result<Option<Bytes>> {
        self.measure(CallKind::Get, self.inner.get(name, most), len)
            .await
    }

    async fn get_range(&self, name: &str, start: u64, count: u64) -> Result<Option<Bytes>> {
        let call = self.inner.get_range(name, start, count);
        self.measure(CallKind::Get, call, len).await
    }

    async fn head(&self, name: &str) -> Result<Option<Entry>> {
        self.measure(CallKind::Head, self.inner.head(name), |_| 0)
            .await
    }

    async fn put(&self, name: &str, content: &UploadContent) -> Result<()> {
        let size = match content {
            UploadContent::Bytes(bytes) => bytes.len() as u64,
            UploadContent::File(path) => std::fs::metadata(path).map_or(0, |found| found.len()),
        };
        self.measure(CallKind::Put, self.inner.put(name, content), |()| size)
            .await
    }

    async fn create(&self, name: &str, bytes: Bytes) -> Result<CreationResult> {
        let size = bytes.len() as u64;
        self.measure(CallKind::Create, self.inner.create(name, bytes), |_| size)
            .await
    }

    async fn list(&self, prefix: &str, limit: usize, page: Option<&str>) -> Result<ListingPage> {
        let call = self.inner.list(prefix, limit, page);
        self.measure(CallKind::List, call, |_| 0).await
    }

    async fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let call = self.inner.directories(prefix);
        self.measure(CallKind::List, call, |_| 0).await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.measure(CallKind::Delete, self.inner.delete(name), |()| 0)
            .await
    }
}
