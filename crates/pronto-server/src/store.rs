//! The repositories of an object store: from names to views of their newest generations.

mod landing;
mod observer;
mod tally;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bstr::{BStr, ByteSlice as _};
use prometheus_client::registry::Registry;
use pronto::receive_pack::Landing;
use pronto::{Environment, Watch, hooks, upload_pack};
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_store::{
    BlockOptions, Cache, Creating, DatabaseAddress, Expected, Options, Push, RefUpdate, Store,
    Stored, UpkeepOptions, UpkeepRole, Value,
};

use crate::config::{Secret, StoreConfig};
use crate::names::RepositoryName;
use crate::opened::Opened;
use crate::{Error, ErrorKind, Result};
use landing::StoreLanding;
use observer::Observer;

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

/// The directory of temporary files of upkeep, in the cache.
const SCRATCH: &str = "upkeep";

/// The directory of the caches of processes that serve one request each, in the cache.
const COMMANDS: &str = "shell";

/// The most processes that serve one request each at the same time.
const MOST_COMMANDS: usize = 256;

/// The number of them that share half of the room for the cache. The others share a quarter.
const ROOMY_COMMANDS: usize = 8;

/// The number of repositories that are looked at when the server starts.
const LOOKED_AT: usize = 32;

/// The repositories of a store, and the cache of their views.
pub(crate) struct StoredRepositories {
    config: StoreConfig,
    store: Arc<Store>,
    /// Upkeep by this process, while it runs.
    upkeep: OnceLock<Arc<UpkeepRole>>,
    /// `None` if no repository is opened.
    cache: Option<Cache>,
    observer: Arc<Observer>,
    /// The repositories that were found, so that requests share probes and commits.
    known: Mutex<HashMap<String, Arc<Stored>>>,
    /// Ends downloads.
    interrupt: Interrupt,
    /// Receives faults of the store and of the disk.
    report: Arc<OnceLock<Box<Report>>>,
}

/// A receiver of faults.
type Report = dyn Fn(&str) + Send + Sync;

/// The purpose for which a repository is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Fetch,
    Push,
}

/// Returns the room for cache `number` of those of processes that serve one request each.
fn share_of_command(all_bytes: u64, number: usize) -> u64 {
    match number < ROOMY_COMMANDS {
        true => all_bytes / (2 * ROOMY_COMMANDS as u64),
        false => all_bytes / (4 * MOST_COMMANDS as u64),
    }
}

