//! A Git-compatible version control engine: repositories and their operations as a library.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod add;
pub mod attributes;
pub mod bitmaps;
pub mod checkout_index;
pub mod checkout_paths;
pub mod checkout_tree;
pub mod clean;
pub mod clone;
pub mod commit;
pub mod commit_graph;
pub mod diff;
mod errors;
pub mod fetch;
pub mod fsck;
pub mod gitmodules;
pub mod hash_object;
pub mod history;
pub mod hooks;
pub mod identity;
mod index;
pub mod init;
pub mod links;
pub mod maintenance;
pub mod merge;
pub mod monitor;
pub mod multi_pack_index;
pub mod objects;
pub mod pack_objects;
pub mod packs;
pub mod prune;
pub mod reachable;
pub mod read_tree;
pub mod reflog;
pub mod refresh;
pub mod refs;
pub mod remote;
pub mod repack;
pub mod repository;
pub mod reset;
pub mod revision;
pub mod shallow;
pub mod sparse_checkout;
mod split_index;
pub mod status;
pub mod switch;
pub mod update_index;
pub mod upload_pack;
mod worktree;
pub mod worktrees;
pub mod write_tree;

pub use pronto_config::{
    Environment, Error, ErrorKind, Layout, Result, config, environment, glob, lock, path, quote,
};
mod date;
mod expiry;
mod ignores;
mod last_used;
mod session;
mod siblings;
use pronto_config::{durability, shared};
pub use repository::Repository;
