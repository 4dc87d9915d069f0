//! Results of workers that are processed after all workers have ended.

use super::CheckoutFailure;

/// The collected results of the workers.
#[derive(Default)]
pub(super) struct WorkerResults {
    pub(super) collided: Vec<u32>,
    pub(super) failed: Vec<(u32, CheckoutFailure)>,
}
