//! The stored objects of a Git repository: packs and the files beside them, checks, and removal.
//!
//! An operation is a function in the module of its name. It takes the repository, its options and a
//! [`Watch`](pronto_io::watch::Watch), which receives the progress and may interrupt. What it reports beside
//! its result is a [`Notice`](pronto_repository::Notice) of the repository.
//!
//! | module | as in Git |
//! |---|---|
//! | [`bitmaps`] | the files `.bitmap` of packs and of a multi-pack-index |
//! | [`commit_graph`] | `git commit-graph write` and `verify` |
//! | [`fsck`] | the checks of `git fsck` for one object |
//! | [`local`] | the object files that `git clone --local` links or copies |
//! | [`multi_pack_index`] | `git multi-pack-index write`, `verify`, `expire` and `repack` |
//! | [`pack_objects`] | `git pack-objects`, and the objects of `git rev-list --objects` |
//! | [`prune`] | `git prune` and `git prune-packed` |
//! | [`repack`] | `git repack` and `git update-server-info` |
//!
//! Packs, indexes and graphs are opened for reading by [`Repository`](pronto_repository::Repository), and their
//! formats are those of [`pronto_pack`].
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bitmaps;
pub mod commit_graph;
pub mod fsck;
mod last_used;
pub mod local;
pub mod multi_pack_index;
mod name_files;
mod object_directory;
pub mod pack_objects;
pub mod prune;
pub mod repack;
