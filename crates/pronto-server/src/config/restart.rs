//! The settings that apply only after a restart of the server.

use super::{ServerConfig, StoreConfig};

/// Returns whether a setting differs between two configurations.
type Differs = fn(&ServerConfig, &ServerConfig) -> bool;

/// The settings that a reload does not apply.
const AFTER_RESTART: [(&str, Differs); 21] = [
    ("http.listen", |old, new| old.http != new.http),
    ("daemon.listen", |old, new| old.daemon != new.daemon),
    ("ssh.listen", |old, new| old.ssh.listen != new.ssh.listen),
    ("netsync.listen", |old, new| {
        old.netsync.listen != new.netsync.listen
    }),
    ("netsync.key", |old, new| old.netsync.key != new.netsync.key),
    ("netsync.memory_bytes", |old, new| {
        old.netsync.memory_bytes != new.netsync.memory_bytes
    }),
    ("metrics.listen", |old, new| {
        old.metrics_listen != new.metrics_listen
    }),
    ("log.format", |old, new| old.log_format != new.log_format),
    ("cache.directory", |old, new| {
        old.cache.directory != new.cache.directory
    }),
    ("cache.bytes", |old, new| old.cache.bytes != new.cache.bytes),
    ("cache.listing_bytes", |old, new| {
        old.cache.listing_bytes != new.cache.listing_bytes
    }),
    ("clone.bundle_uri", |old, new| {
        old.clone.bundle_uri != new.clone.bundle_uri
    }),
    ("clone.bundle_least_bytes", |old, new| {
        old.clone.bundle_least_bytes != new.clone.bundle_least_bytes
    }),
    ("store.url", |old, new| {
        let url = |config: &ServerConfig| config.store.as_ref().map(|store| store.url.clone());
        url(old) != url(new)
    }),
    ("store.generations", |old, new| {
        store_differs(old, new, |store| &store.generations)
    }),
    ("store.cache", |old, new| {
        store_differs(old, new, |store| &store.cache)
    }),
    ("store.patience_seconds", |old, new| {
        store_differs(old, new, |store| &store.patience)
    }),
    ("store.role", |old, new| {
        store_differs(old, new, |store| &store.role)
    }),
    ("store.upkeep_seconds", |old, new| {
        store_differs(old, new, |store| &store.upkeep)
    }),
    ("store.prune_after_days", |old, new| {
        store_differs(old, new, |store| &store.prune_after)
    }),
    // The number of threads follows from it.
    ("limits.requests", |old, new| {
        old.limits.requests < new.limits.requests
    }),
];

/// The limits that sessions of netsync keep from the start of the server.
const OF_NETSYNC: [(&str, Differs); 7] = [
    ("limits.connections for netsync", |old, new| {
        old.limits.connections != new.limits.connections
    }),
    ("limits.queue for netsync", |old, new| {
        old.limits.queue != new.limits.queue
    }),
    ("limits.user_share for netsync", |old, new| {
        old.limits.requests_per_user != new.limits.requests_per_user
    }),
    ("limits.head_seconds for netsync", |old, new| {
        old.limits.head != new.limits.head
    }),
    ("limits.stall_seconds for netsync", |old, new| {
        old.limits.stall != new.limits.stall
    }),
    ("limits.wait_seconds for netsync", |old, new| {
        old.limits.wait != new.limits.wait
    }),
    ("limits.request_seconds for netsync", |old, new| {
        old.limits.request != new.limits.request
    }),
];

/// Returns the settings of `new` that a server which was started with `old` applies only after a restart.
pub(crate) fn waiting_for_restart(old: &ServerConfig, new: &ServerConfig) -> Vec<&'static str> {
    let of_netsync = OF_NETSYNC.iter().filter(|_| !old.netsync.listen.is_empty());
    let all = AFTER_RESTART.iter().chain(of_netsync);
    all.filter(|(_, differs)| differs(old, new))
        .map(|(name, _)| *name)
        .collect()
}

/// Returns whether a setting of the store differs. Unless both have a store, only the URL is compared.
fn store_differs<T: PartialEq>(
    old: &ServerConfig,
    new: &ServerConfig,
    setting: fn(&StoreConfig) -> &T,
) -> bool {
    match (&old.store, &new.store) {
        (Some(old), Some(new)) => setting(old) != setting(new),
        _ => false,
    }
}
