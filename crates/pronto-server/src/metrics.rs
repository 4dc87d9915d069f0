//! Metrics for `/metrics`, in the text format of Prometheus. No label contains the name of a user
//! or repository.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::admission::Admission;
use crate::repositories::Repositories;
use crate::service::GitService;

/// The labels of a finished request.
type RequestLabels = Vec<(&'static str, String)>;

/// The metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RequestLabels, Histogram>,
    refused: Family<RequestLabels, Counter>,
    received: Counter<u64, AtomicU64>,
    sent: Counter<u64, AtomicU64>,
    reloads: Counter,
    failed_reloads: Counter,
    connections: Gauge,
    waiting: Gauge,
    resident: Gauge,
    anonymous: Gauge,
    certificate_end: Family<RequestLabels, Gauge>,
    /// The number of Git requests in flight.
    pub(crate) under_way: Gauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn histogram() -> Histogram {
    // The buckets range from a millisecond to about an hour.
    Histogram::new(exponential_buckets(0.001, 4.0, 12))
}

impl Metrics {
    pub(crate) fn new(
        service: &dyn GitService,
        repositories: &Repositories,
        admission: &Admission,
    ) -> Self {
        let mut registry = Registry::with_prefix("pronto_server");
        let requests = Family::<RequestLabels, Counter>::default();
        let seconds = Family::<RequestLabels, Histogram>::new_with_constructor(histogram);
        let refused = Family::<RequestLabels, Counter>::default();
        let (received, sent) = (Counter::default(), Counter::default());
        let (reloads, failed_reloads) = (Counter::default(), Counter::default());
        let (under_way, connections, waiting) = <(Gauge, Gauge, Gauge)>::default();
        let (resident, anonymous) = <(Gauge, Gauge)>::default();
        let certificate_end = Family::<RequestLabels, Gauge>::default();
        registry.register("requests", "Finished requests", requests.clone());
        let help = "Duration of requests of Git";
        registry.register("request_duration_seconds", help, seconds.clone());
        let help = "Connections that were not admitted";
        registry.register("refused_connections", help, refused.clone());
        let help = "Bytes of bodies of requests";
        registry.register("received_bytes", help, received.clone());
        let help = "Bytes of bodies of responses";
        registry.register("sent_bytes", help, sent.clone());
        let help = "Successful reloads of the configuration";
        registry.register("reloads", help, reloads.clone());
        let help = "Requests of Git that have a slot";
        registry.register("requests_under_way", help, under_way.clone());
        registry.register("connections", "Open connections", connections.clone());
        let help = "Reloads of the configuration that failed";
        registry.register("failed_reloads", help, failed_reloads.clone());
        let help = "Requests that wait for a slot";
        registry.register("requests_waiting", help, waiting.clone());
        let help = "Waits of requests for a slot";
        let waits = admission.waits().clone();
        registry.register("request_wait_seconds", help, waits);
        let help = "Memory of the process, with mapped files";
        registry.register("resident_memory_bytes", help, resident.clone());
        let help = "Memory of the process, without mapped files";
        registry.register("anonymous_memory_bytes", help, anonymous.clone());
        let help = "Time at which the certificate of HTTPS expires, in seconds since 1970";
        let end = certificate_end.clone();
        registry.register("certificate_expiry_timestamp_seconds", help, end);
        service.register(&mut registry);
        if let Some(store) = repositories.store() {
            store.register(&mut registry);
        }
        Metrics {
            registry,
            requests,
            seconds,
            refused,
            received,
            sent,
            reloads,
            failed_reloads,
            connections,
            waiting,
            resident,
            anonymous,
            certificate_end,
            under_way,
        }
    }

    /// Counts a finished request.
    pub(crate) fn finished(&self, request: &crate::log::Request) {
        let labels = vec![
            ("service", request.service.to_owned()),
            ("status", request.status.to_string()),
        ];
        self.requests.get_or_create(&labels).inc();
        if request.repository.is_some() {
            let labels = vec![("service", request.service.to_owned())];
            let seconds = request.duration.as_secs_f64();
            self.seconds.get_or_create(&labels).observe(seconds);
        }
        self.received.inc_by(request.received_bytes);
        self.sent.inc_by(request.sent_bytes);
    }

    /// Counts a connection that was not admitted.
    pub(crate) fn refused(&self, reason: &'static str) {
        let labels = vec![("reason", reason.to_owned())];
        self.refused.get_or_create(&labels).inc();
    }

    /// Counts a reload.
    pub(crate) fn reloaded(&self) {
        self.reloads.inc();
    }

    /// Counts a reload that failed.
    pub(crate) fn reload_failed(&self) {
        self.failed_reloads.inc();
    }

    /// Returns all metrics as text. `certificate_end` is the second at which the certificate expires.
    pub(crate) fn text(&self, admission: &Admission, certificate_end: Option<i64>) -> String {
        self.connections.set(admission.connections() as i64);
        self.waiting.set(admission.waiting() as i64);
        if let Some((resident, anonymous)) = memory() {
            self.resident.set(resident);
            self.anonymous.set(anonymous);
        }
        match certificate_end {
            Some(end) => _ = self.certificate_end.get_or_create(&Vec::new()).set(end),
            None => self.certificate_end.clear(),
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Returns the memory of this process in bytes: all that is resident, and the part of it that belongs to no
/// file. `None` if the system does not report it.
fn memory() -> Option<(i64, i64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| -> Option<i64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib * 1024)
    };
    Some((bytes("VmRSS:")?, bytes("RssAnon:")?))
}
