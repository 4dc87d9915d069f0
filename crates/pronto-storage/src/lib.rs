//! The stored objects of a Git repository: packs and their accompanying files, checks of objects, and
//! removal.
//!
//! An operation is a function in the module of the same name. It takes the repository, its options and
//! a [`Watch`](pronto_io::watch::Watch), which receives progress and can interrupt the operation.
//! Warnings and other remarks of the operation are stored as [`Notice`](pronto_repository::Notice)s of
//! the repository.
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
//! [`Repository`](pronto_repository::Repository) opens packs, pack indexes and commit-graph files for
//! reading. [`pronto_pack`] defines their formats.
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
