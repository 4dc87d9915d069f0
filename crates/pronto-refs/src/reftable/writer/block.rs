//! A block under construction.

use zlib_rs::{Deflate, DeflateFlush, Status};

use super::value::RecordValue;
use crate::reftable::format::{BLOCK_HEADER_LEN, BlockKind};
use crate::reftable::reader::common_prefix;
use crate::reftable::varint;

/// The compression level, as in Git, and the window size in bits.
const LEVEL: i32 = 9;
const WINDOW_BITS: u8 = 15;

/// The largest number of restarts of a block.
const MOST_RESTARTS: usize = u16::MAX as usize;

/// The block under construction. Its memory is reused for the next block.
pub(super) struct BlockWriter {
    pub(super) kind: BlockKind,
    pub(super) bytes: Vec<u8>,
    /// The offset of the block header.
    skipped: usize,
    block_size: usize,
    restart_interval: usize,
    pub(super) entries: usize,
    restarts: Vec<u32>,
    pub(super) last_key: Vec<u8>,
    deflate: Option<Deflate>,
}

impl BlockWriter {
    pub(super) fn new(block_size: usize, restart_interval: usize) -> BlockWriter {
        BlockWriter {
            kind: BlockKind::Ref,
            bytes: Vec::new(),
            skipped: 0,
            block_size,
            restart_interval,
            entries: 0,
            restarts: Vec::new(),
            last_key: Vec::new(),
            deflate: None,
        }
    }

    /// Begins an empty block of `kind`, after `skipped` bytes that are reserved for the table
    /// header.
    pub(super) fn begin(&mut self, kind: BlockKind, skipped: usize) {
        self.kind = kind;
        self.skipped = skipped;
        self.entries = 0;
        self.restarts.clear();
        self.last_key.clear();
        self.bytes.clear();
        self.bytes.resize(skipped, 0);
        self.bytes.extend_from_slice(&[kind.to_byte(), 0, 0, 0]);
    }

    /// Adds a record. Returns `false` and changes nothing if the block is full.
    pub(super) fn add(&mut self, key: &[u8], value: &RecordValue<'_>) -> bool {
        let start = self.bytes.len();
        let is_whole = self.entries.is_multiple_of(self.restart_interval);
        let prefix = if is_whole {
            0
        } else {
            common_prefix(&self.last_key, key)
        };
        let suffix = &key[prefix..];
        varint::write(&mut self.bytes, prefix as u64);
        let word = ((suffix.len() as u64) << 3) | u64::from(value.flags());
        varint::write(&mut self.bytes, word);
        self.bytes.extend_from_slice(suffix);
        value.write(&mut self.bytes);
        let is_restart = prefix == 0 && self.restarts.len() < MOST_RESTARTS;
        let restarts = self.restarts.len() + usize::from(is_restart);
        if self.bytes.len() + 3 * restarts + 2 > self.block_size {
            self.bytes.truncate(start);
            return false;
        }
        if is_restart {
            self.restarts.push(start as u32);
        }
        self.last_key.truncate(prefix);
        self.last_key.extend_from_slice(suffix);
        self.entries += 1;
        true
    }

    /// Completes the block; `None` if the block cannot be deflated.
    pub(super) fn finish(&mut self) -> Option<()> {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_be_bytes()[1..]);
        }
        let count = self.restarts.len() as u16;
        self.bytes.extend_from_slice(&count.to_be_bytes());
        let len = self.bytes.len() as u32;
        self.bytes[self.skipped + 1..][..3].copy_from_slice(&len.to_be_bytes()[1..]);
        if self.kind == BlockKind::Log {
            return self.deflate();
        }
        Some(())
    }

    fn deflate(&mut self) -> Option<()> {
        let start = self.skipped + BLOCK_HEADER_LEN;
        let deflate = self
            .deflate
            .get_or_insert_with(|| Deflate::new(LEVEL, true, WINDOW_BITS));
        deflate.reset();
        let plain = self.bytes.split_off(start);
        // The capacity is more than zlib needs for incompressible data.
        let most = plain.len() + plain.len() / 8 + 64;
        self.bytes.resize(start + most, 0);
        let status = deflate.compress(&plain, &mut self.bytes[start..], DeflateFlush::Finish);
        self.bytes.truncate(start + deflate.total_out() as usize);
        matches!(status, Ok(Status::StreamEnd)).then_some(())
    }
}
