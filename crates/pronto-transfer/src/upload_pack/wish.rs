//! The request of a client for a pack.

use std::collections::HashSet;

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_storage::pack_objects::ObjectFilter;

use super::bands::Band;
use super::{MOST_IDS, too_much};
use crate::Result;

/// The wants and haves of a client, and the format of the pack.
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
    pub(super) filter: Option<ObjectFilter>,
    /// Whether all lines of the response are multiplexed (`sideband-all`).
    pub(super) sideband_all: bool,
    /// The protocols by which the client can download packs (`packfile-uris`).
    pub(super) uri_protocols: Vec<BString>,
    /// The promisor remotes that the client has accepted.
    pub(super) promisors: Vec<BString>,
    /// Whether the history for this client is shallow.
    pub(super) is_cut: bool,
}

impl Wish {
    /// Adds a want, without duplicates.
    ///
    /// # Errors
    /// Fails if there are too many wants.
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
