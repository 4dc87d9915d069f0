//! The Git server: smart HTTP and `git://` with users, roles, limits and metrics. See
//! `docs/design/serve.md`.
//!
//! No rule of Git's protocol is here: requests go to [`service`] as streams of bytes. Sockets and
//! HTTP are asynchronous, the services are blocking and run on a bounded number of threads. What
//! decides about access ([`access`], [`names`], [`route`], [`authorization`], [`config`]) is neither.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod access;
mod admission;
pub mod authorization;
mod bridge;
pub mod certificate;
pub mod config;
mod connection;
pub mod daemon;
mod error;
mod http;
mod log;
mod metrics;
pub mod names;
pub mod repositories;
pub mod route;
mod server;
pub mod service;
mod state;
mod tls;
mod token;
pub mod users;

pub use error::{Error, ErrorKind, Result};
pub use log::{Event, Tell};
pub use server::{Control, Options, Owner, Started, check, serve};
pub use token::{TokenHash, generate as generate_token};
