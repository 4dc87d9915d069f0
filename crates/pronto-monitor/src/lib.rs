//! A file system monitor for worktrees (`core.fsmonitor`), and its client. Both use the protocol of
//! Git's `fsmonitor--daemon`.
//!
//! - [`protocol`]: encodes and parses messages.
//! - [`client`]: queries a monitor over its socket.
//! - [`Journal`]: records the paths that changed since a token.
//! - `watch`: receives changes from `fanotify` or `inotify` (Linux).
//! - `server`: the monitor itself (Linux).
//!
//! A monitor may report unchanged paths, but never misses a change. If it cannot be sure, it
//! reports that every path may have changed.
//!
//! ```
//! use pronto_monitor::{MonitorResponse, Journal};
//! let mut journal = Journal::new("one");
//! let token = journal.token();
//! journal.add("a/b".into());
//! assert_eq!(journal.since(token.as_ref()), MonitorResponse::Paths { token: journal.token(), paths: vec!["a/b".into()] });
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(unix)]
pub mod client;
mod credentials;
mod journal;
pub mod protocol;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(target_os = "linux")]
pub mod watch;

pub use journal::Journal;
pub use protocol::MonitorResponse;
