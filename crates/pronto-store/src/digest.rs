//! Digests of objects in the store: BLAKE3.

use std::fmt;

use crate::hex;

/// The BLAKE3 digest of an object in the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// The number of bytes of a pack whose digest is one entry of its `.sum`.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(Digest)
    }

    /// Returns the digest as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes the digests of a stream, as a whole and for each block.
#[derive(Debug, Default)]
pub struct BlockDigester {
    whole: blake3::Hasher,
    block: blake3::Hasher,
    /// The number of bytes in the incomplete block.
    block_len: usize,
    blocks: Vec<u8>,
    len: u64,
}

/// The digests of a stream.
#[derive(Clone, Debug)]
pub struct StreamDigests {
    /// The digest of all bytes.
    pub whole: Digest,
    /// The concatenated digests of the blocks.
    pub blocks: Vec<u8>,
    /// The number of bytes.
    pub len: u64,
}

impl BlockDigester {
    /// Adds the next bytes of the stream.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.whole.update(bytes);
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block_len));
            self.block.update(now);
            self.block_len += now.len();
            if self.block_len == BLOCK_BYTES {
                self.end_block();
            }
            bytes = later;
        }
    }

    /// Returns the digests.
    pub fn finish(mut self) -> StreamDigests {
        if self.block_len > 0 {
            self.end_block();
        }
        StreamDigests {
            whole: Digest(*self.whole.finalize().as_bytes()),
            blocks: self.blocks,
            len: self.len,
        }
    }

    fn end_block(&mut self) {
        self.blocks
            .extend_from_slice(self.block.finalize().as_bytes());
        self.block.reset();
        self.block_len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_digested_however_the_bytes_arrive() {
        let bytes: Vec<u8> = (0..BLOCK_BYTES * 2 + 5)
            .map(|at| (at % 251) as u8)
            .collect();
        let mut digester = BlockDigester::default();
        bytes.chunks(70_001).for_each(|part| digester.update(part));
        let digests = digester.finish();
        let blocks: Vec<u8> = bytes
            .chunks(BLOCK_BYTES)
            .flat_map(|block| *Digest::of(block).as_bytes())
            .collect();
        assert_eq!(digests.blocks, blocks);
        assert_eq!(digests.whole, Digest::of(&bytes));
        assert_eq!(
            Digest::parse(&digests.whole.to_string()),
            Some(digests.whole)
        );
    }
}
