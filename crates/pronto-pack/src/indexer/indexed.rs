//! A pack whose objects all have an id.

use super::spool::SpoolStorage;
use super::tables::EntryTables;
use pronto_hash::ObjectId;

/// The pack with an id for every entry.
pub(super) struct IndexedPack {
    pub(super) store: SpoolStorage,
    pub(super) checksum: ObjectId,
    pub(super) tables: EntryTables,
    /// The concatenated ids, in the order of entries.
    pub(super) ids: Vec<u8>,
    pub(super) added: u32,
}
