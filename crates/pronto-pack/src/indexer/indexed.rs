//! A pack whose objects all have an id.

use super::spool::Store;
use super::tables::Tables;
use pronto_hash::ObjectId;

/// The pack with an id for every entry.
pub(super) struct Indexed {
    pub(super) store: Store,
    pub(super) checksum: ObjectId,
    pub(super) tables: Tables,
    /// The concatenated ids, in the order of entries.
    pub(super) ids: Vec<u8>,
    pub(super) added: u32,
}
