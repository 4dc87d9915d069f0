//! A Git-compatible version control engine: repositories and their operations as a library.
//!
//! pronto reads and writes Git repositories, with the same files, formats, protocols and
//! configuration as Git. A program that uses this crate and the `git` of its user can work in the
//! same repository.
//!
//! # Quick start
//!
//! ```
//! use pronto::remote::Remote;
//! use pronto::{Environment, Repository, Watch, add, clone, commit, fetch, init, status};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().canonicalize()?;
//! # let mut environment = Environment::empty(&directory);
//! # environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
//! # environment.set("HOME", &directory);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let (project, copy) = (directory.join("project"), directory.join("copy"));
//! # std::fs::create_dir(&project)?;
//! // The library reads no environment variables itself: `Environment::from_process()` copies those
//! // of the process, and a test creates its own. A `Watch` receives progress and can interrupt.
//! let watch = Watch::none();
//!
//! // Make a repository with one commit.
//! let mut options = init::Options::default();
//! options.work_tree = Some(project.clone());
//! options.initial_branch = Some("main".into());
//! let made = Repository::init(&project.join(".git"), &options, &environment)?;
//! std::fs::write(project.join("notes"), "one\n")?;
//! add::add(&made.repository, &add::Options::default(), &watch)?;
//! let mut options = commit::Options::default();
//! options.message = "Begin the notes".into();
//! commit::commit(&made.repository, &options, &watch)?;
//!
//! // Clone it.
//! let address = project.to_string_lossy();
//! let options = clone::Options::default();
//! let cloned = clone::clone(address.as_bytes().into(), &copy, &options, &environment, &watch)?;
//! let repository = cloned.repository;
//!
//! // Edit a file, and query the status.
//! std::fs::write(copy.join("notes"), "one\ntwo\n")?;
//! let report = status::status(&repository, &status::Options::default(), &watch)?;
//! assert_eq!(report.entries[0].path, "notes");
//! assert_eq!(report.entries[0].worktree, Some(status::ChangeKind::Modified));
//!
//! // Stage and commit it.
//! add::add(&repository, &add::Options::default(), &watch)?;
//! let mut options = commit::Options::default();
//! options.message = "Continue the notes".into();
//! let id = commit::commit(&repository, &options, &watch)?.into_result()?;
//! assert_eq!(repository.head()?.id(), Some(id));
//!
//! // Fetch new commits from the repository that was cloned.
//! let origin = Remote::find(&repository, "origin".into())?;
//! let fetched = fetch::fetch(&repository, &origin, &fetch::Options::default(), &watch)?;
//! assert!(!fetched.failed);
//! # Ok(())
//! # }
//! ```
//!
//! The examples `editor`, `forge` and `bot` of this crate are whole programs: staging and branches, serving `git fetch`
//! and `git push`, and a clone that is changed and pushed with progress.
//!
//! # Conventions
//!
//! A query that every caller needs is a method of [`Repository`]. An operation is a function in the
//! module of its name, `operation::operation(&repository, &options, &watch)`. Options implement
//! `Default`, which is the behaviour of the command of Git without options, or have a function
//! `new` that takes the required values. Callers change the fields of the options; later versions
//! may add fields. Outcomes are data: the `Display` of a warning, a refusal or a [`Notice`] gives
//! Git's words, without a prefix such as `warning: `. After opening a repository, the caller can
//! register a receiver for the notices of the repository and of every operation on it
//! ([`Repository::with_notices`]). Without a receiver, the notices are discarded. [`NoticeQueue`]
//! is a receiver that collects notices. An operation that fails after a change returns a
//! [`PartialFailure`], which contains the report of the work done before the error. An [`Error`]
//! has an [`ErrorKind`], which distinguishes the cases that callers handle differently, and a
//! message in Git's words. Nothing here prints, exits, or reads the environment of the process.
//!
//! Before it changes anything, an operation refuses a repository whose settings, variables or hooks ask for what the
//! library does not implement ([`support`]), with [`ErrorKind::Unsupported`].
//!
//! # Stability
//!
//! Versions 0.x keep the repository format, which is Git's, and change the API in minor versions only. The API is what
//! this page names: [`Repository`], the modules of operations with their options and outcomes, and the listed types of
//! signatures. The crates below (`pronto-pack`, `pronto-odb`, …) promise nothing to users outside of this workspace. The
//! text of messages follows Git and may change with it: tell errors apart by [`ErrorKind`].
//!
//! # Modules
//!
//! | task | modules |
//! |---|---|
//! | open, discover or make a repository | [`Repository`], [`init`], [`environment`], [`config`] |
//! | copy a repository, exchange history | [`clone`](mod@clone), [`fetch`], [`push`], [`bundle`], [`bundle_uri`], [`submodules`], [`ls_remote`], [`remote`], [`configured_remotes`], [`upload_pack`], [`receive_pack`] |
//! | inspect files | [`status`], [`diff`], [`attributes`], [`monitor`], [`archive`] |
//! | change the index | [`add`], [`update_index`], [`read_tree`], [`write_tree`], [`refresh`] |
//! | change files and branches | [`switch`], [`reset`], [`checkout_paths`], [`checkout_index`], [`clean`], [`merge`] |
//! | create commits and objects, run hooks | [`commit`], [`hash_object`], [`identity`], [`hooks`] |
//! | manage worktrees and sparse checkouts | [`worktrees`], [`sparse_checkout`] |
//! | resolve revisions, walk history, read refs | [`revision`], [`reachable`], [`reflog`], [`refs`], [`history`] |
//! | read and check objects | [`objects`], [`links`], [`fsck`], [`gitmodules`] |
//! | store objects | [`pack_objects`], [`packs`], [`repack`], [`prune`], [`bitmaps`], [`commit_graph`], [`multi_pack_index`], [`maintenance`] |
//! | use the types that occur in function signatures | [`hash`], [`index`], [`io`], [`object_store`], [`pack`], [`reftable`], [`worktree`], [`wire`], [`signing`], [`bstr`] |
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod clone;
pub mod configured_remotes;
pub mod ls_remote;
pub mod maintenance;
pub mod submodules;
mod types;

pub use pronto_operations::{
    add, archive, attributes, checkout_index, checkout_paths, checkout_tree, clean, commit, diff,
    hash_object, merge, monitor, read_tree, refresh, reset, sparse_checkout, status, switch,
    update_index, upload_archive, worktrees, write_tree,
};
pub use pronto_repository::{
    Environment, Error, ErrorKind, Notice, NoticeQueue, NoticeReceiver, Notices, PackNotice,
    PartialFailure, Repository, RepositoryLayout, Result, Severity, config, durability,
    environment, glob, lock, path, quote,
};
pub use pronto_repository::{
    expiry, gitmodules, history, hooks, identity, in_progress, init, links, objects, packs,
    reachable, reflog, refs, repository, revision, shallow, support, walk,
};
pub use pronto_storage::{
    bitmaps, commit_graph, fsck, multi_pack_index, pack_objects, prune, repack,
};
pub use pronto_transfer::{
    bundle, bundle_uri, fetch, push, receive_pack, remote, remote_archive, upload_pack,
};

pub use bstr;
pub use gix_object::Kind as ObjectKind;
pub use pronto_hash::ObjectId;
pub use pronto_io::interrupt::Interrupt;
pub use pronto_io::progress::{Meter, Progress, ProgressMessage};
pub use pronto_io::watch::Watch;

pub use types::{hash, index, io, object_store, pack, reftable, signing, wire, worktree};
