//! The store for threads that may wait.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto::Environment;
use tokio::runtime::{Builder, Runtime};

use crate::backend::{Backend as _, Plain};
use crate::blocks::{BlockCache, BlockOptions};
use crate::bucket::{Bucket as _, Cloud, Location, Metered, Observer};
use crate::generations::{Generations as _, Listed};
use crate::repository::{Options, Repository};
use crate::{Error, ErrorKind, Result};

/// The longest name of a repository.
const LONGEST_NAME: usize = 512;

/// The longest component of a name: directories as stores allow 255 bytes, some of which are for suffixes.
const LONGEST_COMPONENT: usize = 200;

/// The most directories, one in another, in which repositories are looked for.
const DEEPEST: usize = 16;

/// The most repositories that are listed.
const MOST_LISTED: usize = 100_000;

/// The number of repositories that are looked for at the same time.
const CHECKS_AT_ONCE: usize = 32;

/// A repository in a store of this kind.
pub type Stored = Repository<Plain<Metered<Cloud>>>;

/// An object store with repositories. Methods wait for the store; threads may use one value at the same
/// time.
pub struct Store {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    backend: Arc<Plain<Metered<Cloud>>>,
    options: Options,
}

impl Store {
    /// Prepares to use the store at `url`. Credentials are taken from `environment`; see
    /// [`Location::parse`]. Makes no call.
    ///
    /// # Errors
    /// [`ErrorKind::Options`]: the address or the credentials are malformed. [`ErrorKind::Io`].
    pub fn open(url: &str, environment: &Environment) -> Result<Self> {
        let cloud = Cloud::open(&Location::parse(url, environment)?)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build();
        let runtime = runtime
            .map_err(|error| Error::new(ErrorKind::Io, "cannot start a thread").because(error))?;
        Ok(Store {
            runtime: Some(runtime),
            backend: Arc::new(Plain::new(Metered::new(cloud))),
            options: Options::default(),
        })
    }

    /// Uses `options` for repositories.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Tells `observer` of all calls from now on. The first observer stays.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.backend.bucket().observe(observer);
    }

    /// Returns whether the store answers. One call, which is not repeated.
    ///
    /// # Errors
    /// Those of the store.
    pub fn check(&self) -> Result<()> {
        self.wait(self.backend.bucket().list("upkeep/", 1, None))
            .map(drop)
    }

    /// Waits for a call of a [`Stored`].
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(call),
            None => unreachable!("a store is not used while it is dropped"),
        }
    }

    /// Makes a cache for views whose packs are read by range; see [`BlockCache::new`]. It must not outlive the
    /// store.
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

    /// Returns the repository `name`, which need not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Options`]: it cannot be the name of a repository.
    pub fn repository(&self, name: &str) -> Result<Stored> {
        let name = name.strip_suffix(".git").unwrap_or(name);
        check_name(name)?;
        let backend = Arc::clone(&self.backend);
        Ok(Repository::new(backend, name, self.options))
    }

    /// Returns the names of all repositories, sorted. One call for each directory.
    ///
    /// # Errors
    /// Those of the store.
    pub fn repositories(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut directories = vec![String::new()];
        while let Some(directory) = directories.pop() {
            let below = self.wait(self.backend.bucket().directories(&directory))?;
            for path in below {
                match path.strip_suffix(".git/") {
                    Some(name) if check_name(name).is_ok() => names.push(name.to_owned()),
                    Some(_) => {}
                    None if path.matches('/').count() < DEEPEST => directories.push(path),
                    None => {}
                }
            }
            if names.len() >= MOST_LISTED {
                break;
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns those of `names` that are names of repositories which are not removed. Two calls for each,
    /// several at once.
    ///
    /// # Errors
    /// Those of the store.
    pub fn existing(&self, names: Vec<String>) -> Result<Vec<String>> {
        let calls = names.into_iter().map(|name| async move {
            let repository = self.repository(&name)?;
            match repository.latest().await {
                Ok(_) => Ok(Some(name)),
                Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        });
        let calls = stream::iter(calls.collect::<Vec<_>>()).buffered(CHECKS_AT_ONCE);
        let found: Vec<Option<String>> = self.wait(calls.try_collect())?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the generations of a repository, the newest first.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; those of the store.
    pub fn generations(&self, repository: &Stored) -> Result<Vec<Listed>> {
        let generations = self.backend.generations();
        let listed = self.wait(repository.persist(|| generations.list(&repository.prefix)))?;
        if listed.is_empty() {
            let message = format!("there is no repository '{}'", repository.name());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(listed)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Waiting for its threads is not possible on the threads of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Checks the name of a repository: components of letters, digits, `.`, `_`, `-` and `+`.
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
    let message = format!("'{name}' cannot be the name of a repository");
    let hint = "use letters, digits, '.', '_', '-' and '+', and slashes between components";
    Err(Error::new(ErrorKind::Options, message).with_hint(hint))
}
