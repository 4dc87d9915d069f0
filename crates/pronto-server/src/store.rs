//! The repositories of an object store: names resolve to views of the newest generations.

mod landing;
mod observer;
mod tally;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bstr::{BStr, ByteSlice as _};
use prometheus_client::registry::Registry;
use pronto::receive_pack::PushDestination;
use pronto::{Environment, Watch, hooks, upload_pack};
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_store::{
    BlockOptions, BlockingStore, Creating, DatabaseAddress, ExpectedRefValue, Options, PackPush,
    RefUpdate, StoredRefValue, StoredRepository, UpkeepOptions, UpkeepRole, ViewCache,
};

use crate::config::{SecretText, StoreConfig};
use crate::names::RepositoryName;
use crate::open_repository::OpenRepository;
use crate::{Error, ErrorKind, Result};
use landing::StoreLanding;
use observer::StoreMetrics;

pub(crate) use observer::Health;
pub(crate) use tally::Tally;

/// The hooks of a push, which read the repository with other programs.
const HOOKS: [&str; 5] = [
    "pre-receive",
    "update",
    "post-receive",
    "post-update",
    "reference-transaction",
];

/// The subdirectory of the cache for temporary files of upkeep.
const SCRATCH: &str = "upkeep";

/// The subdirectory of the cache for the caches of processes that serve one request each.
const COMMANDS: &str = "shell";

/// The largest number of concurrent processes that serve one request each.
const MOST_COMMANDS: usize = 256;

/// The number of these processes that share half of the cache size. The other processes share a quarter.
const ROOMY_COMMANDS: usize = 8;

/// The number of repositories whose existence is checked when the server starts.
const LOOKED_AT: usize = 32;

/// The repositories of a store, and the cache of their views.
pub(crate) struct StoredRepositories {
    config: StoreConfig,
    store: Arc<BlockingStore>,
    /// The upkeep role of this process, while it runs.
    upkeep: OnceLock<Arc<UpkeepRole>>,
    /// The cache, or `None` if the repositories cannot be opened.
    cache: Option<ViewCache>,
    observer: Arc<StoreMetrics>,
    /// The repositories that exist, so that requests share their state.
    known: Mutex<HashMap<String, Arc<StoredRepository>>>,
    /// The flag that ends downloads.
    interrupt: Interrupt,
    /// The receiver of faults of the store and of the disk.
    report: Arc<OnceLock<Box<Report>>>,
}

/// A receiver of faults.
type Report = dyn Fn(&str) + Send + Sync;

/// The purpose for which a repository is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPurpose {
    Fetch,
    Push,
}

/// Returns the size of the cache with this `number` among the caches of processes that serve one request
/// each.
fn share_of_command(all_bytes: u64, number: usize) -> u64 {
    match number < ROOMY_COMMANDS {
        true => all_bytes / (2 * ROOMY_COMMANDS as u64),
        false => all_bytes / (4 * MOST_COMMANDS as u64),
    }
}

impl StoredRepositories {
    /// Prepares the use of a store, without a cache and without a call of the store.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the URL or the credentials are malformed.
    pub(crate) fn open(config: &StoreConfig, environment: &Environment) -> Result<Self> {
        let to_error = |error: pronto_store::Error| error.map_kind(|_| ErrorKind::Config);
        let mut store = BlockingStore::open(&config.url, environment).map_err(to_error)?;
        if let Some(SecretText(address)) = &config.generations {
            let address = DatabaseAddress::parse(address, environment).map_err(to_error)?;
            store = store.with_generations(address).map_err(to_error)?;
        }
        let mut options = Options::default();
        options.patience = config.patience;
        let store = store.with_options(options);
        let observer = Arc::new(StoreMetrics::default());
        store.observe(Arc::clone(&observer) as _);
        Ok(StoredRepositories {
            config: config.clone(),
            store: Arc::new(store),
            upkeep: OnceLock::new(),
            cache: None,
            observer,
            known: Mutex::default(),
            interrupt: Interrupt::new(),
            report: Arc::default(),
        })
    }

    /// Opens the cache of the configuration.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the directory cannot be used, or another process uses it.
    pub(crate) fn with_cache(mut self) -> Result<Self> {
        let cache = self.open_cache(&self.config.cache, self.config.cache_bytes);
        self.cache = Some(cache.map_err(|error| error.map_kind(|_| ErrorKind::Io))?);
        Ok(self)
    }

