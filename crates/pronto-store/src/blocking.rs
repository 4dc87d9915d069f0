//! A blocking interface to the store.

use std::sync::{Arc, OnceLock};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto::Environment;
use tokio::runtime::{Builder, Runtime};

use crate::backend::{GenerationStorage, StoreBackend as _, SystemBackend};
use crate::blocks::{BlockCache, BlockOptions};
use crate::bucket::{Bucket as _, CallObserver, Cloud, Metered, StoreLocation};
use crate::clock::Clock as _;
use crate::creation;
use crate::database::{Database, DatabaseAddress};
use crate::generations::{DEEPEST, GenerationStore as _, GenerationSummary, MOST_LISTED};
use crate::repository::{Options, StoreRepository};
use crate::{Error, ErrorKind, Result};

/// The largest length of the name of a repository in bytes.
const LONGEST_NAME: usize = 512;

/// The largest length of a component of a name in bytes. Stores in directories allow 255 bytes,
/// some of which are needed for suffixes.
const LONGEST_COMPONENT: usize = 200;

/// The number of repositories that are checked concurrently.
const CHECKS_AT_ONCE: usize = 32;

/// A repository in a store that [`BlockingStore`] opens.
pub type StoredRepository = StoreRepository<SystemBackend<Metered<Cloud>>>;

/// An object store with repositories. The methods block until the store responds. Several threads
/// may use a value concurrently.
pub struct BlockingStore {
    /// The runtime, or `None` while the value is dropped.
    runtime: Option<Runtime>,
    url: String,
    cloud: Cloud,
    backend: Arc<SystemBackend<Metered<Cloud>>>,
    options: Options,
    /// Set after the store was found to have conditional creation.
    has_creation: OnceLock<()>,
}

impl BlockingStore {
    /// Prepares the use of the store at `url`, without a call of the store. Credentials are read
    /// from `environment`; see [`StoreLocation::parse`].
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the URL or the credentials are malformed, and with
    /// [`ErrorKind::Io`] if the directory does not exist, or a thread cannot be started.
    pub fn open(url: &str, environment: &Environment) -> Result<Self> {
        let cloud = Cloud::open(&StoreLocation::parse(url, environment)?)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build();
        let runtime = runtime
            .map_err(|error| Error::new(ErrorKind::Io, "cannot start a thread").because(error))?;
        Ok(BlockingStore {
            runtime: Some(runtime),
            url: url.to_owned(),
            backend: Arc::new(SystemBackend::new(Metered::new(cloud.clone()))),
            cloud,
            options: Options::default(),
            has_creation: OnceLock::new(),
        })
    }

    /// Keeps generations in the database at `address`, and all other data in the store. This method
    /// makes no call of the database. Call it before the first use of the store.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the certificates of authorities cannot be read.
    pub fn with_generations(mut self, address: DatabaseAddress) -> Result<Self> {
        let bucket = Arc::new(Metered::new(self.cloud.clone()));
        let generations = Database::new(Arc::clone(&bucket), address, &self.url)?;
        self.backend = Arc::new(SystemBackend::with_generations(bucket, generations));
        Ok(self)
    }

    /// Uses `options` for repositories.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Reports all calls to `observer` from now on. A second observer is ignored.
    pub fn observe(&self, observer: Arc<dyn CallObserver>) {
        if let GenerationStorage::Database(database) = self.backend.generations() {
            database.observe(Arc::clone(&observer));
        }
        self.backend.bucket().observe(observer);
    }

    /// Checks that the store, and the database of generations, respond. The method makes one call
    /// of each, without retries.
    ///
    /// # Errors
    /// Fails with the errors of the store and of the database.
    pub fn check(&self) -> Result<()> {
        if let GenerationStorage::Database(database) = self.backend.generations() {
            self.wait(database.check())?;
        }
        self.wait(self.backend.bucket().list("upkeep/", 1, None))
            .map(drop)
    }

