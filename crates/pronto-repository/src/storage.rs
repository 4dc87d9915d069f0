//! Storage of objects: packs and the files beside them, checks, and removal of unused objects.

pub mod bitmaps;
pub mod commit_graph;
pub mod fsck;
pub mod last_used;
pub mod local;
pub mod multi_pack_index;
pub(crate) mod object_directory;
pub mod pack_objects;
pub mod prune;
pub mod repack;
