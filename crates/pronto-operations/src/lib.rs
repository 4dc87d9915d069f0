//! Operations on the index and the worktree of a Git repository.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod add;
pub mod archive;
pub mod attributes;
pub mod checkout_index;
pub mod checkout_paths;
pub mod checkout_tree;
pub mod clean;
pub mod commit;
pub mod diff;
pub mod hash_object;
mod ignores;
mod index;
pub mod merge;
pub mod monitor;
pub mod read_tree;
pub mod refresh;
pub mod reset;
mod results;
mod session;
pub mod sparse_checkout;
mod split_index;
pub mod status;
pub mod switch;
mod tree_objects;
pub mod update_index;
pub mod upload_archive;
pub mod worktrees;
pub mod write_tree;

use pronto_repository::{
    Environment, Error, ErrorKind, PartialFailure, Repository, Result, config, durability,
    environment, errors, expiry, gitmodules, history, hooks, identity, in_progress, linked, lock,
    objects, packs, path, refs, revision, shared, siblings, support,
};
use pronto_transfer::remote;
