//! The stores of crate `object_store`: S3, Google, Azure, and directories.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path as DiskPath, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, GetRange, MultipartUpload as _, ObjectMeta, ObjectStore,
    PutMode, PutOptions, RetryConfig,
};
use pronto_io::error::IoContext as _;

use super::credentials;
use super::failure::StoreNames;
use super::tls::BucketHttpConnector;
use super::url::BucketService;
pub use super::url::StoreLocation;
use super::{Bucket, CreationResult, Entry, ListingPage, UploadContent};
use crate::{Error, ErrorKind, Result};

/// The size in bytes from which files are uploaded in parts.
const LARGE_BYTES: u64 = 32 << 20;

/// The size in bytes of the parts.
const PART_BYTES: u64 = 16 << 20;

/// A cloud store, or a directory.
#[derive(Clone)]
pub struct Cloud {
    store: Arc<dyn ObjectStore>,
    /// The interface that lists names in order, page by page. A directory is listed as a whole.
    pages: Option<Arc<dyn PaginatedListStore>>,
    /// The prefix of all names, which is empty or ends with a slash.
    prefix: String,
    names: StoreNames,
}

impl Cloud {
    /// Prepares the use of the store at `location`, without a call of the store.
    ///
    /// # Errors
    /// - [`ErrorKind::Options`] if credentials or URLs in variables are malformed.
    /// - [`ErrorKind::NoCredentials`] if the environment has no credentials for the service.
    /// - [`ErrorKind::Io`] if the directory does not exist.
    pub fn open(location: &StoreLocation) -> Result<Self> {
        credentials::check(location)?;
        let (store, pages): (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>) =
            match &location.service {
                BucketService::Directory(path) => (Arc::new(directory(path)?), None),
                BucketService::S3(bucket) => {
                    let store = Arc::new(s3(bucket, &location.variables)?);
                    (Arc::clone(&store) as _, Some(store))
                }
                BucketService::Google(bucket) => {
                    let store = Arc::new(google(bucket, &location.variables)?);
                    (Arc::clone(&store) as _, Some(store))
                }
                BucketService::Azure(container) => {
                    let store = Arc::new(azure(container, &location.variables)?);
                    (Arc::clone(&store) as _, Some(store))
                }
            };
        Ok(Cloud {
            store,
            pages,
            prefix: location.prefix.clone(),
            names: StoreNames::of(location),
        })
    }

    fn failed(&self, error: &StoreError, name: &str) -> Error {
        self.names.failed(error, name)
    }

    /// Returns whether the store is a directory of this machine.
    pub(crate) fn is_directory(&self) -> bool {
        self.pages.is_none()
    }

    fn path(&self, name: &str) -> Result<Path> {
        let full = format!("{}{name}", self.prefix);
        Path::parse(full.trim_end_matches('/')).map_err(|error| {
            let message = format!("invalid object name '{name}'");
            Error::new(ErrorKind::Options, message).because(error)
        })
    }

    fn entry(&self, meta: &ObjectMeta) -> Option<Entry> {
        let name = meta.location.as_ref().strip_prefix(self.prefix.as_str())?;
        let millis = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
        Some(Entry {
            name: name.to_owned(),
            size_bytes: meta.size,
            modified: Duration::from_millis(millis),
        })
    }

    async fn read(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let path = self.path(name)?;
        let start = range.start;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let answer = match self.store.get_opts(&path, options).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => {
                let error = self.failed(&error, name);
                // A range that begins after the end is refused like a malformed request.
                let may_be_short = error.kind() == ErrorKind::Unavailable;
                return match may_be_short.then(|| self.head(name)) {
                    Some(head) => match head.await? {
                        Some(found) if found.size_bytes <= start => Ok(Some(Bytes::new())),
                        _ => Err(error),
                    },
                    None => Err(error),
                };
            }
            Ok(answer) => answer,
        };
        let bytes = answer.bytes().await;
        bytes.map(Some).map_err(|error| self.failed(&error, name))
    }

    async fn put_bytes(&self, name: &str, bytes: Bytes) -> Result<()> {
        let options = PutOptions::default();
        let path = self.path(name)?;
        let answer = self.store.put_opts(&path, bytes.into(), options).await;
        answer.map(drop).map_err(|error| self.failed(&error, name))
    }

    async fn put_parts(&self, name: &str, path: &DiskPath, size: u64) -> Result<()> {
        let to_error = |error: StoreError| self.failed(&error, name);
        let target = self.path(name)?;
        let upload = self.store.put_multipart_opts(&target, Default::default());
        let mut upload = upload.await.map_err(to_error)?;
        let mut at = 0;
        while at < size {
            let len = PART_BYTES.min(size - at);
            let part = read_part(path.to_owned(), at, len).await;
            let sent = match part {
                Ok(part) => upload.put_part(part.into()).await.map_err(to_error),
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                // If the abort fails, too, the store removes the parts later.
                let _ = upload.abort().await;
                return Err(error);
            }
            at += len;
        }
        upload.complete().await.map(drop).map_err(to_error)
    }
}

