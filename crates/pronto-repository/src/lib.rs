//! Git repositories: objects, references, history, the index, and the recorded worktrees.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod history;
pub mod repository;
mod worktree;

pub use history::{reachable, reflog, revision, walk};
pub use pronto_config::{
    Environment, Error, ErrorKind, Layout, Result, config, durability, environment, glob, lock,
    path, quote, shared,
};
pub use repository::{
    Notice, NoticeQueue, NoticeReceiver, Notices, Original, PackNotice, PartialFailure, PushNotice,
    Repository, SentKind, Severity, Side,
};
pub use repository::{
    errors, expiry, gitmodules, hooks, identity, in_progress, init, links, objects, packs, refs,
    shallow, support,
};
pub use worktree::{index, linked, siblings};
