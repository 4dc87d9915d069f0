//! Finds the entries that differ between two sorted sets by comparing fingerprints of ranges.
//!
//! The peers take turns. A message covers the keys in ascending ranges. An equal range is skipped,
//! a differing one is split by its holder, and a range with few entries is listed. A list is
//! answered with the entries it lacks and with marks for those that the answering side lacks, so
//! both sides learn the difference. A message that reaches its limit ends with the fingerprint of
//! everything that remains, and the next one continues there. Everything before it is settled.
//!
//! Traffic is O(d log N) bytes for d differences in N entries, and O(log N) turns if no limit is
//! reached. The code is deterministic: no clock, no randomness, no I/O.

mod answer;
mod engine;
mod message;
mod set;
mod sum;
mod writer;

pub use engine::{Options, Reconciler};
pub use set::{Entry, Set, SetBuilder};
pub use sum::{Fingerprint, Fingerprinter};

/// The longest key. The name of a ref may be that long; the key of a commit is its date and id.
pub const MAX_KEY_BYTES: usize = 1024;

/// The longest value: two object ids.
pub const MAX_VALUE_BYTES: usize = 64;

/// The least limit of a message: room for one entry, and for all the rest as one range.
pub const LEAST_MESSAGE_BYTES: usize = 8192;

/// Below this many entries a range is listed and not split.
const LIST_BELOW: usize = 32;

/// Into how many ranges one is split.
const BUCKETS: usize = 16;