impl Bucket for Cloud {
    async fn get(&self, name: &str, most: u64) -> Result<Option<Bytes>> {
        // Reading one more byte detects an object that is too large, at no cost.
        let found = self.read(name, 0..most.saturating_add(1)).await?;
        match found {
            Some(bytes) if bytes.len() as u64 > most => {
                let message = format!("the object is larger than {most} bytes");
                Err(Error::new(ErrorKind::Corrupt, message).at_path(name))
            }
            found => Ok(found),
        }
    }

    async fn get_range(&self, name: &str, start: u64, len: u64) -> Result<Option<Bytes>> {
        if len == 0 {
            let found = self.head(name).await?;
            return Ok(found.map(|_| Bytes::new()));
        }
        self.read(name, start..start.saturating_add(len)).await
    }

    async fn head(&self, name: &str) -> Result<Option<Entry>> {
        let path = self.path(name)?;
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(&path, options).await {
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&error, name)),
            Ok(found) => Ok(self.entry(&found.meta)),
        }
    }

    async fn put(&self, name: &str, content: &UploadContent) -> Result<()> {
        let path = match content {
            UploadContent::Bytes(bytes) => return self.put_bytes(name, bytes.clone()).await,
            UploadContent::File(path) => path,
        };
        let metadata = std::fs::metadata(path);
        let size = metadata.context(ErrorKind::Io, "cannot stat", path)?.len();
        if size >= LARGE_BYTES {
            return self.put_parts(name, path, size).await;
        }
        let bytes = read_part(path.clone(), 0, size).await?;
        self.put_bytes(name, bytes).await
    }

    async fn create(&self, name: &str, bytes: Bytes) -> Result<CreationResult> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let path = self.path(name)?;
        match self.store.put_opts(&path, bytes.into(), options).await {
            Ok(_) => Ok(CreationResult::Created),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                Ok(CreationResult::Exists)
            }
            Err(error) => {
                let failed = self.failed(&error, name);
                // A directory may report a failure after the object was created.
                match failed.kind() == ErrorKind::Io && self.head(name).await?.is_some() {
                    true => Err(failed.map_kind(|_| ErrorKind::Unavailable)),
                    false => Err(failed),
                }
            }
        }
    }

    async fn list(&self, prefix: &str, limit: usize, page: Option<&str>) -> Result<ListingPage> {
        let to_error = |error: StoreError| self.failed(&error, prefix);
        let Some(pages) = &self.pages else {
            let path = self.path(prefix)?;
            let found = self.store.list(Some(&path)).try_collect::<Vec<_>>().await;
            let found = found.map_err(to_error)?;
            let mut entries: Vec<Entry> = found
                .into_iter()
                .filter_map(|meta| self.entry(&meta))
                .collect();
            entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            return Ok(ListingPage {
                entries,
                next: None,
            });
        };
        let options = PaginatedListOptions {
            max_keys: Some(limit),
            page_token: page.map(str::to_owned),
            ..PaginatedListOptions::default()
        };
        let full = format!("{}{prefix}", self.prefix);
        let listed = pages.list_paginated(Some(&full), options).await;
        let listed = listed.map_err(to_error)?;
        let objects = listed.result.objects.into_iter();
        let entries: Vec<Entry> = objects.filter_map(|meta| self.entry(&meta)).collect();
        if !entries.is_sorted_by(|a, b| a.name < b.name) {
            let message =
                "the store does not list objects in the order of their names, which pronto needs";
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint(
                "use a general purpose bucket: S3 directory buckets are not supported",
            ));
        }
        Ok(ListingPage {
            entries,
            next: listed.page_token,
        })
    }

    async fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let full = format!("{}{prefix}", self.prefix);
        let path = (!full.is_empty()).then(|| self.path(prefix)).transpose()?;
        let listed = self.store.list_with_delimiter(path.as_ref()).await;
        let listed = listed.map_err(|error| self.failed(&error, prefix))?;
        let found = listed.common_prefixes.into_iter().filter_map(|path| {
            let name = path.as_ref().strip_prefix(self.prefix.as_str())?;
            Some(format!("{name}/"))
        });
        Ok(found.collect())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        let names = futures_util::stream::iter([Ok(path)]);
        let deleted = self.store.delete_stream(Box::pin(names));
        match deleted.try_collect::<Vec<_>>().await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error, name)),
        }
    }
}

