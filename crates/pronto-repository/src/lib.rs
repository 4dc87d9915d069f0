//! Git repositories: objects, references, history, the index, and the recorded worktrees.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod history;
pub mod repository;
mod worktree;

pub use history::{reachable, reflog, revision, walk};
pub use pronto_config::{
    Environment, Error, ErrorKind, RepositoryLayout, Result, config, durability, environment, glob,
    lock, path, quote, shared,
};
pub use repository::{
    Notice, NoticeQueue, NoticeReceiver, Notices, PackNotice, PartialFailure, PushNotice,
    RefspecSide, Repository, SentKind, Severity, UngraftedRepository,
};
pub use repository::{
    errors, expiry, gitmodules, hooks, identity, in_progress, init, links, objects, packs, refs,
    shallow, support,
};
pub use worktree::{index, linked, siblings};
