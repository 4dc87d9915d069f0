//! Tables with the data of every entry of the pack, indexed by entry number. The tables grow as
//! entries arrive: 18 bytes for each entry. Nothing is allocated for entries that are only
//! declared.

use gix_object::Kind as ObjectKind;

/// The base of an entry: the number of an earlier entry, or a special value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryBase(u32);

impl EntryBase {
    /// The value for an entry that is not a delta.
    pub(super) const NONE: EntryBase = EntryBase(u32::MAX);
    /// The value for a delta that names its base by id.
    pub(super) const BY_ID: EntryBase = EntryBase(u32::MAX - 1);
    /// The largest number of entries of a pack.
    pub(super) const MOST_ENTRIES: u32 = u32::MAX - 2;

    pub(super) fn entry(index: u32) -> EntryBase {
        debug_assert!(index < Self::MOST_ENTRIES);
        EntryBase(index)
    }

    /// Returns the entry number of the base, if it is known.
    pub(super) fn index(self) -> Option<u32> {
        (self.0 < Self::MOST_ENTRIES).then_some(self.0)
    }
}

/// The tables, in pack order.
#[derive(Default)]
pub(super) struct EntryTables {
    /// The start of each entry, in ascending order.
    pub(super) offsets: Vec<u64>,
    /// The CRC-32 of each stored entry.
    pub(super) crcs: Vec<u32>,
    pub(super) bases: Vec<EntryBase>,
    kinds: Vec<u8>,
    /// The worker of each entry; all deltas of one tree have the same worker.
    pub(super) workers: Vec<u8>,
    /// The end of the last entry.
    pub(super) end: u64,
}

const UNKNOWN_KIND: u8 = 0;
const KINDS: [ObjectKind; 4] = [
    ObjectKind::Commit,
    ObjectKind::Tree,
    ObjectKind::Blob,
    ObjectKind::Tag,
];

impl EntryTables {
    /// Appends the next entry without its CRC-32, which is known only at the end of the entry.
    pub(super) fn push(
        &mut self,
        offset: u64,
        base: EntryBase,
        kind: Option<ObjectKind>,
        worker: u8,
    ) {
        self.offsets.push(offset);
        self.bases.push(base);
        self.kinds.push(kind.map_or(UNKNOWN_KIND, number_of));
        self.workers.push(worker);
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the type of the object, if the entry is not a delta or its base is known.
    pub(super) fn kind(&self, index: u32) -> Option<ObjectKind> {
        let number = self.kinds[index as usize];
        (number != UNKNOWN_KIND).then(|| KINDS[usize::from(number) - 1])
    }

    /// Returns the number of the entry that starts at `offset`.
    pub(super) fn find(&self, offset: u64) -> Option<u32> {
        let index = self.offsets.binary_search(&offset).ok()?;
        Some(index as u32)
    }

    /// Returns the start and the length of the entry.
    pub(super) fn extent(&self, index: u32) -> (u64, usize) {
        let index = index as usize;
        let start = self.offsets[index];
        let end = self.offsets.get(index + 1).copied().unwrap_or(self.end);
        (start, (end - start) as usize)
    }
}

fn number_of(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Commit => 1,
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
        ObjectKind::Tag => 4,
    }
}
