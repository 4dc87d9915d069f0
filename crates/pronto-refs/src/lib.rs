//! Refs: the type of ref names, and the storage of refs in files and in reftables.
//!
//! ```
//! use pronto_refs::RefName;
//!
//! let name = RefName::new("refs/heads/main")?;
//! assert_eq!(name, "refs/heads/main");
//! assert!(RefName::new("refs/heads/../../config").is_err());
//! # Ok::<(), pronto_refs::BadName>(())
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod name;
mod ref_name;
pub mod reftable;
pub mod store;

pub use ref_name::{BadName, RefName, RefNameRef};
