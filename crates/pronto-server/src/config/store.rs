//! The object store of the repositories.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::problem::{Problem, within};

/// The name of the cache without a setting.
const CACHE: &str = "pronto-store-cache";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The work that a server does with a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreRole {
    /// Serve the repositories.
    Serve,
    /// Pack repositories again and delete expired objects. Only `/healthz` and `/metrics` are served.
    Upkeep,
    /// Both.
    #[default]
    Both,
}

impl StoreRole {
    /// Returns whether repositories are served.
    pub fn serves(self) -> bool {
        self != StoreRole::Upkeep
    }

    /// Returns whether repositories are kept up.
    pub fn keeps_up(self) -> bool {
        self != StoreRole::Serve
    }
}

/// Text that messages do not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The object store of the repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The address: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///DIRECTORY`.
    pub url: String,
    /// The address of the database with the generations: `postgres://USER@HOST/DATABASE`; `None` if they are in the
    /// store. It may have a password.
    pub generations: Option<Secret>,
    /// The directory of views and downloaded files, which belongs to one process.
    pub cache: PathBuf,
    /// The bytes of these files, but for those that requests use.
    pub cache_bytes: u64,
    /// For a call of the store that fails to be repeated.
    pub patience: Duration,
    /// The work of this server.
    pub role: StoreRole,
    /// The interval in which a repository is looked at for upkeep, while it changes.
    pub upkeep: Duration,
    /// The time for which unreachable objects are kept after they were noticed; `None` for ever.
    pub prune_after: Option<Duration>,
}

impl StoreConfig {
    /// Uses the store at `url`, and `cache` for views.
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

/// The store as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    url: String,
    generations: String,
    cache: Option<PathBuf>,
    cache_bytes: Option<u64>,
    patience_seconds: Option<Spanned<u64>>,
    role: StoreRole,
    upkeep_seconds: Option<Spanned<u64>>,
    prune_after_days: Option<u16>,
}

impl Written {
    pub(super) fn resolved(self, directory: &Path) -> Result<Option<StoreConfig>, Problem> {
        let cache = self.cache.unwrap_or_else(|| CACHE.into());
        let mut store = StoreConfig::new(self.url, directory.join(cache));
        store.generations = (!self.generations.is_empty()).then_some(Secret(self.generations));
        store.cache_bytes = self.cache_bytes.unwrap_or(store.cache_bytes);
        store.role = self.role;
        if let Some(seconds) = self.patience_seconds {
            // A commit must end within half of the time for which a listing is trusted.
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