    /// Checks that the store has conditional creation, so that only one of several processes can
    /// create a generation. The check makes a few calls if the store is a service and contains the
    /// generations. After a successful check, later calls make none.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the store has no conditional creation, and with the
    /// errors of the store.
    pub fn check_creation(&self) -> Result<()> {
        let is_needed = matches!(self.backend.generations(), GenerationStorage::Bucket(_));
        match is_needed && !self.cloud.is_directory() {
            true => {
                if self.has_creation.get().is_some() {
                    return Ok(());
                }
                let name = format!("upkeep/creation-{:016x}", self.backend.clock().random());
                self.wait(creation::check(self.backend.bucket(), &name))?;
                // Another thread may have set the flag.
                let _ = self.has_creation.set(());
                Ok(())
            }
            false => Ok(()),
        }
    }

    /// Blocks until a call of a [`StoredRepository`] is complete.
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(call),
            None => unreachable!("a store is not used while it is dropped"),
        }
    }

    /// Creates a cache for views whose packs are read by range; see [`BlockCache::new`]. The cache
    /// must not outlive the store.
    pub fn block_cache(
        &self,
        options: BlockOptions,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<BlockCache> {
        match &self.runtime {
            Some(runtime) => BlockCache::new(runtime.handle().clone(), options, report),
            None => unreachable!("a store is not used while it is dropped"),
        }
    }

    /// Returns the repository `name`, which may not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the name is not valid.
    pub fn repository(&self, name: &str) -> Result<StoredRepository> {
        let name = name.strip_suffix(".git").unwrap_or(name);
        check_name(name)?;
        let backend = Arc::clone(&self.backend);
        Ok(StoreRepository::new(backend, name, self.options))
    }

    /// Returns the sorted names of all repositories. Each directory costs one call.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    pub fn repositories(&self) -> Result<Vec<String>> {
        let mut names = self.wait(self.backend.generations().repositories())?;
        names.retain(|name| check_name(name).is_ok());
        names.truncate(MOST_LISTED);
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names, among `names`, of repositories that exist and are not removed. A damaged
    /// repository exists, and so does one whose generations are in a database that this value does
    /// not have. Each name costs two calls, several of which run concurrently.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    pub fn existing(&self, names: Vec<String>) -> Result<Vec<String>> {
        let calls = names.into_iter().map(|name| async move {
            let repository = self.repository(&name)?;
            match repository.latest().await {
                Ok(_) => Ok(Some(name)),
                Err(error) => match error.kind() {
                    ErrorKind::NotFound => Ok(None),
                    ErrorKind::Corrupt
                    | ErrorKind::Missing
                    | ErrorKind::Misplaced
                    | ErrorKind::Unsupported => Ok(Some(name)),
                    _ => Err(error),
                },
            }
        });
        let calls = stream::iter(calls.collect::<Vec<_>>()).buffered(CHECKS_AT_ONCE);
        let found: Vec<Option<String>> = self.wait(calls.try_collect())?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the generations of a repository, the newest first.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the repository does not exist, and with the errors of
    /// the store.
    pub fn generations(&self, repository: &StoredRepository) -> Result<Vec<GenerationSummary>> {
        let generations = self.backend.generations();
        let listed = self.wait(repository.persist(|| generations.list(&repository.prefix)))?;
        if listed.is_empty() {
            let message = format!("there is no repository '{}'", repository.name());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(listed)
    }
}

impl Drop for BlockingStore {
    fn drop(&mut self) {
        // A thread of another runtime must not block until the threads of this one have ended.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Checks the name of a repository, whose components consist of letters, digits, `.`, `_`, `-` and
/// `+`.
fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let is_sound = |component: &str| {
        let is_plain = component.bytes().all(plain);
        !component.is_empty()
            && component.len() <= LONGEST_COMPONENT
            && !component.starts_with(['.', '-'])
            && !component.ends_with(".git")
            && is_plain
    };
    if name.len() <= LONGEST_NAME
        && name.split('/').count() <= DEEPEST
        && name.split('/').all(is_sound)
    {
        return Ok(());
    }
    let message = format!("invalid repository name '{name}'");
    let hint = "use letters, digits, '.', '_', '-' and '+', and slashes between components";
    Err(Error::new(ErrorKind::Options, message).with_hint(hint))
}