impl StoredRepositories {
    /// Prepares to use a store, without a cache. Makes no call.
    ///
    /// # Errors
    /// The address or the credentials are malformed.
    pub(crate) fn open(config: &StoreConfig, environment: &Environment) -> Result<Self> {
        let to_error = |error: pronto_store::Error| error.map_kind(|_| ErrorKind::Config);
        let mut store = Store::open(&config.url, environment).map_err(to_error)?;
        if let Some(Secret(address)) = &config.generations {
            let address = DatabaseAddress::parse(address, environment).map_err(to_error)?;
            store = store.with_generations(address).map_err(to_error)?;
        }
        let mut options = Options::default();
        options.patience = config.patience;
        let store = store.with_options(options);
        let observer = Arc::new(Observer::default());
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

    /// Uses the cache of the configuration.
    ///
    /// # Errors
    /// The directory cannot be used, or another process uses it.
    pub(crate) fn with_cache(mut self) -> Result<Self> {
        let cache = self.open_cache(&self.config.cache, self.config.cache_bytes);
        self.cache = Some(cache.map_err(|error| error.map_kind(|_| ErrorKind::Io))?);
        Ok(self)
    }

    /// Uses one of the caches for processes that serve one request each: the first one that no other process
    /// uses. What is in it stays for the next process.
    ///
    /// # Errors
    /// All are in use, or a directory cannot be used.
    pub(crate) fn with_free_cache(mut self) -> Result<Self> {
        for number in 0..MOST_COMMANDS {
            let bytes = share_of_command(self.config.cache_bytes, number);
            let directory = self.config.cache.join(COMMANDS).join(number.to_string());
            match self.open_cache(&directory, bytes) {
                Err(error) if *error.kind() == pronto_store::ErrorKind::InUse => {}
                opened => {
                    self.cache = Some(opened.map_err(|error| error.map_kind(|_| ErrorKind::Io))?);
                    return Ok(self);
                }
            }
        }
        let message = "the server has too many requests; try again later";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Lets `interrupt` end downloads.
    pub(crate) fn with_interrupt(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = interrupt.clone();
        self
    }

    fn open_cache(&self, directory: &Path, most_bytes: u64) -> pronto_store::Result<Cache> {
        let report = Arc::clone(&self.report);
        let blocks = self
            .store
            .block_cache(BlockOptions::default(), move |fault| {
                if let Some(report) = report.get() {
                    report(fault);
                }
            });
        Cache::open(directory, most_bytes, blocks)
    }

    /// Takes over the size of the cache. Its directory and the patience stay as they are.
    ///
    /// # Errors
    /// It is another store.
    pub(crate) fn reload(&self, config: &StoreConfig) -> Result<()> {
        // A database that was given without a file stays.
        let is_other =
            config.generations.is_some() && self.config.generations != config.generations;
        if is_other || self.config.url != config.url {
            let message = "the store cannot change while the server runs";
            return Err(Error::new(ErrorKind::Config, message));
        }
        if let Some(cache) = &self.cache {
            cache.set_most_bytes(config.cache_bytes);
        }
        Ok(())
    }

    /// Checks that the store answers, and that commits to it are safe.
    ///
    /// # Errors
    /// It does not, or refuses; it has no conditional creation.
    pub(crate) fn check(&self) -> Result<()> {
        let checked = self.store.check().and_then(|()| self.check_creation());
        checked.map_err(|error| error.map_kind(|_| ErrorKind::Unavailable))
    }

    /// Checks that the store can be used, at the start. One that does not answer may do so later.
    ///
    /// # Errors
    /// It refuses, does not exist, or has no conditional creation.
    pub(crate) fn check_start(&self) -> Result<()> {
        match self.store.check().and_then(|()| self.check_creation()) {
            Err(error) if *error.kind() != pronto_store::ErrorKind::Unavailable => {
                Err(error.map_kind(|_| ErrorKind::Io))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the store has conditional creation, unless this server may not write to it.
    fn check_creation(&self) -> pronto_store::Result<()> {
        match self.store.check_creation() {
            Err(error) if *error.kind() == pronto_store::ErrorKind::Denied => Ok(()),
            checked => checked,
        }
    }

    /// Tells `report` of each fault of the store and of the disk from now on.
    pub(crate) fn report_to(&self, report: Box<Report>) {
        // One that was given before stays.
        let _ = self.report.set(report);
    }

    /// Ends downloads, so that their requests fail.
    pub(crate) fn stop(&self) {
        self.interrupt.trigger();
    }

    /// Returns whether the store answers, with a call if the last one was some time ago.
    pub(crate) fn health(&self) -> Health {
        self.observer.health(|| {
            // The observer sees the result.
            let _ = self.store.check();
        })
    }

    /// Adds the counters of the store and the cache to those of a server.
    pub(crate) fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.observer.register(registry);
        registry.register_collector(Box::new(observer::CacheCollector(Arc::clone(self))));
    }

    /// Prepares upkeep, if it is the role of this server.
    ///
    /// # Errors
    /// The directory of temporary files cannot be made.
    pub(crate) fn begin_upkeep(&self) -> Result<Option<Arc<UpkeepRole>>> {
        let config = &self.config;
        if !config.role.keeps_up() {
            return Ok(None);
        }
        let scratch = config.cache.join(SCRATCH);
        // A killed process has left files.
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
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Unavailable`]; [`ErrorKind::Store`].
    pub(crate) fn find(
        self: &Arc<Self>,
        name: &RepositoryName,
        environment: &Environment,
        purpose: Purpose,
    ) -> Result<Opened> {
        let Some(cache) = &self.cache else {
            let message = "repositories of a store are opened by a server only";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        if !self.config.role.serves() {
            let message = "this server does upkeep only";
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
            Purpose::Fetch => {
                let repository = open(view.directory())?;
                if repository.config().contains("uploadpack.packobjectshook") {
                    view.fill(&watch).map_err(failed)?;
                }
                Opened::view(repository, view, generation)
            }
            Purpose::Push => {
                let landing = StoreLanding::new(Arc::clone(self), stored, Arc::clone(&view));
                let landing: Arc<dyn Landing> = Arc::new(landing);
                let own = cache.push_view(&view).map_err(failed)?;
                let repository = open(own.directory())?;
                if HOOKS.iter().any(|name| hooks::exists(&repository, name)) {
                    view.fill(&watch).map_err(failed)?;
                }
                Opened::view(repository, view, generation)
                    .holding(Box::new(own))
                    .with_landing(landing)
            }
        })
    }

    /// Creates a repository whose `HEAD` leads to `branch`.
    ///
    /// # Errors
    /// There is one of that name; the name is not allowed in a store; those of the store.
    pub(crate) fn create(&self, name: &RepositoryName, branch: &BStr) -> Result<()> {
        let stored = self.store.repository(name.as_str()).map_err(|error| {
            let kind = ErrorKind::InvalidName;
            error.map_kind(|_| kind)
        })?;
        let mut content = Push::default();
        let target = [b"refs/heads/", branch.as_bytes()].concat();
        content.updates.push(RefUpdate {
            name: "HEAD".into(),
            old: Expected::Missing,
            new: Some(Value::Symbolic(target.into())),
        });
        let creating = Creating::default();
        let created = stored.create(&creating, content);
        self.store.wait(created).map_err(failed)
    }

    /// Removes a repository.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub(crate) fn remove(&self, name: &RepositoryName) -> Result<()> {
        let stored = self.stored(name)?;
        self.store.wait(stored.remove()).map_err(failed)
    }

    /// Returns the names of all repositories, sorted.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn list(&self) -> Result<Vec<String>> {
        let names = self.store.repositories().map_err(failed)?;
        self.store.existing(names).map_err(failed)
    }

    /// Returns the names of repositories that `wanted` accepts, sorted. Two calls for each.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn list_some(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut names = self.store.repositories().map_err(failed)?;
        names.retain(|name| wanted(name));
        self.store.existing(names).map_err(failed)
    }

    /// Returns the names of all repositories, of which only the first ones are looked at.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn list_at_start(&self) -> Result<Vec<String>> {
        let mut names = self.store.repositories().map_err(failed)?;
        let others = names.split_off(names.len().min(LOOKED_AT));
        let mut found = self.store.existing(names).map_err(failed)?;
        found.extend(others);
        Ok(found)
    }

    fn stored(&self, name: &RepositoryName) -> Result<Arc<Stored>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = known.get(name.as_str()) {
            return Ok(Arc::clone(stored));
        }
        drop(known);
        // Names that are not allowed are those of no repository.
        let stored = self.store.repository(name.as_str());
        stored.map(Arc::new).map_err(|_| {
            let message = format!("there is no repository '{name}'");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Keeps a repository that exists.
    fn remember(&self, name: &RepositoryName, stored: &Arc<Stored>) {
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

/// Converts an error of the store. What clients may read is in the message, the rest is for the log.
fn failed(error: pronto_store::Error) -> Error {
    use pronto_store::ErrorKind as From;
    let (kind, message) = match error.kind() {
        From::NotFound => (ErrorKind::NotFound, None),
        From::Exists => (ErrorKind::Exists, None),
        From::Options => (ErrorKind::InvalidName, None),
        From::Unavailable | From::Conflict | From::Expired => (
            ErrorKind::Unavailable,
            Some("the store of the repositories does not answer; try again later"),
        ),
        From::Unknown => (
            ErrorKind::Unavailable,
            Some("the store did not tell whether the change was made; look before you try again"),
        ),
        From::Interrupted => (ErrorKind::Unavailable, Some("the server ends")),
        From::Io => (
            ErrorKind::Unavailable,
            Some("the server has no room for the repository; try again later"),
        ),
        From::Missing | From::Corrupt => (
            ErrorKind::Store,
            Some("the repository is damaged in the store; tell the operator of the server"),
        ),
        From::Restored => (
            ErrorKind::Store,
            Some("the store has an older state than before; tell the operator of the server"),
        ),
        _ => (
            ErrorKind::Store,
            Some("the store of the repositories refuses; tell the operator of the server"),
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
