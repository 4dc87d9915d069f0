//! Metrics of the store and of the cache, and the health of the store.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use pronto_store::{ErrorKind, MeteredCall};

use super::{StoredRepositories, tally};

/// The time after which an answered call no longer shows that the store responds.
const FRESH: Duration = Duration::from_secs(5);

/// The labels of a call.
type CallLabels = Vec<(&'static str, &'static str)>;

/// The health of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The store answered the last call.
    Reachable,
    /// The store has answered no call for this time.
    Unreachable(Duration),
}

/// Counts the calls of the store, and records their results.
pub(super) struct StoreMetrics {
    calls: Family<CallLabels, Counter>,
    failures: Family<CallLabels, Counter>,
    bytes: Family<CallLabels, Counter<u64, AtomicU64>>,
    seconds: Family<CallLabels, Histogram>,
    state: Mutex<ObserverState>,
}

#[derive(Debug, Default)]
struct ObserverState {
    /// The time at which the last call ended.
    last: Option<Instant>,
    /// The time since which calls of the store fail, and the time since which calls of the database
    /// of generations fail.
    failing: [Option<Instant>; 2],
    is_checking: bool,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        // The buckets range from a millisecond to about a minute.
        let histogram = || Histogram::new(exponential_buckets(0.001, 3.0, 11));
        StoreMetrics {
            calls: Family::default(),
            failures: Family::default(),
            bytes: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            state: Mutex::default(),
        }
    }
}

impl pronto_store::CallObserver for StoreMetrics {
    fn called(&self, call: &MeteredCall) {
        let labels = vec![("call", call.kind.name())];
        self.calls.get_or_create(&labels).inc();
        if call.error.is_some() {
            self.failures.get_or_create(&labels).inc();
        }
        self.bytes.get_or_create(&labels).inc_by(call.bytes);
        let seconds = call.duration.as_secs_f64();
        self.seconds.get_or_create(&labels).observe(seconds);
        tally::called(call.bytes, call.duration);
        let is_unreachable = matches!(
            call.error,
            Some(ErrorKind::Unavailable | ErrorKind::Denied | ErrorKind::Io | ErrorKind::NoStore)
        );
        let now = Instant::now();
        let mut state = self.state();
        state.last = Some(now);
        let failing = &mut state.failing[usize::from(call.kind.is_of_database())];
        *failing = is_unreachable.then(|| failing.unwrap_or(now));
    }
}

impl StoreMetrics {
    fn state(&self) -> MutexGuard<'_, ObserverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the health of the store. `check` makes a call of the store. It runs if the last call
    /// is not recent, in one thread at a time.
    pub(super) fn health(&self, check: impl FnOnce()) -> Health {
        let mut state = self.state();
        let is_fresh = state.last.is_some_and(|last| last.elapsed() < FRESH);
        if !is_fresh && !state.is_checking {
            state.is_checking = true;
            drop(state);
            check();
            state = self.state();
            state.is_checking = false;
        }
        match state.failing.into_iter().flatten().min() {
            None => Health::Reachable,
            Some(since) => Health::Unreachable(since.elapsed()),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Calls of the store, and of the database with its generations";
        registry.register("store_calls", help, self.calls.clone());
        let help = "Calls of the store that failed";
        registry.register("store_failures", help, self.failures.clone());
        let help = "Bytes that were read from the store, and written to it";
        registry.register("store_bytes", help, self.bytes.clone());
        let help = "Duration of calls of the store";
        registry.register("store_call_duration_seconds", help, self.seconds.clone());
    }
}

/// A collector for the counters of the cache.
#[derive(Debug)]
pub(super) struct CacheCollector(pub(super) Arc<StoredRepositories>);

impl Collector for CacheCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(cache) = &self.0.cache else {
            return Ok(());
        };
        let counts = cache.counts();
        for (name, help, counter) in [
            (
                "store_cache_hits",
                "Requests whose view was in the cache",
                &counts.hits,
            ),
            (
                "store_cache_misses",
                "Requests for which a view was made",
                &counts.misses,
            ),
            (
                "store_cache_evictions",
                "Repositories that were removed from the cache to make room",
                &counts.evictions,
            ),
        ] {
            let counter = ConstCounter::new(counter.load(Relaxed));
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        let blocks = cache.block_counts();
        for (name, help, count) in [
            (
                "store_block_requests",
                "Requests of blocks of packs",
                blocks.requests,
            ),
            (
                "store_block_bytes",
                "Bytes of blocks that were fetched",
                blocks.bytes,
            ),
            (
                "store_damaged",
                "Blocks and files in the cache that were damaged",
                blocks.damaged,
            ),
            (
                "store_failed_blocks",
                "Requests of blocks that failed, and blocks of the store that are wrong",
                blocks.failed,
            ),
            (
                "store_unwritable",
                "Requests whose blocks could not be written to the cache",
                blocks.unwritable,
            ),
        ] {
            let counter = ConstCounter::new(count);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        let gauge = ConstGauge::new(i64::try_from(cache.bytes()).unwrap_or(i64::MAX));
        let (name, help) = ("store_cache_bytes", "Bytes of files in the cache");
        let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
        gauge.encode(metric)
    }
}
