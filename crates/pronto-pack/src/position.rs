//! Places in packs and in their indexes, as types of their own.

/// The number of an object in the order of ids: a row of a pack index or multi-pack-index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexPosition(pub u32);

/// Where an entry starts in a pack, in bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackOffset(pub u64);
