//! A Git-compatible version control engine: repositories and their operations as a library.
//!
//! pronto reads and writes the repositories of Git: the same files, formats and protocols, and the
//! same configuration. A program that uses this crate and the `git` of its user can work on one
//! repository in turn.
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
//! // The library reads no variables of the process: `Environment::from_process()` makes a copy, and
//! // a test makes one of its own. A `Watch` receives the progress and may interrupt.
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
//! // Edit a file, and ask for the status.
//! std::fs::write(copy.join("notes"), "one\ntwo\n")?;
//! let report = status::status(&repository, &status::Options::default(), &watch)?;
//! assert_eq!(report.entries[0].path, "notes");
//! assert_eq!(report.entries[0].worktree, Some(b'M'));
//!
//! // Stage and commit it.
//! add::add(&repository, &add::Options::default(), &watch)?;
//! let mut options = commit::Options::default();
//! options.message = "Continue the notes".into();
//! let commit::Outcome::Done(id) = commit::commit(&repository, &options, &watch)? else {
//!     unreachable!("the message is not empty");
//! };
//! assert_eq!(repository.head()?.id(), Some(id));
//!
//! // Fetch the news of the repository that it was cloned from.
//! let origin = Remote::find(&repository, "origin".into())?;
//! let fetched = fetch::fetch(&repository, &origin, &fetch::Options::default(), &watch)?;
//! assert!(!fetched.failed);
//! # Ok(())
//! # }
//! ```
//!
//! # Conventions
//!
//! A query that every caller needs is a method of [`Repository`]. An operation is a function in the
//! module of its name, `operation::operation(&repository, &options, &watch)`. Options implement
//! `Default`, which is the behaviour of the command of Git without options, or have a function `new`
//! that takes the required values. Callers change their fields; later versions may add some.
//! Outcomes are data: the `Display` of a warning, a refusal or a [`Notice`] gives Git's words, without
//! a prefix such as `warning: `. An [`Error`] has an
//! [`ErrorKind`], which tells apart what callers handle differently, and a message in Git's words.
//! Nothing here prints, exits, or reads the environment of the process.
//!
//! # Modules
//!
//! | to | see |
//! |---|---|
//! | open, discover or make a repository | [`Repository`], [`init`], [`environment`], [`config`] |
//! | copy a repository, exchange history | [`clone`](mod@clone), [`fetch`], [`bundle`], [`bundle_uri`], [`submodules`], [`ls_remote`], [`remote`], [`configured_remotes`], [`upload_pack`] |
//! | look at files | [`status`], [`diff`], [`attributes`], [`monitor`], [`archive`] |
//! | change the index | [`add`], [`update_index`], [`read_tree`], [`write_tree`], [`refresh`] |
//! | change files and branches | [`switch`], [`reset`], [`checkout_paths`], [`checkout_index`], [`clean`], [`merge`] |
//! | record | [`commit`], [`hash_object`], [`identity`], [`hooks`] |
//! | have more worktrees, or a part of one | [`worktrees`], [`sparse_checkout`] |
//! | name and walk history | [`revision`], [`reachable`], [`reflog`], [`refs`], [`history`] |
//! | read and check objects | [`objects`], [`links`], [`fsck`], [`gitmodules`] |
//! | store objects | [`pack_objects`], [`packs`], [`repack`], [`prune`], [`bitmaps`], [`commit_graph`], [`multi_pack_index`], [`maintenance`] |
//! | use the types of signatures | [`hash`], [`index`], [`io`], [`object_store`], [`pack`], [`worktree`], [`wire`], [`signing`], [`bstr`] |
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod clone;
pub mod configured_remotes;
pub mod ls_remote;
pub mod maintenance;
pub mod submodules;

pub use pronto_operations::{
    add, archive, attributes, checkout_index, checkout_paths, checkout_tree, clean, commit, diff,
    hash_object, merge, monitor, read_tree, refresh, reset, sparse_checkout, status, switch,
    update_index, upload_archive, worktrees, write_tree,
};
pub use pronto_repository::{
    Environment, Error, ErrorKind, Layout, Notice, PackNotice, Repository, Result, Severity,
    config, durability, environment, glob, lock, path, quote,
};
pub use pronto_repository::{
    expiry, gitmodules, history, hooks, identity, in_progress, init, links, objects, packs,
    reachable, reflog, refs, repository, revision, shallow, walk,
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
pub use pronto_io::progress::{Meter, Progress};
pub use pronto_io::watch::Watch;
pub use {
    pronto_hash as hash, pronto_index as index, pronto_io as io, pronto_odb as object_store,
    pronto_pack as pack, pronto_signing as signing, pronto_wire as wire,
    pronto_worktree as worktree,
};
