//! The types for positions in packs and in their indexes.

/// The number of an object in the order of ids: a row of a pack index or multi-pack-index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexPosition(pub u32);

/// The start of an entry in a pack, in bytes from the beginning of the pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackOffset(pub u64);
