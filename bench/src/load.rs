//! Clients that load a Git server, and the measurement of the server's resources.

pub mod client;
pub mod counts;
pub mod fetch;
pub mod group;
mod http;
mod packets;
pub mod push;
pub mod server;

/// A result whose error is text for the table.
pub type Result<T> = std::result::Result<T, String>;
