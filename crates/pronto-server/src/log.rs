//! Events of the server, and their representation as lines of JSON.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::token;

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
    /// Returns the event, with the current time, as a line of JSON.
    pub fn to_line(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let mut fields = Map::new();
        fields.insert("time".to_owned(), json!(now.as_millis() as f64 / 1000.0));
        let mut add = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        match self {
            Event::Listening { protocol, address } => {
                add("event", json!("listening"));
                add("protocol", json!(protocol));
                add("address", json!(address.to_string()));
            }
            Event::Request(request) => request.add_to(&mut add),
            Event::Refused { address, reason } => {
                add("event", json!("refused"));
                add("address", json!(address.to_string()));
                add("reason", json!(reason));
            }
            Event::Reloaded { error } => {
                add("event", json!("reloaded"));
                if let Some(error) = error {
                    add("error", json!(error));
                }
            }
            Event::Upkeep {
                repository,
                result,
                duration,
            } => {
                add("event", json!("upkeep"));
                if !repository.is_empty() {
                    add("repository", json!(repository));
                }
                match result {
                    Ok(done) => add("done", json!(done)),
                    Err(error) => add("error", json!(error)),
                }
                add("seconds", json!(duration.as_secs_f64()));
            }
            Event::Fault { message } => {
                add("event", json!("fault"));
                add("error", json!(message));
            }
            Event::Dropped { lines } => {
                add("event", json!("dropped"));
                add("lines", json!(lines));
            }
            Event::Draining { connections } => {
                add("event", json!("draining"));
                add("connections", json!(connections));
            }
            Event::Drained { connections } => {
                add("event", json!("drained"));
                add("connections", json!(connections));
            }
        }
        printable(&token::redacted(&Value::Object(fields).to_string()))
    }
}

/// Escapes characters of JSON that control terminals, or change the direction of text.
fn printable(json: &str) -> String {
    let is_special = |character: char| {
        let marks = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'];
        character.is_control()
            || marks.contains(&character)
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || ('\u{2066}'..='\u{2069}').contains(&character)
    };
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match is_special(character) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => text.push(character),
        }
    }
    text
}

/// Truncates a long text of a client.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl Request {
    fn add_to(&self, add: &mut dyn FnMut(&str, Value)) {
        add("event", json!("request"));
        add("request", json!(self.id));
        add("address", json!(self.address.to_string()));
        add("protocol", json!(self.protocol));
        add("service", json!(self.service));
        add("status", json!(self.status));
        for (name, value) in [("user", &self.user), ("repository", &self.repository)] {
            if let Some(value) = value {
                add(name, json!(value));
            }
        }
        add("received_bytes", json!(self.received_bytes));
        add("sent_bytes", json!(self.sent_bytes));
        add("milliseconds", json!(self.duration.as_millis() as u64));
        if let Some(store) = &self.store {
            add(
                "store",
                json!({
                    "generation": store.generation,
                    "calls": store.calls,
                    "bytes": store.bytes,
                    "milliseconds": store.duration.as_millis() as u64,
                }),
            );
        }
        if let Some(error) = &self.error {
            add("error", json!(cut(error)));
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
        let line = Event::Request(Box::new(request)).to_line();
        assert!(
            !line
                .chars()
                .any(|found| found.is_control() || found == '\u{202e}')
        );
        assert!(line.len() < 2000, "{line}");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value.get("milliseconds"), Some(&json!(3)));
        assert_eq!(value.get("user"), Some(&json!("a\"b\n\u{9b}\u{202e}")));
    }
}
