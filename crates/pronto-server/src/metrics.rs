//! Metrics for `/metrics`, in the text format of Prometheus. No label contains the name of a user
//! or repository.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

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
    /// The number of Git requests in flight.
    pub(crate) under_way: Gauge,
    /// The number of open connections.
    pub(crate) connections: Gauge,
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
    pub(crate) fn new(service: &dyn GitService, repositories: &Repositories) -> Self {
        let mut registry = Registry::with_prefix("pronto_server");
        let requests = Family::<RequestLabels, Counter>::default();
        let seconds = Family::<RequestLabels, Histogram>::new_with_constructor(histogram);
        let refused = Family::<RequestLabels, Counter>::default();
        let (received, sent) = (Counter::default(), Counter::default());
        let (reloads, under_way, connections) =
            (Counter::default(), Gauge::default(), Gauge::default());
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
            under_way,
            connections,
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

    /// Returns all metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
