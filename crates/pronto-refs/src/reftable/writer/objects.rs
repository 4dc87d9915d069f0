//! Collects the object section of a table: the ref blocks of each object.

use pronto_hash::oid;

use crate::reftable::reader::common_prefix;

/// The shortest abbreviation of an object id, minus one.
const SHORTEST_SHARED: usize = 1;

/// Object ids and the ref blocks that contain them, in the order of addition.
#[derive(Debug, Default)]
pub(super) struct ObjectIndex {
    /// The concatenated object ids.
    ids: Vec<u8>,
    id_len: usize,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first bytes of the id, as a sort key.
    head: u64,
    /// The position in the order of addition.
    at: usize,
    block: u64,
}

/// An object id and the ref blocks that contain it.
pub(super) struct ObjectBlocks<'a> {
    pub(super) id: &'a [u8],
    pub(super) blocks: &'a [u64],
}

impl ObjectIndex {
    pub(super) fn add(&mut self, id: &oid, block: u64) {
        let bytes = id.as_bytes();
        let head = bytes.first_chunk().copied().map_or(0, u64::from_be_bytes);
        self.id_len = bytes.len();
        self.entries.push(Entry {
            head,
            at: self.entries.len(),
            block,
        });
        self.ids.extend_from_slice(bytes);
    }

    /// Sorts by object id; the order of the blocks of each object is kept.
    pub(super) fn sort(&mut self) {
        let (ids, id_len) = (&self.ids, self.id_len);
        let id = |entry: &Entry| &ids[entry.at * id_len..][..id_len];
        self.entries.sort_unstable_by(|a, b| {
            a.head
                .cmp(&b.head)
                .then_with(|| id(a).cmp(id(b)))
                .then_with(|| a.at.cmp(&b.at))
        });
    }

    fn id(&self, entry: &Entry) -> &[u8] {
        &self.ids[entry.at * self.id_len..][..self.id_len]
    }

    /// Returns the length of the shortest unique abbreviations. Requires sorted ids.
    pub(super) fn shortest_len(&self) -> usize {
        let neighbours = self.entries.windows(2);
        let shared = neighbours.map(|pair| {
            let (a, b) = (self.id(&pair[0]), self.id(&pair[1]));
            if a == b { 0 } else { common_prefix(a, b) }
        });
        shared.max().unwrap_or(0).max(SHORTEST_SHARED) + 1
    }

    /// Calls `visit` for each object. Requires sorted ids.
    pub(super) fn visit<E>(
        &self,
        mut visit: impl FnMut(ObjectBlocks<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut blocks = Vec::new();
        let groups = self.entries.chunk_by(|a, b| self.id(a) == self.id(b));
        for group in groups {
            blocks.clear();
            blocks.extend(group.iter().map(|entry| entry.block));
            blocks.dedup();
            let id = self.id(&group[0]);
            visit(ObjectBlocks {
                id,
                blocks: &blocks,
            })?;
        }
        Ok(())
    }
}
