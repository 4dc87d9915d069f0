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
//! # Revisions, commits and trees
//!
//! [`Repository::resolve`] and its siblings find the object of a revision. [`Repository::commit`] and
//! [`Repository::tree`] read objects as data, and [`history`] walks many commits.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let top = directory.path().canonicalize()?;
//! # let mut environment = pronto::Environment::empty(&top);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let mut options = pronto::init::Options::default();
//! # options.work_tree = Some(top.clone());
//! # options.initial_branch = Some("main".into());
//! # let repository = pronto::Repository::init(&top.join(".git"), &options, &environment)?.repository;
//! # std::fs::write(top.join("notes"), "one\n")?;
//! # pronto::add::add(&repository, &pronto::add::Options::default(), &pronto::Watch::none())?;
//! # let mut options = pronto::commit::Options::default();
//! # options.message = "Begin the notes".into();
//! # pronto::commit::commit(&repository, &options, &pronto::Watch::none())?.into_result()?;
//! let id = repository.resolve_commit("main")?;
//! let commit = repository.commit(&id)?;
//! assert_eq!(commit.subject(), "Begin the notes");
//! for entry in repository.tree(&commit.tree)? {
//!     println!("{:06o} {} {}", entry.mode, entry.id, entry.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Refs and branches
//!
//! [`Repository::head`] and [`Repository::refs`] read refs. A transaction changes refs, all or none, and only if
//! they have the expected values. [`switch`](mod@switch) checks out branches.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let top = directory.path().canonicalize()?;
//! # let mut environment = pronto::Environment::empty(&top);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let mut options = pronto::init::Options::default();
//! # options.work_tree = Some(top.clone());
//! # options.initial_branch = Some("main".into());
//! # let repository = pronto::Repository::init(&top.join(".git"), &options, &environment)?.repository;
//! # std::fs::write(top.join("notes"), "one\n")?;
//! # pronto::add::add(&repository, &pronto::add::Options::default(), &pronto::Watch::none())?;
//! # let mut options = pronto::commit::Options::default();
//! # options.message = "Begin the notes".into();
//! # pronto::commit::commit(&repository, &options, &pronto::Watch::none())?.into_result()?;
//! use pronto::refs::ExpectedValue;
//! use pronto::{Watch, switch};
//! use std::ops::ControlFlow;
//!
//! repository.refs().for_each("refs/heads/", |branch| {
//!     println!("{} {}", branch.id, branch.name);
//!     Ok(ControlFlow::Continue(()))
//! })?;
//!
//! // Create a branch without switching to it.
//! let id = repository.resolve_commit("main")?;
//! let mut transaction = repository.transaction();
//! transaction.update("refs/heads/topic", id, ExpectedValue::Missing, "branch: Created from main");
//! transaction.commit()?;
//!
//! // Create another branch and switch to it.
//! let mut branch = switch::NewBranch::default();
//! branch.name = "next".into();
//! let mut options = switch::Options::default();
//! options.create = Some(branch);
//! let report = switch::switch(&repository, &options, &Watch::none())?.into_result()?;
//! assert!(report.local_changes.is_empty());
//! assert_eq!(repository.head()?.branch(), Some("next".into()));
//! # Ok(())
//! # }
//! ```
//!
//! # Pathspecs
//!
//! Operations on files take a pathspec. Relative paths are relative to the directory with which the repository was
//! discovered ([`Repository::prefix`]). The default pathspec matches all paths.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let top = directory.path().canonicalize()?;
//! # let mut environment = pronto::Environment::empty(&top);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let mut options = pronto::init::Options::default();
//! # options.work_tree = Some(top.clone());
//! # options.initial_branch = Some("main".into());
//! # let repository = pronto::Repository::init(&top.join(".git"), &options, &environment)?.repository;
//! # std::fs::write(top.join("notes"), "one\n")?;
//! # pronto::add::add(&repository, &pronto::add::Options::default(), &pronto::Watch::none())?;
//! # let mut options = pronto::commit::Options::default();
//! # options.message = "Begin the notes".into();
//! # pronto::commit::commit(&repository, &options, &pronto::Watch::none())?.into_result()?;
//! use pronto::{Watch, add};
//!
//! std::fs::write(top.join("a[1]"), "new\n")?;
//! let mut options = add::Options::default();
//! // The name of a file is not a pattern.
//! options.pathspec = repository.literal_pathspec(["a[1]".into()])?;
//! let report = add::add(&repository, &options, &Watch::none())?.into_result()?;
//! assert!(report.events.is_empty());
//! // A pattern, and a path that it excludes.
//! options.pathspec = repository.pathspec(["*.rs".into(), ":!generated".into()])?;
//! # let _ = options;
//! # Ok(())
//! # }
//! ```
//!
//! # Pushes
//!
//! [`push_remote`](mod@push_remote) does the same as `git push`. [`push`](mod@push) pushes given refspecs to one URL.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let top = directory.path().canonicalize()?;
//! # let mut environment = pronto::Environment::empty(&top);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let mut options = pronto::init::Options::default();
//! # options.work_tree = Some(top.clone());
//! # options.initial_branch = Some("main".into());
//! # let repository = pronto::Repository::init(&top.join(".git"), &options, &environment)?.repository;
//! # std::fs::write(top.join("notes"), "one\n")?;
//! # pronto::add::add(&repository, &pronto::add::Options::default(), &pronto::Watch::none())?;
//! # let mut options = pronto::commit::Options::default();
//! # options.message = "Begin the notes".into();
//! # pronto::commit::commit(&repository, &options, &pronto::Watch::none())?.into_result()?;
//! use pronto::{Watch, push_remote};
//!
//! # let project = top.join("project.git");
//! # pronto::Repository::init(&project, &pronto::init::Options::default(), &environment)?;
//! let mut options = push_remote::Options::configured(repository.config())?;
//! // A remote or an address. The default is the remote of the current branch.
//! options.remote = Some(project.to_string_lossy().as_bytes().into());
//! options.refspecs = vec!["main".into()];
//! for pushed in push_remote::push_remote(&repository, &options, &Watch::none())? {
//!     let outcome = pushed.outcome.into_result()?;
//!     for update in &outcome.refs {
//!         println!("{}: {} ({})", pushed.url, update.name, update.status);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! An [`Error`] has a kind, a message, and the path, object and advice that belong to it. An operation that works on many
//! files or refs returns `Ok` with the failures of single ones in its report. `into_result` of the report makes an error of
//! the first failure. Types of lower crates keep their own kinds: [`worktree::ErrorKind`], [`object_store::ErrorKind`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let top = directory.path().canonicalize()?;
//! # let mut environment = pronto::Environment::empty(&top);
//! # environment.set("GIT_CONFIG_NOSYSTEM", "1");
//! # for role in ["AUTHOR", "COMMITTER"] {
//! #     environment.set(format!("GIT_{role}_NAME"), "A U Thor");
//! #     environment.set(format!("GIT_{role}_EMAIL"), "author@example.com");
//! # }
//! # let mut options = pronto::init::Options::default();
//! # options.work_tree = Some(top.clone());
//! # options.initial_branch = Some("main".into());
//! # let repository = pronto::Repository::init(&top.join(".git"), &options, &environment)?.repository;
//! # std::fs::write(top.join("notes"), "one\n")?;
//! # pronto::add::add(&repository, &pronto::add::Options::default(), &pronto::Watch::none())?;
//! # let mut options = pronto::commit::Options::default();
//! # options.message = "Begin the notes".into();
//! # pronto::commit::commit(&repository, &options, &pronto::Watch::none())?.into_result()?;
//! use pronto::ErrorKind;
//!
//! let error = repository.resolve("no-such-branch").expect_err("there is no such branch");
//! match error.kind() {
//!     ErrorKind::UnknownRevision => eprintln!("error: {error}"),
//!     // The library lacks a feature: git can do it.
//!     ErrorKind::Unsupported => eprintln!("use git: {error}"),
//!     _ => return Err(error.into()),
//! }
//! if let Some(advice) = error.hint() {
//!     eprintln!("hint: {advice}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Serving
//!
//! [`upload_pack`] and [`receive_pack`] are the other sides of `git fetch` and `git push`. They speak through a pair of
//! streams: see [`UploadStreams`](upload_pack::UploadStreams).
//!
//! ```no_run
//! use pronto::receive_pack::{self, ReceiveStreams};
//! use pronto::{Environment, Result, Watch};
//! use std::net::TcpStream;
//! use std::path::Path;
//!
//! fn receive(path: &Path, connection: &TcpStream, environment: &Environment) -> Result<()> {
//!     let repository = receive_pack::find(path, environment)?;
//!     // The program that updates the worktree of a repository that is not bare.
//!     let options = receive_pack::Options::new("git");
//!     let (mut input, mut output) = (connection, connection);
//!     let streams = ReceiveStreams {
//!         input: &mut input,
//!         output: &mut output,
//!     };
//!     let outcome = receive_pack::serve(&repository, &options, streams, &Watch::none())?;
//!     println!("maintenance is due: {}", outcome.maintains);
//!     Ok(())
//! }
//! ```
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
//! | copy a repository, exchange history | [`clone`](mod@clone), [`fetch`], [`push`], [`push_remote`](mod@push_remote), [`bundle`], [`bundle_uri`], [`submodules`], [`ls_remote`], [`remote`], [`configured_remotes`], [`upload_pack`], [`receive_pack`] |
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
pub mod push_remote;
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
