//! A file system monitor for worktrees that speaks the protocol of Git's `fsmonitor--daemon`, and
//! its clients.
//!
//! - [`protocol`]: messages as bytes.
//! - [`client`]: questions to a monitor over its socket.
//! - [`Journal`]: the paths that changed since a token.
//! - `watch`: changes as reported by `fanotify` or `inotify` (Linux).
//! - `server`: the monitor itself (Linux).
//!
//! A monitor may report too much, but never too little: when in doubt it answers that everything
//! has changed.
//!
//! ```
//! use pronto_monitor::{Answer, Journal};
//! let mut journal = Journal::new("one");
//! let token = journal.token();
//! journal.add("a/b".into());
//! assert_eq!(journal.since(token.as_ref()), Answer::Paths { token: journal.token(), paths: vec!["a/b".into()] });
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
pub use protocol::Answer;
