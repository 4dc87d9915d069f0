//! `serve --listen`: serves many netsync peers, and prints each event as a line.

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use bstr::ByteSlice as _;
use pronto_io::hosts;
use pronto_peer::server::{self, BoundServer, ConnectionSummary, Event, ListedPeers, PeerLimits};
use pronto_peer::{DEFAULT_PORT, KeyPair, KeyPaths};
use pronto_server::config::LogFormatSetting;
use pronto_server::{EventRecord, LogFormat, LogLevel};

use super::{Args, log};
use crate::commands::netsync::paths;
use crate::commands::peers::default_globs;
use crate::{CliError, Context, ExitCode};

/// The timeout for the address of a host.
pub(super) const LOOK_UP: Duration = Duration::from_secs(30);

pub(super) fn run(args: &Args, at: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let environment = context.environment()?;
    let KeyPaths { key, peers } = paths(context)?;
    let key = KeyPair::read(&key)?;
    let place = match &args.directory {
        Some(directory) => environment.absolute(Path::new(directory)),
        None => {
            let repository = context.repository()?;
            repository
                .work_tree()
                .unwrap_or(repository.git_dir())
                .to_owned()
        }
    };
    let place = std::fs::canonicalize(&place).map_err(|error| {
        CliError::of_system(&format!("cannot serve '{}'", place.display()), &error)
    })?;
    let mib = |count: u64| count.saturating_mul(1 << 20);
    let mut limits = PeerLimits::default();
    limits.connections = args.max_connections.max(1);
    limits.memory_bytes = mib(args.memory);
    limits.handshake = Duration::from_secs(args.handshake_timeout);
    limits.idle = Duration::from_secs(args.idle_timeout);
    limits.slow = Duration::from_secs(args.slow_timeout.max(1));
    limits.waiting = Duration::from_secs(args.wait_timeout);
    limits.session = Duration::from_secs(args.session_timeout);
    let mut host = ListedPeers::new(place, peers, environment);
    host.fast_forward = args.ff;
    host.budget_bytes = args.max_received.map_or(host.budget_bytes, mib);
    let listener = bind(at)?;
    let mut options = server::Options::new(key, Box::new(host));
    options.limits = limits;
    options.globs = default_globs();
    options.allows_unrelated = args.allow_unrelated;
    options.is_once = args.once;
    let drain = context.drain();
    let shutdown = server::Shutdown {
        drain: &drain,
        stop: &context.interrupt,
    };
    let format = log::chosen(args.log_format.map_or(LogFormatSetting::Auto, Into::into));
    let on_event = Box::new(move |event: &Event| print_event(event, format));
    BoundServer::new(vec![listener], options)?.serve(shutdown, on_event);
    Ok(ExitCode::SUCCESS)
}

fn bind(at: &str) -> Result<TcpListener, CliError> {
    let failed = |error: io::Error| {
        CliError::of_system(&format!("cannot listen at '{at}'"), &error)
            .with_hint("use HOST:PORT, for example 0.0.0.0:9419 or [::]:9419")
    };
    // A host without a port uses the default port.
    let addresses = hosts::resolve_address(at, Some(DEFAULT_PORT), LOOK_UP).map_err(failed)?;
    TcpListener::bind(&addresses[..]).map_err(failed)
}

/// Prints a line on standard error. The server ignores a failure to print.
fn print_event(event: &Event, format: LogFormat) {
    let info = |event| EventRecord::new(LogLevel::Info, event);
    let record = match event {
        Event::Listening { address, key } => info("listening")
            .with("address", address.to_string())
            .with("key", key.to_string())
            .with("fingerprint", key.fingerprint()),
        Event::Overloaded { address } => {
            EventRecord::new(LogLevel::Warning, "overloaded").with("address", address.to_string())
        }
        Event::Draining { connections } => info("draining").with("connections", *connections),
        Event::Ended(ended) => session(ended),
        _ => info("unknown"),
    };
    let line = format!("{}\n", record.line(format));
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Returns the record of a connection that has ended.
fn session(ended: &ConnectionSummary) -> EventRecord {
    let record = match ended.error {
        Some(_) => EventRecord::new(LogLevel::Warning, "failed"),
        None => EventRecord::new(LogLevel::Info, "synced"),
    };
    let mut record = record
        .with("number", ended.number)
        .with("address", ended.address.to_string());
    if let Some(key) = &ended.key {
        record = record.with("fingerprint", key.fingerprint());
    }
    if let Some(peer) = &ended.peer {
        record = record.with("peer", peer.as_str());
    }
    if let Some(repository) = &ended.repository {
        record = record.with("repository", repository.to_str_lossy().as_ref());
    }
    let record = record
        .with("received_bytes", ended.received_bytes)
        .with("sent_bytes", ended.sent_bytes)
        .with("changed_refs", ended.changed_refs)
        .with("milliseconds", ended.duration.as_millis() as u64);
    match &ended.error {
        Some(error) => record.with("error", error.as_str()),
        None => record,
    }
}
