//! The wishes of a client about a pack.

use std::collections::HashSet;

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_storage::pack_objects::Filter;

use super::bands::Band;
use super::{MOST_IDS, too_much};
use crate::Result;

/// The objects that a client wants and has, and the form of the pack.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub(super) wants: Vec<ObjectId>,
    wanted: HashSet<ObjectId>,
    pub(super) haves: Vec<ObjectId>,
    pub(super) thin: bool,
    pub(super) offset_deltas: bool,
    pub(super) include_tags: bool,
    pub(super) no_progress: bool,
    pub(super) band: Band,
    pub(super) filter: Option<Filter>,
    /// Whether all lines of the response are multiplexed.
    pub(super) sideband_all: bool,
    /// The protocols over which the client can fetch packs.
    pub(super) uri_protocols: Vec<BString>,
    /// The promisor remotes that the client can use.
    pub(super) promisors: Vec<BString>,
    /// Whether history is cut off for this client.
    pub(super) is_cut: bool,
}

impl Wish {
    /// Adds an object, once.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn want(&mut self, id: ObjectId) -> Result<()> {
        if self.wants.len() >= MOST_IDS {
            return Err(too_much());
        }
        if self.wanted.insert(id) {
            self.wants.push(id);
        }
        Ok(())
    }
}
