//! The settings of `git upload-pack`.

use std::collections::BTreeMap;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use pronto_storage::pack_objects::ObjectFilter;

use super::hidden::Hidden;
use crate::config::{Config, ConfigScope};
use crate::{Error, ErrorKind, Result};

/// The default of `uploadpack.keepAlive`: the time without data after which a keep-alive packet is
/// sent.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The objects that a client of version 0 or 1 may request although they are not advertised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AllowedWants {
    /// The tips of hidden refs (`uploadpack.allowTipSHA1InWant`).
    pub(super) tips: bool,
    /// Objects that are reachable from refs (`uploadpack.allowReachableSHA1InWant`).
    pub(super) reachable: bool,
    /// All objects (`uploadpack.allowAnySHA1InWant`).
    pub(super) any: bool,
}

impl AllowedWants {
    /// Whether hidden refs count as refs.
    pub(super) fn hidden_refs(self) -> bool {
        self.tips || self.reachable
    }

    /// Whether all objects are allowed.
    pub(super) fn everything(self) -> bool {
        self.tips && self.reachable && self.any
    }
}

/// The settings of one conversation.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) allowed: AllowedWants,
    /// The interval of keep-alive packets (`uploadpack.keepAlive`); `None` if none are sent.
    pub(super) keep_alive: Option<Duration>,
    pub(super) filter: bool,
    pub(super) ref_in_want: bool,
    pub(super) sideband_all: bool,
    pub(super) packfile_uris: bool,
    pub(super) session_id: bool,
    pub(super) object_info: bool,
    /// Whether the configured bundle URIs are advertised (`uploadpack.advertiseBundleURIs`); `None`
    /// if unset.
    pub(super) bundle_uris: Option<bool>,
    pub(super) hidden: Hidden,
    /// The program that replaces `git pack-objects` (`uploadpack.packObjectsHook`), from protected
    /// configuration.
    pub(super) hook: Option<BString>,
    filters: AllowedFilters,
}

/// The allowed object filters (`uploadpackfilter.*`).
#[derive(Debug)]
struct AllowedFilters {
    default: bool,
    by_name: BTreeMap<BString, bool>,
    deepest_tree: u64,
}

impl Settings {
    /// # Errors
    /// Fails if a setting has an invalid value.
    pub(super) fn read(config: &Config) -> Result<Settings> {
        let flag = |key: &str| config.bool_or(key, false);
        let keep_alive = match config.i32("uploadpack.keepalive")? {
            None => Some(KEEP_ALIVE),
            Some(seconds) => u64::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
        };
        Ok(Settings {
            allowed: allowed(config)?,
            keep_alive,
            filter: flag("uploadpack.allowfilter")?,
            ref_in_want: flag("uploadpack.allowrefinwant")?,
            sideband_all: flag("uploadpack.allowsidebandall")?,
            packfile_uris: config.raw("uploadpack.blobpackfileuri").is_some(),
            session_id: flag("transfer.advertisesid")?,
            // Git reads `transfer.advertiseObjectInfo` only for protocol version 2, so that a
            // malformed value has no effect here.
            object_info: flag("transfer.advertiseobjectinfo").unwrap_or(false),
            bundle_uris: config.bool("uploadpack.advertisebundleuris")?,
            hidden: Hidden::configured(config),
            hook: hook(config),
            filters: AllowedFilters::read(config)?,
        })
    }

    /// Checks that `filter` is allowed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] and Git's message if `filter` is not allowed.
    pub(super) fn check_filter(&self, filter: &ObjectFilter) -> Result<()> {
        let name = filter.config_name();
        let by_name = self.filters.by_name.get(name.as_bytes().as_bstr());
        if !by_name.copied().unwrap_or(self.filters.default) {
            let message = format!("filter '{name}' not supported");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        match filter {
            ObjectFilter::TreeDepth(depth) if *depth > self.filters.deepest_tree => {
                let deepest = self.filters.deepest_tree;
                let message = format!("tree filter allows max depth {deepest}, but got {depth}");
                Err(Error::new(ErrorKind::Refused, message))
            }
            ObjectFilter::Combine(parts) => {
                parts.iter().try_for_each(|part| self.check_filter(part))
            }
            _ => Ok(()),
        }
    }
}

/// Reads the settings of allowed wants. Later settings enable or disable single permissions.
fn allowed(config: &Config) -> Result<AllowedWants> {
    let mut allowed = AllowedWants::default();
    for entry in config.iter() {
        match entry.key.as_bytes() {
            b"uploadpack.allowtipsha1inwant" => allowed.tips = entry.bool()?,
            b"uploadpack.allowreachablesha1inwant" => allowed.reachable = entry.bool()?,
            b"uploadpack.allowanysha1inwant" => {
                let is_allowed = entry.bool()?;
                allowed = AllowedWants {
                    tips: is_allowed,
                    reachable: is_allowed,
                    any: is_allowed,
                };
            }
            _ => {}
        }
    }
    Ok(allowed)
}

/// Returns the hook, which the configuration of the repository itself must not set.
fn hook(config: &Config) -> Option<BString> {
    let entries = config.entries("uploadpack.packobjectshook");
    let mut protected = entries.filter(|entry| {
        let scope = entry.origin.scope;
        matches!(
            scope,
            ConfigScope::System | ConfigScope::Global | ConfigScope::Command
        )
    });
    let last = protected.next_back()?;
    last.value.map(|value| value.to_owned())
}

impl AllowedFilters {
    fn read(config: &Config) -> Result<AllowedFilters> {
        let mut filters = AllowedFilters {
            default: config.bool_or("uploadpackfilter.allow", true)?,
            by_name: BTreeMap::new(),
            deepest_tree: u64::MAX,
        };
        for entry in config.iter() {
            let Some(rest) = entry.key.strip_prefix(b"uploadpackfilter.") else {
                continue;
            };
            if let Some(name) = rest.strip_suffix(b".allow") {
                filters.by_name.insert(name.into(), entry.bool()?);
            } else if rest == b"tree.maxdepth" {
                // As in Git, a missing value is reported first.
                entry.string()?;
                filters.deepest_tree = entry.u64()?;
                filters.by_name.insert("tree".into(), true);
            }
        }
        Ok(filters)
    }
}