/// Reads a part of a file on another thread.
async fn read_part(path: PathBuf, at: u64, len: u64) -> Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; len as usize];
        let file = File::open(&path).context(ErrorKind::Io, "cannot open", &path)?;
        let read = file.read_exact_at(&mut bytes, at);
        read.context(ErrorKind::Io, "cannot read", &path)?;
        Ok(Bytes::from(bytes))
    });
    match read.await {
        Ok(read) => read,
        Err(error) => Err(Error::new(ErrorKind::Io, "cannot read a file").because(error)),
    }
}

/// Returns the retry settings of the library. The protocol retries calls itself, so the library
/// retries only calls on closed connections.
fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: 2,
        retry_timeout: Duration::from_secs(10),
        ..RetryConfig::default()
    }
}

fn directory(path: &DiskPath) -> Result<LocalFileSystem> {
    let failed = |reason: String| {
        let message = format!("cannot use the directory '{}' as a store", path.display());
        Error::new(ErrorKind::Io, message).because(reason)
    };
    let found = std::fs::metadata(path);
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let is_missing = found.as_ref().is_err_and(is_missing);
    let found = found.and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    found.map_err(|error| {
        let error = failed(pronto_io::error::reason(&error));
        match is_missing {
            true => error.with_hint("create the directory first"),
            false => error,
        }
    })?;
    let store = LocalFileSystem::new_with_prefix(path);
    let store = store.map_err(|error| failed(error.to_string()))?;
    Ok(store.with_fsync(true))
}

/// Applies the variables whose names a service recognises. `is_plain` allows a URL without TLS.
fn apply<T, K: FromStr>(
    builder: T,
    variables: &[(String, String)],
    set: impl Fn(T, K, &str) -> T,
) -> T {
    variables.iter().fold(builder, |builder, (name, value)| {
        match name.to_ascii_lowercase().parse() {
            Ok(key) => set(builder, key, value),
            Err(_) => builder,
        }
    })
}

/// Returns whether the URL of the service in `variables` has no TLS, by choice of the operator.
fn is_plain(variables: &[(String, String)]) -> bool {
    let is_address = |name: &str| name.ends_with("ENDPOINT") || name.ends_with("ENDPOINT_URL");
    variables
        .iter()
        .any(|(name, value)| is_address(name) && value.starts_with("http://"))
}

fn s3(bucket: &str, variables: &[(String, String)]) -> Result<object_store::aws::AmazonS3> {
    let builder = AmazonS3Builder::new().with_bucket_name(bucket);
    let set = |builder: AmazonS3Builder, key: AmazonS3ConfigKey, value: &str| {
        builder.with_config(key, value)
    };
    let builder = apply(builder, variables, set)
        .with_allow_http(is_plain(variables))
        .with_http_connector(BucketHttpConnector)
        .with_retry(retries());
    builder.build().map_err(malformed)
}

fn google(
    bucket: &str,
    variables: &[(String, String)],
) -> Result<object_store::gcp::GoogleCloudStorage> {
    let builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
    let set = |builder: GoogleCloudStorageBuilder, key: GoogleConfigKey, value: &str| {
        builder.with_config(key, value)
    };
    let builder = apply(builder, variables, set)
        .with_http_connector(BucketHttpConnector)
        .with_retry(retries());
    builder.build().map_err(malformed)
}

fn azure(
    container: &str,
    variables: &[(String, String)],
) -> Result<object_store::azure::MicrosoftAzure> {
    let builder = MicrosoftAzureBuilder::new().with_container_name(container);
    let set = |builder: MicrosoftAzureBuilder, key: AzureConfigKey, value: &str| {
        builder.with_config(key, value)
    };
    let builder = apply(builder, variables, set)
        .with_allow_http(is_plain(variables))
        .with_http_connector(BucketHttpConnector)
        .with_retry(retries());
    builder.build().map_err(malformed)
}

fn malformed(error: StoreError) -> Error {
    let message = "cannot use the store: malformed credentials or endpoint in the environment";
    Error::new(ErrorKind::Options, message).because(error)
}
