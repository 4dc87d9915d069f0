//! The library against repositories that stock git made.

mod caches;
mod commit_graphs;
mod discovery;
mod fsck;
mod init;
mod packing;
mod reachability;
mod references;
mod revisions;
mod shortened;
mod storage_operations;
mod support;
mod transactions;
mod worktree_operations;
