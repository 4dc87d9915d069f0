//! Events of the server, and their representation as records of a log.

mod record;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

pub use record::{EventRecord, LogFormat, LogLevel};

/// The largest number of characters of an error in the log. Parts of an error are chosen by
/// clients.
const MOST_CHARACTERS: usize = 500;

/// An event of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A socket accepts connections.
    Listening {
        /// The protocol: `http`, `https`, `ssh`, `netsync` or `git`.
        protocol: &'static str,
        /// The address of the socket.
        address: SocketAddr,
    },
    /// A request is finished.
    Request(Box<Request>),
    /// A connection was not admitted, or no client has authenticated on it.
    Refused {
        /// The address of the client.
        address: SocketAddr,
        /// The reason of the refusal.
        reason: &'static str,
    },
    /// The configuration was reloaded.
    Reloaded {
        /// The error for which the new configuration was rejected. The previous configuration
        /// stays.
        error: Option<String>,
    },
    /// A reload has changed settings that apply only after a restart.
    RestartNeeded {
        /// The names of the settings, with their sections: `ssh.listen`.
        settings: Vec<&'static str>,
    },
    /// Upkeep of a repository in a store has ended.
    Upkeep {
        /// The repository, or an empty string if the repositories cannot be listed.
        repository: String,
        /// A description of the effects, or the error.
        result: Result<String, String>,
        /// The duration of the upkeep.
        duration: Duration,
    },
    /// An object of the store, or the disk of its cache, is faulty.
    Fault {
        /// The description of the fault, with the name of the object or file.
        message: String,
    },
    /// A child process, such as a hook, or this process has written to standard error.
    Output {
        /// A line of the output.
        line: String,
    },
    /// Lines of the log were dropped, because the reader of the log did not read them.
    Dropped {
        /// The number of lines.
        lines: u64,
    },
    /// The server drains, and accepts no more connections.
    Draining {
        /// The number of open connections.
        connections: usize,
    },
    /// All requests are finished, or the time to drain has passed.
    Drained {
        /// The number of connections that were closed before their requests finished.
        connections: usize,
    },
}

/// A finished request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The id of the request, which the client got in `X-Request-Id`, or with an error.
    pub id: String,
    /// The address of the client.
    pub address: SocketAddr,
    /// The protocol: `http`, `ssh`, `netsync` or `git`.
    pub protocol: &'static str,
    /// The name of the user, if the client has authenticated.
    pub user: Option<String>,
    /// The name of the repository, if the request names one.
    pub repository: Option<String>,
    /// The service: `git-upload-pack`, `git-receive-pack`, `netsync-pull`, `api` or another one.
    pub service: &'static str,
    /// The HTTP status, or its equivalent for the protocol.
    pub status: u16,
    /// The number of bytes of the request body, as sent.
    pub received_bytes: u64,
    /// The number of bytes of the response body.
    pub sent_bytes: u64,
    /// The time from the request head to the end of the response.
    pub duration: Duration,
    /// The error of a failed request.
    pub error: Option<String>,
    /// The use of the store, if the repositories are in a store.
    pub store: Option<StoreUse>,
}

/// The use of a store by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUse {
    /// The generation that the request read, or that its push committed.
    pub generation: u64,
    /// The number of calls of the store.
    pub calls: u64,
    /// The number of bytes that were read and written.
    pub bytes: u64,
    /// The total time of all calls, which may overlap.
    pub duration: Duration,
}

/// A receiver of events. Many threads call it, and it must not block for long.
pub type OnEvent = dyn Fn(&Event) + Send + Sync;

