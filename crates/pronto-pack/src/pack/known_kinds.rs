//! A cache of recently determined types of entries, so that reading the header of a delta above
//! such an entry need not follow the whole chain.

use gix_object::Kind as ObjectKind;

use super::{PackKey, PackOffset};

/// The number of slots: 128 KiB, of which only the used part is in memory.
const SLOTS: usize = 8192;

/// A table in which each entry has one slot, which contains the last inserted entry.
#[derive(Default)]
pub(super) struct KnownKinds {
    slots: Vec<KindSlot>,
}

#[derive(Clone, Copy)]
struct KindSlot {
    pack: PackKey,
    offset: PackOffset,
    kind: ObjectKind,
}

impl KnownKinds {
    /// Returns the type of the object at `offset` of `pack`, if it is cached.
    pub(super) fn get(&self, pack: PackKey, offset: PackOffset) -> Option<ObjectKind> {
        let slot = self.slots.get(place(pack, offset))?;
        (slot.pack == pack && slot.offset == offset).then_some(slot.kind)
    }

    /// Caches the type of the object at `offset` of `pack`.
    pub(super) fn insert(&mut self, pack: PackKey, offset: PackOffset, kind: ObjectKind) {
        let slot = KindSlot { pack, offset, kind };
        match self.slots.get_mut(place(pack, offset)) {
            Some(place) => *place = slot,
            // The initial value is arbitrary, because any entry is valid.
            None => self.slots = vec![slot; SLOTS],
        }
    }
}

/// Returns the slot of an entry. The offsets of consecutive entries are spread, because entries
/// have arbitrary lengths.
fn place(pack: PackKey, offset: PackOffset) -> usize {
    let mixed = (offset.0 ^ pack.0.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_of_one_pack_and_offset() {
        let (one, other) = (PackKey::unique(), PackKey::unique());
        let mut kinds = KnownKinds::default();
        assert_eq!(kinds.get(one, PackOffset(12)), None);
        kinds.insert(one, PackOffset(12), ObjectKind::Tag);
        assert_eq!(kinds.get(one, PackOffset(12)), Some(ObjectKind::Tag));
        assert_eq!(kinds.get(other, PackOffset(12)), None);
        assert_eq!(kinds.get(one, PackOffset(13)), None);
        for offset in 0..100_000 {
            kinds.insert(other, PackOffset(offset), ObjectKind::Blob);
        }
        let kept = (0..100_000).filter(|&at| kinds.get(other, PackOffset(at)).is_some());
        assert!(kept.count() > SLOTS / 2);
        assert_ne!(kinds.get(one, PackOffset(12)), Some(ObjectKind::Blob));
    }
}
