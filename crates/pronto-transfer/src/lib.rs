//! Exchanges objects and refs with other Git repositories: remotes, fetch, push, bundles, and the
//! serving side.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bundle;
pub mod bundle_uri;
mod enter;
pub mod fetch;
mod meters;
pub mod push;
pub mod receive_pack;
pub mod remote;
pub mod remote_archive;
mod results;
pub mod upload_pack;

use pronto_repository::{
    Environment, Error, ErrorKind, Repository, Result, config, environment, history, hooks, init,
    linked, links, lock, objects, packs, path, quote, refs, revision, shallow, shared, support,
    walk,
};

/// Returns the error for a request that exceeds a memory budget.
fn exhausted(by: pronto_io::budget::Exhausted) -> Error {
    Error::new(ErrorKind::Exhausted, by.to_string())
}

/// Returns the error for an interrupted operation.
fn interrupted(reason: pronto_io::interrupt::Interrupted) -> Error {
    Error::new(ErrorKind::Interrupted, reason.to_string())
}
