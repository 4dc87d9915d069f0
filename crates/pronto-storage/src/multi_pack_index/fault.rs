//! The faults of a multi-pack-index.

use std::fmt;

use pronto_hash::ObjectId;

/// A fault of a multi-pack-index. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The checksum is wrong.
    Checksum,
    /// There are no objects.
    Empty,
    /// The pack of this number is missing.
    MissingPack(usize),
    /// The names of two packs do not ascend.
    PackOrder {
        /// The first name.
        before: String,
        /// The name that follows.
        after: String,
    },
    /// The ids of two rows do not ascend.
    ObjectOrder {
        /// The second row.
        row: u32,
        /// The id in the row before.
        before: ObjectId,
        /// The id in the row.
        id: ObjectId,
    },
    /// The pack of an object cannot be read.
    UnreadablePack {
        /// The row of the object.
        row: u32,
        /// The object.
        id: ObjectId,
    },
    /// An object is not at the recorded offset.
    Offset {
        /// The row of the object.
        row: u32,
        /// The object.
        id: ObjectId,
        /// The recorded offset.
        recorded: u64,
        /// The offset in the index of the pack; zero if that lacks the object.
        actual: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Checksum => f.write_str("incorrect checksum"),
            Fault::Empty => f.write_str("the midx contains no oid"),
            Fault::MissingPack(number) => {
                write!(f, "failed to load pack in position {number}")
            }
            Fault::PackOrder { before, after } => write!(
                f,
                "multi-pack-index pack names out of order: '{before}' before '{after}'"
            ),
            Fault::ObjectOrder { row, before, id } => write!(
                f,
                "oid lookup out of order: oid[{}] = {before} >= {id} = oid[{row}]",
                row - 1
            ),
            Fault::UnreadablePack { row, id } => {
                write!(f, "failed to load pack entry for oid[{row}] = {id}")
            }
            Fault::Offset {
                row,
                id,
                recorded,
                actual,
            } => write!(
                f,
                "incorrect object offset for oid[{row}] = {id}: {recorded:x} != {actual:x}"
            ),
        }
    }
}
