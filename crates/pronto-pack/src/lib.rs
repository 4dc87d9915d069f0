//! Packs and their indexes: reading, indexing a stream, writing.
//!
//! - [`entry`]: the header of one entry of a pack.
//! - [`inflate`]: reusable inflation of the zlib streams that follow headers.
//! - [`delta`]: the instructions that make one object out of another.
//! - [`error`]: what can be wrong with a pack.

pub mod delta;
pub mod entry;
pub mod error;
pub mod inflate;

pub use error::{Error, ErrorKind};
