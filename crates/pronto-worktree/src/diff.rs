//! Differences between a tree and the index, or between two trees.

mod cached;
mod tree;
mod trees;

pub use crate::tree_list::ReadTree;
pub use cached::cached_trees;
pub use tree::{IndexComparison, IntentToAdd, tree_and_index};
pub use trees::{TreeDiffDepth, trees};