    /// Opens one of the caches for processes that serve one request each: the first one that no other process
    /// uses. The next process that uses the same cache finds its content.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unavailable`] if all caches are in use, and with [`ErrorKind::Io`] if a
    /// directory cannot be used.
    pub(crate) fn with_free_cache(mut self) -> Result<Self> {
        for number in 0..MOST_COMMANDS {
            let bytes = share_of_command(self.config.cache_bytes, number);
            let directory = self.config.cache.join(COMMANDS).join(number.to_string());
            match self.open_cache(&directory, bytes) {
                Err(error) if error.kind() == pronto_store::ErrorKind::InUse => {}
                opened => {
                    self.cache = Some(opened.map_err(|error| error.map_kind(|_| ErrorKind::Io))?);
                    return Ok(self);
                }
            }
        }
        let message = "the server has too many requests; try again later";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Sets the flag that ends downloads.
    pub(crate) fn with_interrupt(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = interrupt.clone();
        self
    }

    fn open_cache(&self, directory: &Path, most_bytes: u64) -> pronto_store::Result<ViewCache> {
        let report = Arc::clone(&self.report);
        let blocks = self
            .store
            .block_cache(BlockOptions::default(), move |fault| {
                if let Some(report) = report.get() {
                    report(fault);
                }
            });
        ViewCache::open(directory, most_bytes, blocks)
    }

    /// Applies the cache size of a reloaded configuration. The other settings apply after a restart.
    pub(crate) fn reload(&self, config: &StoreConfig) {
        if let Some(cache) = &self.cache {
            cache.set_most_bytes(config.cache_bytes);
        }
    }

    /// Checks that the store responds, and that commits to it are safe.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unavailable`] if the store does not respond, refuses access, or has no
    /// conditional creation.
    pub(crate) fn check(&self) -> Result<()> {
        let checked = self.store.check().and_then(|()| self.check_creation());
        checked.map_err(|error| error.map_kind(|_| ErrorKind::Unavailable))
    }

    /// Checks at the start of the server that the store can be used. A store that does not respond is
    /// accepted, because it may respond later.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the store refuses access, does not exist, or has no conditional
    /// creation.
    pub(crate) fn check_start(&self) -> Result<()> {
        match self.store.check().and_then(|()| self.check_creation()) {
            Err(error) if error.kind() != pronto_store::ErrorKind::Unavailable => {
                Err(error.map_kind(|_| ErrorKind::Io))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the store has conditional creation. A server without write access accepts any store.
    fn check_creation(&self) -> pronto_store::Result<()> {
        match self.store.check_creation() {
            Err(error) if error.kind() == pronto_store::ErrorKind::Denied => Ok(()),
            checked => checked,
        }
    }

    /// Reports each fault of the store and of the disk to `report` from now on.
    pub(crate) fn report_to(&self, report: Box<Report>) {
        // A receiver that was set before stays.
        let _ = self.report.set(report);
    }

    /// Ends downloads, so that their requests fail.
    pub(crate) fn stop(&self) {
        self.interrupt.trigger();
    }

    /// Returns whether the store responds. Makes a call of the store if the last one is not recent.
    pub(crate) fn health(&self) -> Health {
        self.observer.health(|| {
            // The observer records the result.
            let _ = self.store.check();
        })
    }

    /// Registers the metrics of the store and of the cache.
    pub(crate) fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.observer.register(registry);
        registry.register_collector(Box::new(observer::CacheCollector(Arc::clone(self))));
    }

    /// Prepares upkeep, if it is a role of this server.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the directory of temporary files cannot be created.
    pub(crate) fn begin_upkeep(&self) -> Result<Option<Arc<UpkeepRole>>> {
        let config = &self.config;
        if !config.role.keeps_up() {
            return Ok(None);
        }
        let scratch = config.cache.join(SCRATCH);
        // A killed process has left its files here.
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context(ErrorKind::Io, "cannot remove", &scratch)
            }
            _ => Ok(()),
        }?;
        fs::create_dir_all(&scratch).context(ErrorKind::Io, "cannot create", &scratch)?;
        let mut options = UpkeepOptions::new(scratch);
        options.prune_after = config.prune_after;
        let store = Arc::clone(&self.store);
        let role = Arc::new(UpkeepRole::new(store, options, config.upkeep));
        Ok(Some(Arc::clone(self.upkeep.get_or_init(|| role))))
    }

    /// Opens a view of the newest generation.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the repository does not exist, with [`ErrorKind::Unavailable`]
    /// if the store does not respond, and with [`ErrorKind::Store`] if the store refuses access or is
    /// damaged.
    pub(crate) fn find(
        self: &Arc<Self>,
        name: &RepositoryName,
        environment: &Environment,
        purpose: AccessPurpose,
    ) -> Result<OpenRepository> {
        let Some(cache) = &self.cache else {
            let message = "only a running server can open a repository in a store";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        if !self.config.role.serves() {
            let message = "this server does not serve repositories: its role is 'upkeep'";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let stored = self.stored(name)?;
        let generation = self.store.wait(stored.latest()).map_err(failed)?;
        self.remember(name, &stored);
        tally::saw_generation(generation.number());
        let watch = Watch::none().with_interrupt(&self.interrupt);
        let view = cache.view(&self.store, &stored, &generation, &watch);
        let view = view.map_err(failed)?;
        let open = |directory: &Path| {
            let found = upload_pack::find(directory, environment);
            found.map_err(|error| error.map_kind(|_| ErrorKind::Failed))
        };
        Ok(match purpose {
            AccessPurpose::Fetch => {
                let repository = open(view.directory())?;
                if repository.config().contains("uploadpack.packobjectshook") {
                    view.fill(&watch).map_err(failed)?;
                }
                OpenRepository::view(repository, view, generation)
            }
            AccessPurpose::Push => {
                let landing = StoreLanding::new(Arc::clone(self), stored, Arc::clone(&view));
                let landing: Arc<dyn PushDestination> = Arc::new(landing);
                let own = cache.push_view(&view).map_err(failed)?;
                let repository = open(own.directory())?;
                if HOOKS.iter().any(|name| hooks::exists(&repository, name)) {
                    view.fill(&watch).map_err(failed)?;
                }
                OpenRepository::view(repository, view, generation)
                    .holding(Box::new(own))
                    .with_landing(landing)
            }
        })
    }

    /// Creates a repository whose `HEAD` points to `branch`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Exists`] if the name is in use, with [`ErrorKind::InvalidName`] if the name is
    /// not allowed in a store, and with the errors of the store.
    pub(crate) fn create(&self, name: &RepositoryName, branch: &BStr) -> Result<()> {
        let stored = self.store.repository(name.as_str()).map_err(|error| {
            let kind = ErrorKind::InvalidName;
            error.map_kind(|_| kind)
        })?;
        let mut content = PackPush::default();
        let target = [b"refs/heads/", branch.as_bytes()].concat();
        content.updates.push(RefUpdate {
            name: "HEAD".into(),
            old: ExpectedRefValue::Missing,
            new: Some(StoredRefValue::Symbolic(target.into())),
        });
        let creating = Creating::default();
        let created = stored.create(&creating, content);
        self.store.wait(created).map_err(failed)
    }

    /// Removes a repository.
    ///
    /// # Errors
    /// Fails for the same reasons as [`find`](Self::find).
    pub(crate) fn remove(&self, name: &RepositoryName) -> Result<()> {
        let stored = self.stored(name)?;
        self.store.wait(stored.remove()).map_err(failed)
    }

    /// Returns the sorted names of all repositories.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    pub(crate) fn list(&self) -> Result<Vec<String>> {
        let names = self.store.repositories().map_err(failed)?;
        self.store.existing(names).map_err(failed)
    }

    /// Returns the sorted names of the repositories that `wanted` accepts. Each name costs two calls of the
    /// store.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    pub(crate) fn list_some(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut names = self.store.repositories().map_err(failed)?;
        names.retain(|name| wanted(name));
        self.store.existing(names).map_err(failed)
    }

    /// Returns the names of all repositories. Only the existence of the first ones is checked.
    ///
    /// # Errors
    /// Fails with the errors of the store.
    pub(crate) fn list_at_start(&self) -> Result<Vec<String>> {
        let mut names = self.store.repositories().map_err(failed)?;
        let others = names.split_off(names.len().min(LOOKED_AT));
        let mut found = self.store.existing(names).map_err(failed)?;
        found.extend(others);
        Ok(found)
    }

    fn stored(&self, name: &RepositoryName) -> Result<Arc<StoredRepository>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = known.get(name.as_str()) {
            return Ok(Arc::clone(stored));
        }
        drop(known);
        // A repository with an invalid name cannot exist.
        let stored = self.store.repository(name.as_str());
        stored.map(Arc::new).map_err(|_| {
            let message = format!("there is no repository '{name}'");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Adds an existing repository to the table of known ones.
    fn remember(&self, name: &RepositoryName, stored: &Arc<StoredRepository>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(name.as_str().to_owned())
            .or_insert_with(|| Arc::clone(stored));
    }
}

impl std::fmt::Debug for StoredRepositories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredRepositories")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Converts an error of the store. The message is suitable for clients; the cause is for the log.
fn failed(error: pronto_store::Error) -> Error {
    use pronto_store::ErrorKind as From;
    let (kind, message) = match error.kind() {
        From::NotFound => (ErrorKind::NotFound, None),
        From::Exists => (ErrorKind::Exists, None),
        From::Options => (ErrorKind::InvalidName, None),
        From::Unavailable | From::Conflict | From::Expired => (
            ErrorKind::Unavailable,
            Some("the store does not respond; try again later"),
        ),
        From::Unknown => (
            ErrorKind::Unavailable,
            Some(
                "the store did not confirm the change; check whether it was made before you try \
                 again",
            ),
        ),
        From::Interrupted => (ErrorKind::Unavailable, Some("the server is shutting down")),
        From::Io => (
            ErrorKind::Unavailable,
            Some("the server cannot use its disk; try again later"),
        ),
        From::Missing | From::Corrupt => (
            ErrorKind::Store,
            Some("the repository is damaged in the store; contact the operator of the server"),
        ),
        From::Restored => (
            ErrorKind::Store,
            Some("the store was reset to an older state; contact the operator of the server"),
        ),
        _ => (
            ErrorKind::Store,
            Some("the store denies access; contact the operator of the server"),
        ),
    };
    match message {
        None => error.without_context(kind),
        Some(message) => {
            let hint = error.hint().map(str::to_owned);
            let failed = Error::new(kind, message).because(error);
            match hint {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            }
        }
    }
}
