//! Compares line differences and renames of random texts and trees with git.

mod lines;
mod renames;
mod trees;
