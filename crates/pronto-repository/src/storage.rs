//! How objects are kept: packs and what lies beside them, checks, and getting rid of what is not used.

pub mod bitmaps;
pub mod commit_graph;
pub mod fsck;
pub mod last_used;
pub mod local;
pub mod multi_pack_index;
pub mod pack_objects;
pub mod prune;
pub mod repack;
