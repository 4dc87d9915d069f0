//! Differences between texts and between lists of files, with the same results as Git.
//!
//! - [`lines`]: line differences between two texts (Myers' algorithm).
//! - [`merge`]: three-way merge of texts, line by line.
//! - [`renames`]: detection of renames and copies among differences.
//!
//! This crate does not use the index, files, objects or the configuration. The caller supplies all
//! contents.
//!
//! ```
//! use pronto_diff::merge::{Options, merge};
//!
//! let merged = merge(b"A\nb\nc\n", b"a\nb\nc\n", b"a\nb\nC\n", &Options::default());
//! assert_eq!((&merged.text[..], merged.conflicts), (&b"A\nb\nC\n"[..], 0));
//! ```

mod difference;
pub mod lines;
pub mod merge;
pub mod renames;
mod similarity;

pub use difference::{ChangeKind, Difference, DifferenceSide, MOST_SIMILAR, RenameOrigin};
pub use renames::Renames;
