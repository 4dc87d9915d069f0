//! The metrics of a server, beside the list of metrics in `docs/operate.md`, the alert rules and the
//! dashboard in `contrib/metrics`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::serve_store::{World, get};

/// The metric that only servers with HTTPS have.
const WITH_HTTPS: &str = "pronto_server_certificate_expiry_timestamp_seconds";

/// The metrics that a server has from the first event on.
const AFTER_AN_EVENT: [&str; 4] = [
    "pronto_server_refused_connections_total",
    "pronto_server_request_duration_seconds",
    "pronto_server_requests_total",
    "pronto_server_store_failures_total",
];

/// The names of what a histogram consists of.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

#[test]
fn documents_and_rules_name_the_metrics_of_the_server() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let mut served = families(&get(&server, "/metrics"));
    assert!(served.len() > 20, "{served:?}");
    served.extend(AFTER_AN_EVENT.map(str::to_owned));
    let documented: BTreeSet<String> = read("docs/operate.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `pronto_server_"))
        .filter_map(|line| line.split_once('`'))
        .map(|(name, _)| format!("pronto_server_{name}"))
        .collect();
    assert_eq!(documented, served);
    for file in [
        "docs/operate.md",
        "contrib/metrics/alerts.yml",
        "contrib/metrics/dashboard.json",
    ] {
        for name in names(&read(file)) {
            let family = PARTS.iter().find_map(|part| name.strip_suffix(part));
            let is_known = [Some(name.as_str()), family]
                .into_iter()
                .flatten()
                .any(|name| served.contains(name) || name == WITH_HTTPS);
            assert!(
                is_known,
                "{file} names the metric {name}, which the server does not have"
            );
        }
    }
}

#[test]
fn the_dashboard_is_a_document_with_a_query_in_each_panel() {
    let text = read("contrib/metrics/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let is_row = |panel: &serde_json::Value| panel["type"] == "row";
    for panel in panels.iter().filter(|panel| !is_row(panel)) {
        let targets = panel["targets"].as_array().map_or(0, Vec::len);
        assert!(targets > 0, "{}", panel["title"]);
    }
}

/// Returns the names of the metrics in the answer of a server.
fn families(metrics: &str) -> BTreeSet<String> {
    let types = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |line: &str| match line.split_once(' ') {
        Some((name, "counter")) => format!("{name}_total"),
        Some((name, _)) => name.to_owned(),
        None => panic!("a line without a type: {line}"),
    };
    types.map(name).collect()
}

/// Returns the words of a text that are names of metrics.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |each: char| each.is_ascii_alphanumeric() || each == '_';
    text.split(|each| !is_part(each))
        .filter(|word| word.starts_with("pronto_server_") && !word.ends_with('_'))
        .map(str::to_owned)
        .collect()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
