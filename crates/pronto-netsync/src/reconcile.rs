//! Which entries of two sorted sets differ, found by comparing fingerprints of ranges.
//!
//! The peers speak in turn. A message covers the keys from the least upwards in ranges: one that
//! is equal is skipped, one that differs is split by who holds it, one that holds few entries is
//! listed, and a list is answered with what it lacks and marks for what the answerer lacks. So
//! both learn. A message that comes to its limit ends with the fingerprint of everything that is
//! left, which is taken up in the next; what was settled before it is settled for good.
//!
//! Traffic is O(d log N) bytes for d differences in N entries, O(log N) turns where no limit
//! cuts. Deterministic: no clock, no chance, no I/O.

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
