//! Between index and files: checkout, status walk, attributes, ignores, filters.
//!
//! - [`attributes`]: what `.gitattributes` says of paths.
//! - [`filter`]: from blobs to file contents and back.
//! - [`checkout`]: a plan of files to remove and write, carried out.
//! - [`unpack`]: from trees and an index to such a plan, refusing to lose anything.
//! - [`sparse`]: which paths are to be in the worktree at all.
//! - [`status`]: how files differ from the index, and which are untracked: one walk.
//! - [`diff`]: how the index differs from a tree; renames.
//! - [`merge`]: three texts become one.
//! - [`trees`]: the trees that an index makes.
//! - [`ignore`], [`pathspec`]: which paths count; [`glob`]: the patterns in them.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attributes;
pub mod checkout;
pub mod diff;
mod error;
pub mod filter;
mod hostile;
pub mod ignore;
pub mod merge;
mod names;
mod objects;
pub mod pathspec;
mod recorded;
pub mod sparse;
pub mod status;
pub mod trees;
pub mod unpack;

pub use error::{Error, ErrorKind};
pub use hostile::Protect;
pub use objects::Objects;
pub use pronto_config::glob;
pub use recorded::recorded;
