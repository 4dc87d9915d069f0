//! Results of workers that are processed when all have ended.

use super::Failure;

/// The results of the workers, over all items.
#[derive(Default)]
pub(super) struct Found {
    pub(super) collided: Vec<u32>,
    pub(super) failed: Vec<(u32, Failure)>,
}
