//! Searches the records of a block.

use super::block::{BlockMatch, RESTART_LEN, Records, common_prefix};
use super::values;
use crate::reftable::error::BlockFault;
use crate::reftable::format::be24;

impl Records<'_> {
    /// Finds the first record whose key is not less than `target`: a binary search over the
    /// restarts, then a scan up to the next restart. Allocates nothing, and compares each byte of
    /// `target` at most once in the scan.
    pub(super) fn seek(&self, target: &[u8]) -> Result<BlockMatch, BlockFault> {
        let mut at = self.restart_before(target)?;
        let mut matched = 0;
        let mut key_len = 0;
        while at < self.shape.tail {
            let head = self.head(at)?;
            if head.prefix > key_len {
                return Err(BlockFault::new(
                    "corrupt reftable: key prefix is longer than the previous key",
                    at,
                ));
            }
            if head.prefix < matched {
                // The previous record agrees with the target in these bytes, and this record is
                // greater.
                return Ok(BlockMatch::before(at, matched));
            }
            if head.prefix == matched {
                let (suffix, rest) = (self.suffix(&head), &target[matched..]);
                let common = common_prefix(suffix, rest);
                if common == rest.len() {
                    let exact = (common == suffix.len()).then_some(head);
                    return Ok(BlockMatch { at, matched, exact });
                }
                if suffix.get(common) > rest.get(common) {
                    return Ok(BlockMatch::before(at, matched));
                }
                matched += common;
            }
            key_len = head.prefix + (head.suffix.1 - head.suffix.0);
            at = values::end(self, &head)?;
        }
        Ok(BlockMatch::before(self.shape.tail, matched))
    }

    /// Returns the last restart whose key is not greater than `target`, or the first record.
    fn restart_before(&self, target: &[u8]) -> Result<usize, BlockFault> {
        let (mut low, mut high) = (0, self.shape.restarts);
        while low < high {
            let middle = usize::midpoint(low, high);
            let at = self.restart(middle)?;
            let head = self.head(at)?;
            if head.prefix != 0 {
                return Err(BlockFault::new(
                    "corrupt reftable: key at a restart has a prefix",
                    at,
                ));
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

    /// Returns the position of the record at a restart.
    fn restart(&self, restart: usize) -> Result<usize, BlockFault> {
        let place = self.shape.tail + RESTART_LEN * restart;
        be24(self.bytes, place)
            .map(|at| at as usize)
            .filter(|at| (self.shape.head..self.shape.tail).contains(at))
            .ok_or_else(|| {
                BlockFault::new("corrupt reftable: restart is outside of the records", place)
            })
    }
}
