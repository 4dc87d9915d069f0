//! Configuration, environment and layout: what must be known of a repository before its objects
//! and references are looked at.
//!
//! - [`config`]: reading, looking up and editing configuration files.
//! - [`environment`]: the variables and the directory that a caller hands over.
//! - [`discover`]: the directories of a repository, its format, and whether it may be used.
//! - [`lock`], [`path`], [`quote`], [`glob`], [`url`]: the forms in which Git writes files, paths,
//!   patterns and addresses.
//!
//! The [`ErrorKind`] of this crate is also that of the crates above that know a repository.
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
pub mod url;
pub mod value;

pub use config::Config;
pub use discover::Layout;
pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use format::Format;
