//! The configuration, the environment and the layout of a repository: everything that is needed
//! before its objects and refs are read.
//!
//! - [`config`]: loads, queries and edits configuration files.
//! - [`environment`]: the environment variables and the current directory, as passed by the caller.
//! - [`discover`]: discovers the directories of a repository, its format, and whether it may be
//!   used.
//! - [`lock`], [`path`], [`quote`], [`glob`], [`url`]: Git's conventions for files, paths, patterns
//!   and URLs.
//!
//! The [`ErrorKind`] of this crate is also that of all crates that use a repository.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod account;
pub mod config;
pub mod discover;
pub mod durability;
pub mod environment;
mod error;
pub mod format;
pub mod git_dir;
pub mod git_path;
pub mod glob;
pub mod lock;
pub mod path;
pub mod pattern;
pub mod quote;
pub mod safety;
pub mod shared;
pub mod similar;
pub mod url;
pub mod value;

pub use config::Config;
pub use discover::RepositoryLayout;
pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use format::RepositoryFormat;
