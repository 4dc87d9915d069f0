//! Data of every entry of the pack, by entry number. The tables grow as entries arrive: 18 bytes
//! for each, and nothing for entries that the pack only claims to contain.

use gix_object::Kind as ObjectKind;

/// The base of an entry: the number of an earlier entry, or one of two other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base(u32);

impl Base {
    /// A whole object.
    pub(super) const NONE: Base = Base(u32::MAX);
    /// A delta whose base is named by its id.
    pub(super) const BY_ID: Base = Base(u32::MAX - 1);
    /// No pack may hold more entries than this.
    pub(super) const MOST_ENTRIES: u32 = u32::MAX - 2;

    pub(super) fn entry(index: u32) -> Base {
        debug_assert!(index < Self::MOST_ENTRIES);
        Base(index)
    }

    /// The number of the entry it is based on, if that is known.
    pub(super) fn index(self) -> Option<u32> {
        (self.0 < Self::MOST_ENTRIES).then_some(self.0)
    }
}

/// Tables by number of the entry, in pack order.
#[derive(Default)]
pub(super) struct Tables {
    /// The start of each entry; ascending.
    pub(super) offsets: Vec<u64>,
    /// The CRC-32 of each entry as it stands in the pack.
    pub(super) crcs: Vec<u32>,
    pub(super) bases: Vec<Base>,
    kinds: Vec<u8>,
    /// Which worker each entry went to; those of one root go to one.
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

impl Tables {
    /// Adds the next entry, except for its checksum, which is known only at its end.
    pub(super) fn push(&mut self, offset: u64, base: Base, kind: Option<ObjectKind>, worker: u8) {
        self.offsets.push(offset);
        self.bases.push(base);
        self.kinds.push(kind.map_or(UNKNOWN_KIND, number_of));
        self.workers.push(worker);
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the kind of the object, if it is whole or its base is known.
    pub(super) fn kind(&self, index: u32) -> Option<ObjectKind> {
        let number = self.kinds[index as usize];
        (number != UNKNOWN_KIND).then(|| KINDS[usize::from(number) - 1])
    }

    /// The number of the entry that starts at `offset`.
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
