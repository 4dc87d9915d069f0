//! Defects of a multi-pack-index.

use std::fmt;

use pronto_hash::ObjectId;

/// A defect of a multi-pack-index. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MidxFault {
    /// The checksum is wrong.
    Checksum,
    /// The multi-pack-index has no objects.
    Empty,
    /// The pack with this number is missing.
    MissingPack(usize),
    /// The names of two consecutive packs are not in ascending order.
    PackOrder {
        /// The name of the first pack.
        before: String,
        /// The name of the following pack.
        after: String,
    },
    /// The ids of two consecutive rows are not in ascending order.
    ObjectOrder {
        /// The second row.
        row: u32,
        /// The id in the first row.
        before: ObjectId,
        /// The id in the second row.
        id: ObjectId,
    },
    /// The pack of an object cannot be read.
    UnreadablePack {
        /// The row of the object.
        row: u32,
        /// The id of the object.
        id: ObjectId,
    },
    /// The recorded offset of an object differs from that in the pack index.
    Offset {
        /// The row of the object.
        row: u32,
        /// The id of the object.
        id: ObjectId,
        /// The recorded offset.
        recorded: u64,
        /// The offset in the pack index; zero if the index does not list the object.
        actual: u64,
    },
}

impl fmt::Display for MidxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MidxFault::Checksum => f.write_str("incorrect checksum"),
            MidxFault::Empty => f.write_str("the midx contains no oid"),
            MidxFault::MissingPack(number) => {
                write!(f, "failed to load pack in position {number}")
            }
            MidxFault::PackOrder { before, after } => write!(
                f,
                "multi-pack-index pack names out of order: '{before}' before '{after}'"
            ),
            MidxFault::ObjectOrder { row, before, id } => write!(
                f,
                "oid lookup out of order: oid[{}] = {before} >= {id} = oid[{row}]",
                row - 1
            ),
            MidxFault::UnreadablePack { row, id } => {
                write!(f, "failed to load pack entry for oid[{row}] = {id}")
            }
            MidxFault::Offset {
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
