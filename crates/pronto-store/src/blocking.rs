//! The store for threads that may wait.

use std::sync::Arc;

use pronto::Environment;
use tokio::runtime::{Builder, Runtime};

use crate::backend::{Backend as _, Plain};
use crate::blocks::{BlockCache, BlockOptions};
use crate::bucket::{Bucket as _, Cloud, Location};
use crate::generations::{Generations as _, Listed};
use crate::repository::{Options, Repository};
use crate::{Error, ErrorKind, Result};

/// The longest name of a repository.
const LONGEST_NAME: usize = 512;

/// The most directories, one in another, in which repositories are looked for.
const DEEPEST: usize = 16;

/// The most repositories that are listed.
const MOST_LISTED: usize = 100_000;

/// A repository in a store of this kind.
pub type Stored = Repository<Plain<Cloud>>;

/// An object store with repositories. Methods wait for the store; threads may use one value at the same
/// time.
pub struct Store {
    runtime: Runtime,
    backend: Arc<Plain<Cloud>>,
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
            runtime,
            backend: Arc::new(Plain::new(cloud)),
        })
    }

    /// Waits for a call of a [`Stored`].
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Makes a cache for views whose packs are read by range; see [`BlockCache::new`]. It must not outlive the
    /// store.
    pub fn block_cache(
        &self,
        options: BlockOptions,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<BlockCache> {
        BlockCache::new(self.runtime.handle().clone(), options, report)
    }

    /// Returns the repository `name`, which need not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Options`]: it cannot be the name of a repository.
    pub fn repository(&self, name: &str) -> Result<Stored> {
        let name = name.strip_suffix(".git").unwrap_or(name);
        check_name(name)?;
        let backend = Arc::clone(&self.backend);
        Ok(Repository::new(backend, name, Options::default()))
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

/// Checks the name of a repository: components of letters, digits, `.`, `_`, `-` and `+`.
fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let is_sound = |component: &str| {
        let is_plain = component.bytes().all(plain);
        !component.is_empty()
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
