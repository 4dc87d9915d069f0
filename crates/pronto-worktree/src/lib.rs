//! Operations between the index and the files of a worktree: checkout, status, attributes, ignore rules
//! and filters.
//!
//! - [`attributes`]: attributes of paths.
//! - [`filter`]: conversion between blobs and file contents.
//! - [`checkout`]: executing a plan of files to remove and write.
//! - [`unpack`]: computing such a plan from trees and an index, without losing anything.
//! - [`sparse`]: the paths of a sparse checkout.
//! - [`status`]: one walk that compares files with the index and finds untracked files.
//! - [`diff`]: differences between trees and the index.
//! - [`trees`]: the trees of an index.
//! - [`ignore`], [`pathspec`]: selecting paths; [`glob`]: their patterns.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attributes;
pub mod checkout;
pub mod diff;
mod error;
pub mod filter;
mod hostile;
pub mod ignore;
mod names;
mod objects;
pub mod pathspec;
mod recorded;
pub mod sparse;
pub mod status;
mod tree_list;
mod tree_walk;
pub mod trees;
pub mod unpack;

pub use error::{Error, ErrorKind};
pub use hostile::Protect;
pub use objects::{ObjectSource, from_store};
pub use pronto_config::glob;
pub use recorded::recorded;
