//! The settings of the object store (`[store]`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::problem::{ConfigProblem, within};

/// The default name of the cache directory.
const CACHE: &str = "pronto-store-cache";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The work of a server on a store (`role`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreRole {
    /// Serve the repositories.
    Serve,
    /// Repack repositories and delete expired objects. Only `/healthz` and `/metrics` are served.
    Upkeep,
    /// Serve the repositories, and do upkeep.
    #[default]
    Both,
}

impl StoreRole {
    /// Returns whether this server serves the repositories.
    pub fn serves(self) -> bool {
        self != StoreRole::Upkeep
    }

    /// Returns whether this server does upkeep of the repositories.
    pub fn keeps_up(self) -> bool {
        self != StoreRole::Serve
    }
}

/// A secret text, which `Debug` and messages do not show.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The object store of the repositories (`[store]`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The URL of the store: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///DIRECTORY`
    /// (`url`).
    pub url: String,
    /// The address of the database with the generations, `postgres://USER@HOST/DATABASE`, which may
    /// contain a password (`generations`). With `None`, the generations are in the store.
    pub generations: Option<SecretText>,
    /// The directory of views and downloaded files, which one process uses exclusively (`cache`).
    pub cache: PathBuf,
    /// The size limit in bytes of the cached files, except for files in use by requests
    /// (`cache_bytes`).
    pub cache_bytes: u64,
    /// The time for which a failed call of the store is retried (`patience_seconds`).
    pub patience: Duration,
    /// The work of this server (`role`).
    pub role: StoreRole,
    /// The interval at which a changing repository is checked for upkeep (`upkeep_seconds`).
    pub upkeep: Duration,
    /// The time for which unreachable objects are kept after they were detected
    /// (`prune_after_days`). With `None`, unreachable objects are kept forever.
    pub prune_after: Option<Duration>,
}

impl StoreConfig {
    /// Returns the configuration for the store at `url`, with `cache` for views.
    pub fn new(url: String, cache: PathBuf) -> Self {
        StoreConfig {
            url,
            generations: None,
            cache,
            cache_bytes: 10 << 30,
            patience: Duration::from_secs(20),
            role: StoreRole::default(),
            upkeep: Duration::from_secs(60),
            prune_after: Some(14 * DAY),
        }
    }
}

/// The table `[store]` as written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoreSection {
    url: String,
    generations: String,
    cache: Option<PathBuf>,
    cache_bytes: Option<u64>,
    patience_seconds: Option<Spanned<u64>>,
    role: StoreRole,
    upkeep_seconds: Option<Spanned<u64>>,
    prune_after_days: Option<u16>,
}

impl StoreSection {
    pub(super) fn resolved(self, directory: &Path) -> Result<Option<StoreConfig>, ConfigProblem> {
        let cache = self.cache.unwrap_or_else(|| CACHE.into());
        let mut store = StoreConfig::new(self.url, directory.join(cache));
        store.generations = (!self.generations.is_empty()).then_some(SecretText(self.generations));
        store.cache_bytes = self.cache_bytes.unwrap_or(store.cache_bytes);
        store.role = self.role;
        if let Some(seconds) = self.patience_seconds {
            // A commit must end within half of the time for which a listing is valid.
            within(&seconds, 1, 30, "must be at least 1 second and at most 30")?;
            store.patience = Duration::from_secs(*seconds.get_ref());
        }
        if let Some(seconds) = self.upkeep_seconds {
            let message = "must be at least 1 second and at most a day";
            within(&seconds, 1, DAY.as_secs(), message)?;
            store.upkeep = Duration::from_secs(*seconds.get_ref());
        }
        store.prune_after = match self.prune_after_days {
            None => store.prune_after,
            Some(0) => None,
            Some(days) => Some(DAY * u32::from(days)),
        };
        Ok((!store.url.is_empty()).then_some(store))
    }
}
