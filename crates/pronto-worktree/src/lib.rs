//! Between index and files: checkout, status walk, attributes, ignores, filters.
//!
//! - [`attributes`]: what `.gitattributes` says of paths.
//! - [`filter`]: from blobs to file contents and back.
//! - [`checkout`]: a plan of files to remove and write, carried out.
//! - [`unpack`]: from trees and an index to such a plan, refusing to lose anything.
//! - [`sparse`]: which paths are to be in the worktree at all.

pub mod attributes;
pub mod checkout;
mod error;
pub mod filter;
mod hostile;
mod objects;
mod recorded;
pub mod sparse;
pub mod unpack;

pub use error::{Error, ErrorKind};
pub use hostile::Protect;
pub use objects::Objects;
pub use recorded::recorded;
