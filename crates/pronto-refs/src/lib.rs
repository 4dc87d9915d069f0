//! Names of references: which ones are well formed, and the type of those that are.
//!
//! ```
//! use pronto_refs::RefName;
//!
//! let name = RefName::new("refs/heads/main")?;
//! assert_eq!(name, "refs/heads/main");
//! assert!(RefName::new("refs/heads/../../config").is_err());
//! # Ok::<(), pronto_refs::BadName>(())
//! ```

pub mod name;
mod ref_name;

pub use ref_name::{BadName, RefName, RefNameRef};
