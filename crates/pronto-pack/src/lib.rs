//! Packs and their indexes: reading, indexing a stream, writing.
//!
//! - [`entry`]: the header of one entry of a pack.
//! - [`inflate`]: reusable inflation of the zlib streams that follow headers.
//! - [`delta`]: the instructions that make one object out of another.
//! - [`idx`]: pack indexes read in place.
//! - [`indexer`]: packs indexed as they arrive.
//! - [`midx`]: multi-pack-indexes read in place.
//! - [`rev`]: reverse indexes.
//! - [`pack`]: packs read in place, and whole objects out of them.
//! - [`commit_graph`]: what history is made of, read in place.
//! - [`bitmap`]: what commits lead to.
//! - [`deflate`]: whole objects deflated, for packs and loose files.
//! - [`search`]: which objects are best stored as deltas of which others.
//! - [`mtimes`]: when objects that nothing leads to were last used.
//! - [`salvage`]: what can be had of a broken pack.
//! - [`writer`]: new packs, entry by entry.
//! - [`fanout`]: the search that all sorted tables of ids share.
//! - [`error`]: what can be wrong with a pack.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bitmap;
mod chunks;
pub mod commit_graph;
pub mod deflate;
pub mod delta;
pub mod entry;
pub mod error;
pub mod fanout;
pub mod idx;
pub mod indexer;
pub mod inflate;
mod install;
pub mod midx;
pub mod mtimes;
pub mod pack;
mod position;
pub mod rev;
pub mod salvage;
pub mod search;
mod temporary;
mod trailing;
pub mod writer;

pub use error::{Error, ErrorKind};
