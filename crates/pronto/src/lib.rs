//! A Git-compatible version control engine: repositories and their operations as a library.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod clone;
pub mod maintenance;

pub use pronto_operations::{
    add, attributes, checkout_index, checkout_paths, checkout_tree, clean, commit, diff,
    hash_object, merge, monitor, read_tree, refresh, reset, sparse_checkout, status, switch,
    update_index, worktrees, write_tree,
};
pub use pronto_repository::{
    Environment, Error, ErrorKind, Layout, Repository, Result, config, environment, glob, lock,
    path, quote,
};
pub use pronto_repository::{
    bitmaps, commit_graph, fsck, gitmodules, history, hooks, identity, init, links,
    multi_pack_index, objects, pack_objects, packs, prune, reachable, reflog, refs, repack,
    repository, revision, shallow,
};
use pronto_repository::{durability, expiry, local};
pub use pronto_transfer::{fetch, push, receive_pack, remote, upload_pack};
