//! The Git server: smart HTTP, SSH, `git://` and netsync with users, roles, limits and metrics. See
//! `docs/design/serve.md`.
//!
//! This crate contains no rules of Git's protocol: requests are passed to [`service`] as streams of
//! bytes. Sockets, HTTP and SSH are asynchronous. The services are blocking, and run on a bounded
//! number of threads. The modules for access control ([`access`], [`names`], [`route`],
//! [`command`], [`authorization`], [`keys`], [`config`]) do no I/O on connections.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod access;
mod activity;
mod admission;
pub mod authorization;
#[cfg(test)]
mod bounds;
mod bridge;
pub mod bundles;
mod cache_directory;
pub mod certificate;
mod check;
pub mod command;
pub mod config;
mod connection;
mod creation;
pub mod daemon;
pub mod directory;
mod error;
mod http;
pub mod keys;
pub mod listings;
mod log;
mod metrics;
pub mod names;
mod netsync;
pub mod open_repository;
pub mod packs;
mod permission;
pub mod quota;
mod record;
mod reload;
pub mod repositories;
pub mod route;
mod secret;
mod server;
pub mod service;
mod setup;
mod shell;
mod ssh;
mod state;
mod store;
mod tls;
mod token;
mod upkeep;
pub mod users;
mod watched;
mod work;

pub use check::{ConfigFindings, check};
pub use error::{Error, ErrorKind, Result, public_message};
pub use log::{Event, EventRecord, LogFormat, LogLevel, OnEvent};
pub use server::{Control, Options, Started, serve};
pub use setup::ImplicitUser;
pub use shell::{Shell, serve_command};
pub use token::{TokenHash, generate as generate_token};
