//! Queues of received and sent bytes.
//!
//! - [`ReceiveQueue`]: received, unread bytes in one contiguous slice, which parsers read in place.
//! - [`SendQueue`]: bytes to be sent, as a list of slices that do not move.
//!
//! Both queues are limited in bytes, never in items, because a few large items would exceed a limit
//! in items. Both count copied and allocated bytes. With the feature `count-bytes`, `totals`
//! returns the sums over all queues of the process, for benchmarks.

mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use receive::ReceiveQueue;
pub use send::{SendQueue, SharedBytes};

/// The error of an addition that would exceed the limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

impl std::fmt::Display for QueueFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the queue is full")
    }
}

impl std::error::Error for QueueFull {}

/// The copied and allocated bytes of one queue, or of all queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueMemory {
    /// Bytes that the queue copied: moved within the queue, or appended from a slice. Bytes that a
    /// read stores directly in the queue do not count.
    pub copied_bytes: u64,
    /// Bytes requested from the allocator. A buffer that grows counts with its full new size.
    pub allocated_bytes: u64,
}

impl QueueMemory {
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

/// Returns the sums over all queues of the process since its start.
#[cfg(feature = "count-bytes")]
pub fn totals() -> QueueMemory {
    use std::sync::atomic::Ordering::Relaxed;
    QueueMemory {
        copied_bytes: sums::COPIED.load(Relaxed),
        allocated_bytes: sums::ALLOCATED.load(Relaxed),
    }
}
