//! Reads a block and the positions of its records.

use crate::reftable::error::BlockFault;
use crate::reftable::format::{BLOCK_HEADER_LEN, BlockKind, be16};
use crate::reftable::varint;

/// The lengths of the restart count and of one restart offset.
const COUNT_LEN: usize = 2;
pub(super) const RESTART_LEN: usize = 3;

/// The offsets of the parts of a block, counted from the start of the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: BlockKind,
    /// The position of the block in the table.
    pub(super) position: u64,
    /// The offset of the first record.
    pub(super) head: usize,
    /// The end of the records and the start of the restart offsets.
    pub(super) tail: usize,
    pub(super) restarts: usize,
    /// The position of the next block, if there is one.
    pub(super) next: u64,
    /// The length of an object id.
    pub(super) id_len: usize,
}

/// The header data of a block, before its records are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockOutline {
    pub(super) kind: BlockKind,
    pub(super) position: u64,
    /// The length of the table header before the block header in the first block.
    pub(super) skipped: usize,
    /// The length of the inflated block without padding.
    pub(super) len: usize,
    pub(super) next: u64,
    pub(super) id_len: usize,
}

/// The records of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'b> {
    pub(super) shape: Shape,
    /// The block from its start to the end of its restarts.
    pub(super) bytes: &'b [u8],
}

/// The start of a record: its key as a difference from the previous key.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHead {
    /// The number of bytes shared with the previous key.
    pub(super) prefix: usize,
    /// The range of the rest of the key in the block.
    pub(super) suffix: (usize, usize),
    /// The low three bits, whose meaning depends on the block type.
    pub(super) flags: u8,
}

impl RecordHead {
    /// Returns the offset of the value.
    pub(super) fn value(&self) -> usize {
        self.suffix.1
    }
}

/// The result of a search in a block: the first record whose key is not less than the target.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockMatch {
    /// The offset of the record, or the end of the records if there is none.
    pub(super) at: usize,
    /// The number of bytes that the target shares with the key of the previous record.
    pub(super) matched: usize,
    /// The record, if its key equals the target.
    pub(super) exact: Option<RecordHead>,
}

impl<'b> Records<'b> {
    /// Returns the records of the inflated block `bytes`.
    pub(super) fn new(outline: BlockOutline, bytes: &'b [u8]) -> Result<Records<'b>, BlockFault> {
        let head = outline.skipped + BLOCK_HEADER_LEN;
        let len = outline.len;
        let ends = BlockFault::new("corrupt reftable: block is too short", outline.skipped);
        let bytes = bytes.get(..len).ok_or(ends)?;
        let count_at = len.checked_sub(COUNT_LEN).ok_or(ends)?;
        let restarts = usize::from(be16(bytes, count_at).ok_or(ends)?);
        let tail = count_at.checked_sub(RESTART_LEN * restarts);
        let Some(tail) = tail.filter(|tail| *tail >= head && restarts > 0) else {
            return Err(BlockFault::new(
                "corrupt reftable: bad number of restarts in a block",
                count_at,
            ));
        };
        let shape = Shape {
            kind: outline.kind,
            position: outline.position,
            head,
            tail,
            restarts,
            next: outline.next,
            id_len: outline.id_len,
        };
        Ok(Records { shape, bytes })
    }

    /// Parses the start of the record at `at`, and checks that the key suffix is within the
    /// records.
    #[inline(always)]
    pub(super) fn head(&self, at: usize) -> Result<RecordHead, BlockFault> {
        let records = &self.bytes[..self.shape.tail];
        let mut end = at;
        let numbers = varint::read(records, &mut end).zip(varint::read(records, &mut end));
        let Some((prefix, word)) = numbers else {
            return Err(BlockFault::new("corrupt reftable: bad key length", at));
        };
        let suffix_len = word >> 3;
        if suffix_len > (records.len() - end) as u64 || prefix > records.len() as u64 {
            return Err(BlockFault::new(
                "corrupt reftable: key exceeds its block",
                at,
            ));
        }
        Ok(RecordHead {
            prefix: prefix as usize,
            suffix: (end, end + suffix_len as usize),
            flags: (word & 7) as u8,
        })
    }

    pub(super) fn suffix(&self, head: &RecordHead) -> &'b [u8] {
        &self.bytes[head.suffix.0..head.suffix.1]
    }
}

impl BlockMatch {
    pub(super) fn before(at: usize, matched: usize) -> BlockMatch {
        BlockMatch {
            at,
            matched,
            exact: None,
        }
    }
}

/// Returns the length of the common prefix in bytes.
pub(in crate::reftable) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
