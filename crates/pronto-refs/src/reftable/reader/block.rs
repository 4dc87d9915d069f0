//! A block: the positions of its records, and searching them.

use crate::reftable::error::Fault;
use crate::reftable::format::{BLOCK_HEADER_LEN, BlockKind, be16, be24};
use crate::reftable::varint;

use super::values;

/// The length of the count of restarts, and of one restart.
const COUNT_LEN: usize = 2;
const RESTART_LEN: usize = 3;

/// The offsets of the parts of a block, from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: BlockKind,
    /// Of the block in the table.
    pub(super) position: u64,
    /// The first record.
    pub(super) head: usize,
    /// The end of the records, where the restarts begin.
    pub(super) tail: usize,
    restarts: usize,
    /// The position of the block behind this one, if there is one.
    pub(super) next: u64,
    /// The length of an object id.
    pub(super) id_len: usize,
}

/// The outline of a block, known before its records are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub(super) kind: BlockKind,
    pub(super) position: u64,
    /// The length of what stands in front of the block's own header.
    pub(super) skipped: usize,
    /// The length of the block without padding, inflated.
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

/// The fixed part of a record: its key, all but what the record before it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHead {
    /// The number of bytes shared with the key before it.
    pub(super) prefix: usize,
    /// The rest of the key, in the block.
    pub(super) suffix: (usize, usize),
    /// The low three bits, which mean something else in each kind of block.
    pub(super) flags: u8,
}

impl RecordHead {
    /// Returns the start of the value.
    pub(super) fn value(&self) -> usize {
        self.suffix.1
    }
}

/// The result of a search in a block: the first record whose key is not less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The start of the record, or the end of the records if there is none.
    pub(super) at: usize,
    /// The number of bytes that the target shares with the record before it.
    pub(super) matched: usize,
    /// The record, if it has exactly the key that was sought.
    pub(super) exact: Option<RecordHead>,
}

impl<'b> Records<'b> {
    /// The records of the block `bytes`, which are inflated.
    pub(super) fn new(outline: Outline, bytes: &'b [u8]) -> Result<Records<'b>, Fault> {
        let head = outline.skipped + BLOCK_HEADER_LEN;
        let len = outline.len;
        let ends = Fault::new("block is too short", outline.skipped);
        let bytes = bytes.get(..len).ok_or(ends)?;
        let count_at = len.checked_sub(COUNT_LEN).ok_or(ends)?;
        let restarts = usize::from(be16(bytes, count_at).ok_or(ends)?);
        let tail = count_at.checked_sub(RESTART_LEN * restarts);
        let Some(tail) = tail.filter(|tail| *tail >= head && restarts > 0) else {
            return Err(Fault::new("bad number of restarts in block", count_at));
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

    /// The fixed part of the record at `at`, of which the suffix lies within the records.
    #[inline(always)]
    pub(super) fn head(&self, at: usize) -> Result<RecordHead, Fault> {
        let records = &self.bytes[..self.shape.tail];
        let mut end = at;
        let numbers = varint::read(records, &mut end).zip(varint::read(records, &mut end));
        let Some((prefix, word)) = numbers else {
            return Err(Fault::new("bad length of key", at));
        };
        let suffix_len = word >> 3;
        if suffix_len > (records.len() - end) as u64 || prefix > records.len() as u64 {
            return Err(Fault::new("key reaches beyond its block", at));
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

    /// Finds the first record whose key is not less than `target`. A binary search over the
    /// restarts, then a scan up to the next one; allocates nothing, and compares each byte of
    /// `target` at most once in the scan.
    pub(super) fn seek(&self, target: &[u8]) -> Result<Place, Fault> {
        let mut at = self.restart_before(target)?;
        let mut matched = 0;
        let mut key_len = 0;
        while at < self.shape.tail {
            let head = self.head(at)?;
            if head.prefix > key_len {
                return Err(Fault::new("key takes more than the one before has", at));
            }
            if head.prefix < matched {
                // The record before agrees with the target there, and this one is greater.
                return Ok(Place::before(at, matched));
            }
            if head.prefix == matched {
                let (suffix, rest) = (self.suffix(&head), &target[matched..]);
                let common = common_prefix(suffix, rest);
                if common == rest.len() {
                    let exact = (common == suffix.len()).then_some(head);
                    return Ok(Place { at, matched, exact });
                }
                if suffix.get(common) > rest.get(common) {
                    return Ok(Place::before(at, matched));
                }
                matched += common;
            }
            key_len = head.prefix + (head.suffix.1 - head.suffix.0);
            at = values::end(self, &head)?;
        }
        Ok(Place::before(self.shape.tail, matched))
    }

    /// The last restart whose key is not greater than `target`, or the first record.
    fn restart_before(&self, target: &[u8]) -> Result<usize, Fault> {
        let (mut low, mut high) = (0, self.shape.restarts);
        while low < high {
            let middle = usize::midpoint(low, high);
            let at = self.restart(middle)?;
            let head = self.head(at)?;
            if head.prefix != 0 {
                return Err(Fault::new("key of a restart is not whole", at));
            }
            if self.suffix(&head) <= target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        match low.checked_sub(1) {
            Some(restart) => self.restart(restart),
            None => Ok(self.shape.head),
        }
    }

    /// Returns the position of the record of a restart.
    fn restart(&self, restart: usize) -> Result<usize, Fault> {
        let place = self.shape.tail + RESTART_LEN * restart;
        be24(self.bytes, place)
            .map(|at| at as usize)
            .filter(|at| (self.shape.head..self.shape.tail).contains(at))
            .ok_or_else(|| Fault::new("restart lies outside of the records", place))
    }
}

impl Place {
    fn before(at: usize, matched: usize) -> Place {
        Place {
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