impl Event {
    /// Returns the event as a record of the log.
    pub fn record(&self) -> EventRecord {
        use LogLevel::{Error, Info, Warning};
        match self {
            Event::Listening { protocol, address } => EventRecord::new(Info, "listening")
                .with("protocol", *protocol)
                .with("address", address.to_string()),
            Event::Request(request) => request.record(),
            Event::Refused { address, reason } => EventRecord::new(Warning, "refused")
                .with("address", address.to_string())
                .with("reason", *reason),
            Event::Reloaded { error: None } => EventRecord::new(Info, "reloaded"),
            Event::Reloaded { error: Some(error) } => {
                EventRecord::new(Error, "reloaded").with("error", error.as_str())
            }
            Event::RestartNeeded { settings } => {
                let names: Vec<String> = settings.iter().map(|name| format!("'{name}'")).collect();
                let message = format!("a restart is needed for {}", names.join(", "));
                EventRecord::new(Warning, "restart-needed")
                    .with("message", message)
                    .with("settings", settings.clone())
            }
            Event::Upkeep {
                repository,
                result,
                duration,
            } => {
                let level = if result.is_ok() { Info } else { Warning };
                let mut record = EventRecord::new(level, "upkeep");
                if !repository.is_empty() {
                    record = record.with("repository", repository.as_str());
                }
                let (name, text) = match result {
                    Ok(done) => ("done", done),
                    Err(error) => ("error", error),
                };
                record
                    .with(name, text.as_str())
                    .with("seconds", duration.as_secs_f64())
            }
            Event::Fault { message } => {
                EventRecord::new(Error, "fault").with("error", message.as_str())
            }
            Event::Output { line } => {
                EventRecord::new(Info, "output").with("message", cut(line).as_str())
            }
            Event::Dropped { lines } => EventRecord::new(Warning, "dropped").with("lines", *lines),
            Event::Draining { connections } => {
                EventRecord::new(Info, "draining").with("connections", *connections)
            }
            Event::Drained { connections } => {
                let level = if *connections == 0 { Info } else { Warning };
                EventRecord::new(level, "drained").with("connections", *connections)
            }
        }
    }
}

/// Truncates a long text of a client.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl Request {
    fn record(&self) -> EventRecord {
        let level = match self.status {
            500.. => LogLevel::Error,
            _ if self.error.is_some() => LogLevel::Warning,
            _ => LogLevel::Info,
        };
        let mut record = EventRecord::new(level, "request")
            .with("status", self.status)
            .with("service", self.service);
        for (name, value) in [("repository", &self.repository), ("user", &self.user)] {
            if let Some(value) = value {
                record = record.with(name, value.as_str());
            }
        }
        record = record
            .with("address", self.address.to_string())
            .with("protocol", self.protocol)
            .with("milliseconds", self.duration.as_millis() as u64)
            .with("received_bytes", self.received_bytes)
            .with("sent_bytes", self.sent_bytes)
            .with("request", self.id.as_str());
        if let Some(store) = &self.store {
            let parts = json!({
                "generation": store.generation,
                "calls": store.calls,
                "bytes": store.bytes,
                "milliseconds": store.duration.as_millis() as u64,
            });
            record = record.with("store", parts);
        }
        match &self.error {
            Some(error) => record.with("error", cut(error)),
            None => record,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object() {
        let request = Request {
            id: "1".to_owned(),
            address: ([127, 0, 0, 1], 1).into(),
            protocol: "http",
            user: Some("a\"b\n\u{9b}\u{202e}".to_owned()),
            repository: None,
            service: "git-upload-pack",
            status: 200,
            received_bytes: 1,
            sent_bytes: 2,
            duration: Duration::from_millis(3),
            error: Some("é".repeat(10_000)),
            store: None,
        };
        let record = Event::Request(Box::new(request)).record();
        let line = record.line(LogFormat::Json);
        assert!(
            !line
                .chars()
                .any(|found| found.is_control() || found == '\u{202e}')
        );
        assert!(line.len() < 2000, "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value.get("milliseconds"), Some(&json!(3)));
        assert_eq!(value.get("user"), Some(&json!("a\"b\n\u{9b}\u{202e}")));
        let line = record.line(LogFormat::Human);
        assert!(
            !line
                .chars()
                .any(|found| found.is_control() || found == '\u{202e}'),
            "{line}"
        );
        let found = line.split_once(" warning request: status=200 service=git-upload-pack ");
        let (time, rest) = found.unwrap_or_else(|| panic!("{line}"));
        assert!(rest.starts_with(r#"user="a\"b\n"#), "{line}");
        assert_eq!(time.len(), "2026-11-30T12:00:00.000Z".len(), "{line}");
    }
}
