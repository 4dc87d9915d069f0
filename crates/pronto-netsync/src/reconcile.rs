//! Finds the entries that differ between two sorted sets by comparing fingerprints of ranges.
//!
//! The peers send messages in turn. A message covers the keys in ascending ranges. An equal range
//! is skipped, a differing range is split by the side that has its entries, and a range with few
//! entries is listed. The answer to a list contains the entries that the list lacks, and marks for
//! the entries that the answering side lacks, so that both sides learn the difference. A message
//! that reaches its limit ends with the fingerprint of the remaining range, and the next message
//! continues there. All preceding ranges are settled.
//!
//! The traffic is O(d log N) bytes for d differences in N entries, in O(log N) turns if no limit is
//! reached. The code is deterministic: it uses no clock, randomness or I/O.

mod answer;
mod engine;
mod message;
mod set;
mod sum;
mod writer;

pub use engine::{Options, Reconciler};
pub use set::{Entry, SetBuilder, SortedSet};
pub use sum::{Fingerprint, Fingerprinter};

/// The largest length of a key in bytes. A key is the name of a ref, or the date and id of a
/// commit.
pub const MAX_KEY_BYTES: usize = 1024;

/// The largest length of a value in bytes, which is two object ids.
pub const MAX_VALUE_BYTES: usize = 64;

/// The smallest limit of a message, which fits one entry, and all remaining keys as one range.
pub const LEAST_MESSAGE_BYTES: usize = 8192;

/// The number of entries below which a range is listed and not split.
const LIST_BELOW: usize = 32;

/// The number of ranges into which a range is split.
const BUCKETS: usize = 16;
