//! The measurements of workers.

use std::sync::atomic::AtomicU64;

/// The sums of the measurements of all workers since the start.
#[derive(Debug, Default)]
pub(super) struct WorkerMeasurements {
    pub(super) items: AtomicU64,
    pub(super) wall_nanoseconds: AtomicU64,
    pub(super) cpu_nanoseconds: AtomicU64,
}
