//! Results of workers that are processed after all workers have ended.

use super::Failure;

/// The collected results of the workers.
#[derive(Default)]
pub(super) struct Found {
    pub(super) collided: Vec<u32>,
    pub(super) failed: Vec<(u32, Failure)>,
}
