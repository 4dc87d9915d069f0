//! What changed in a worktree: a file system monitor that speaks the protocol of Git's
//! `fsmonitor--daemon`, and the ways to ask one.
//!
//! - [`protocol`]: messages as bytes.
//! - [`client`]: asking a monitor over its socket.
//! - [`Journal`]: which paths changed since a token.
//! - `watch`: changes as `fanotify` or `inotify` tells them (Linux).
//! - `server`: the monitor itself (Linux).
//!
//! A monitor may say too much, and never too little: when in doubt it answers that everything
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
