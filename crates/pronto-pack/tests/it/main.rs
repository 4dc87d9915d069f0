//! Tests of pronto-pack against stock git.

mod ahead;
mod bitmaps;
mod broken;
mod commit_graph;
mod corpus;
mod indexer;
mod support;
mod thin;
