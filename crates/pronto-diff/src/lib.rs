//! Differences between texts and between lists of files, with the results of Git.
//!
//! - [`lines`]: the lines that differ between two texts (Myers' algorithm).
//! - [`merge`]: merges three texts line by line.
//! - [`renames`]: finds renamed and copied files among differences.
//!
//! Nothing here knows the index, files, objects or the configuration: contents are given by the caller.
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

pub use difference::{ChangeKind, Difference, MOST_SIMILAR, Origin, Side};
pub use renames::Renames;
