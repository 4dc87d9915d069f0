//! Tests of the library on repositories of stock git.

mod caches;
mod commit_graphs;
mod contents;
mod defaults;
mod discovery;
mod examples;
mod failures;
mod fsck;
mod index_operations;
mod init;
mod lacking;
mod packing;
mod reachability;
mod references;
mod revisions;
mod shortened;
mod storage_operations;
mod support;
mod transactions;
mod transfer_operations;
mod worktree_operations;
