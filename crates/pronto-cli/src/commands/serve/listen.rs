//! `serve --listen`: serves many netsync peers, and prints each event as a line of JSON.

use std::io::{self, Write as _};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bstr::ByteSlice as _;
use pronto_peer::server::{self, BoundServer, ConnectionSummary, Event, ListedPeers, PeerLimits};
use pronto_peer::{DEFAULT_PORT, KeyPair, KeyPaths};

use super::Args;
use crate::commands::netsync::paths;
use crate::commands::peers::{default_globs, quoted};
use crate::{CliError, Context, ExitCode};

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
    let place = std::fs::canonicalize(&place)
        .map_err(|error| CliError::fatal(format!("cannot serve '{}': {error}", place.display())))?;
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
    BoundServer::new(vec![listener], options)?.serve(shutdown, Box::new(print_event));
    Ok(ExitCode::SUCCESS)
}

fn bind(at: &str) -> Result<TcpListener, CliError> {
    let failed = |error: io::Error| {
        CliError::fatal(format!("cannot listen at '{at}': {error}"))
            .with_hint("use HOST:PORT, for example 0.0.0.0:9419 or [::]:9419")
    };
    // A host without a port uses the default port.
    let addresses = match at.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => match (at, DEFAULT_PORT).to_socket_addrs() {
            Ok(addresses) => addresses.collect::<Vec<_>>(),
            Err(_) => return Err(failed(error)),
        },
    };
    TcpListener::bind(&addresses[..]).map_err(failed)
}

/// Prints a line on standard error. The server ignores a failure to print.
fn print_event(event: &Event) {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut line = format!("{{\"time\":{}.{:03},", time.as_secs(), time.subsec_millis());
    let text = |text: &str| quoted(text.as_bytes());
    match event {
        Event::Listening { address, key } => line.push_str(&format!(
            "\"event\":\"listening\",\"address\":\"{address}\",\"key\":\"{key}\",\"fingerprint\":\"{}\"",
            key.fingerprint()
        )),
        Event::Overloaded { address } => line.push_str(&format!(
            "\"event\":\"overloaded\",\"address\":\"{address}\""
        )),
        Event::Draining { connections } => line.push_str(&format!(
            "\"event\":\"draining\",\"connections\":{connections}"
        )),
        Event::Ended(ended) => session(ended, &mut line, &text),
        _ => line.push_str("\"event\":\"unknown\""),
    }
    line.push_str("}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

fn session(ended: &ConnectionSummary, line: &mut String, text: &dyn Fn(&str) -> String) {
    line.push_str(&format!(
        "\"event\":\"{}\",\"number\":{},\"address\":\"{}\"",
        match ended.error {
            Some(_) => "failed",
            None => "synced",
        },
        ended.number,
        ended.address
    ));
    if let Some(key) = &ended.key {
        line.push_str(&format!(",\"fingerprint\":\"{}\"", key.fingerprint()));
    }
    if let Some(peer) = &ended.peer {
        line.push_str(&format!(",\"peer\":{}", text(peer)));
    }
    if let Some(repository) = &ended.repository {
        line.push_str(&format!(
            ",\"repository\":{}",
            text(&repository.to_str_lossy())
        ));
    }
    line.push_str(&format!(
        ",\"received_bytes\":{},\"sent_bytes\":{},\"changed_refs\":{},\"milliseconds\":{}",
        ended.received_bytes,
        ended.sent_bytes,
        ended.changed_refs,
        ended.duration.as_millis()
    ));
    if let Some(error) = &ended.error {
        line.push_str(&format!(",\"error\":{}", text(error)));
    }
}
