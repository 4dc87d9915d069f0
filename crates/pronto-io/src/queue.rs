//! Queues of received and sent bytes.
//!
//! - [`ReceiveQueue`]: received, unread bytes in one contiguous slice; parsers read in place.
//! - [`SendQueue`]: bytes to be sent, as a list of slices that do not move.
//!
//! Both are limited in bytes, never in items: a few large items would exceed a limit in items. Both
//! count copied and allocated bytes. With the feature `count-bytes` the sums over all queues of the
//! process are available in `totals`, for benchmarks.

mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use receive::ReceiveQueue;
pub use send::{SendQueue, SharedBytes};

/// The queue already holds as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the queue is full")
    }
}

impl std::error::Error for Full {}

/// The memory use of one queue, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes copied by the queue itself: moved within it, or into it from a slice. Bytes that a
    /// read puts there do not count.
    pub copied_bytes: u64,
    /// Bytes requested from the allocator. A buffer that grows counts in full.
    pub allocated_bytes: u64,
}

impl Counters {
    fn copied(&mut self, bytes: usize) {
        self.copied_bytes += bytes as u64;
        #[cfg(feature = "count-bytes")]
        sums::COPIED.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }

    fn allocated(&mut self, bytes: usize) {
        self.allocated_bytes += bytes as u64;
        #[cfg(feature = "count-bytes")]
        sums::ALLOCATED.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(feature = "count-bytes")]
mod sums {
    use std::sync::atomic::AtomicU64;

    pub(super) static COPIED: AtomicU64 = AtomicU64::new(0);
    pub(super) static ALLOCATED: AtomicU64 = AtomicU64::new(0);
}

/// The sums over all queues of the process since it started.
#[cfg(feature = "count-bytes")]
pub fn totals() -> Counters {
    use std::sync::atomic::Ordering::Relaxed;
    Counters {
        copied_bytes: sums::COPIED.load(Relaxed),
        allocated_bytes: sums::ALLOCATED.load(Relaxed),
    }
}
