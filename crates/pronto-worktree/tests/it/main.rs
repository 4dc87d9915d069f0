//! Compares checkout with stock git.

mod deep_trees;
mod engine;
mod removing;
mod support;
