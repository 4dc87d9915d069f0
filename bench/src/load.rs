//! Clients that load a Git server, and what it takes: used by the programs that measure servers.

pub mod client;
pub mod counts;
pub mod fetch;
pub mod group;
mod http;
mod packets;
pub mod push;
pub mod server;

/// An error is text for the table.
pub type Result<T> = std::result::Result<T, String>;
