//! A Git-compatible version control engine: repositories and their operations as a library.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod history;
pub mod repository;
mod storage;
mod transfer;
mod upkeep;
mod worktree;

pub use history::{reachable, reflog, revision};
pub use pronto_config::{
    Environment, Error, ErrorKind, Layout, Result, config, environment, glob, lock, path, quote,
};
use pronto_config::{durability, shared};
pub use repository::Repository;
pub(crate) use repository::{date, errors, expiry};
pub use repository::{gitmodules, hooks, identity, init, links, objects, packs, refs, shallow};
pub(crate) use storage::last_used;
pub use storage::{bitmaps, commit_graph, fsck, multi_pack_index, pack_objects, prune, repack};
pub use transfer::{clone, fetch, push, receive_pack, remote, upload_pack};
pub use upkeep::maintenance;
pub use worktree::{
    add, attributes, checkout_index, checkout_paths, checkout_tree, clean, commit, diff,
    hash_object, merge, monitor, read_tree, refresh, reset, sparse_checkout, status, switch,
    update_index, worktrees, write_tree,
};
pub(crate) use worktree::{ignores, index, session, siblings};

/// Fetches missing objects of a partial clone, for groups below `transfer`.
pub(crate) const FETCH_PROMISED: repository::promised::Fetch = remote::fetch_promised;
