//! Packs and the files that belong to them: reading, indexing a received pack, writing.
//!
//! - [`entry`]: the header of a pack entry.
//! - [`inflate`]: reusable inflation of zlib streams.
//! - [`delta`]: the instructions that build an object from a base.
//! - [`idx`]: pack indexes, read in place.
//! - [`indexer`]: indexes packs as they arrive.
//! - [`midx`]: multi-pack-indexes, read in place.
//! - [`rev`]: reverse indexes.
//! - [`pack`]: packs, read in place, and their objects.
//! - [`commit_graph`]: commit-graphs, read in place.
//! - [`bitmap`]: reachability bitmaps.
//! - [`deflate`]: deflates whole objects, for packs and loose objects.
//! - [`search`]: searches for deltas.
//! - [`mtimes`]: the modification times of the objects of cruft packs.
//! - [`salvage`]: recovers objects of damaged packs.
//! - [`writer`]: writes new packs, entry by entry.
//! - [`fanout`]: the search in sorted tables of ids.
//! - [`error`]: the errors of this crate.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bitmap;
pub mod bundle;
mod chunks;
pub mod commit_graph;
pub mod deflate;
pub mod delta;
pub mod entry;
pub mod error;
pub mod fanout;
pub mod idx;
mod index_options;
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
