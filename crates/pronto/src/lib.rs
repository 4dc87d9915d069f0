//! A Git-compatible version control engine: repositories and their operations as a library.

pub mod add;
pub mod attributes;
pub mod bitmaps;
pub mod checkout_paths;
pub mod checkout_tree;
pub mod clone;
pub mod commit_graph;
pub mod config;
pub mod diff;
pub mod environment;
mod error;
pub mod fetch;
pub mod fsck;
mod history;
pub mod hooks;
pub mod identity;
pub mod init;
mod layout;
pub mod lock;
pub mod multi_pack_index;
mod objects;
pub mod packs;
pub mod path;
pub mod quote;
pub mod reachable;
pub mod refs;
pub mod remote;
pub mod repository;
pub mod revision;
pub mod status;
pub mod switch;
mod worktree;
pub mod write_tree;

pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use repository::Repository;
