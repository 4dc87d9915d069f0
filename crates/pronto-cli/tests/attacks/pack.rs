//! Builds packs byte by byte, valid or invalid.

use libdeflater::{CompressionLvl, Compressor};
use pronto_hash::{Kind, digest};

/// The types of pack entries.
pub(crate) const COMMIT: u8 = 1;
pub(crate) const TREE: u8 = 2;
pub(crate) const BLOB: u8 = 3;
pub(crate) const TAG: u8 = 4;
const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// A pack under construction.
pub(crate) struct Pack {
    version: u32,
    claimed: Option<u32>,
    count: u32,
    entries: Vec<u8>,
}

impl Pack {
    pub(crate) fn new() -> Self {
        Pack {
            version: 2,
            claimed: None,
            count: 0,
            entries: Vec::new(),
        }
    }

    pub(crate) fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Starts a pack whose header claims this number of entries.
    pub(crate) fn claim(mut self, count: u32) -> Self {
        self.claimed = Some(count);
        self
    }

    /// Returns the offset of the next entry.
    pub(crate) fn position(&self) -> u64 {
        12 + self.entries.len() as u64
    }

    /// Adds an entry with a size and compressed bytes that need not match.
    pub(crate) fn entry(mut self, kind: u8, claimed_size: u64, compressed: &[u8]) -> Self {
        self.entries.extend(header(kind, claimed_size));
        self.entries.extend_from_slice(compressed);
        self.count += 1;
        self
    }

    /// Adds a valid entry.
    pub(crate) fn object(self, kind: u8, content: &[u8]) -> Self {
        self.entry(kind, content.len() as u64, &zlib(content))
    }

    /// Adds a delta whose base begins `distance` bytes before it.
    pub(crate) fn offset_delta(mut self, distance: u64, delta: &[u8]) -> Self {
        self.entries
            .extend(header(OFFSET_DELTA, delta.len() as u64));
        self.entries.extend(offset(distance));
        self.entries.extend(zlib(delta));
        self.count += 1;
        self
    }

    /// Adds a delta whose base is an object id.
    pub(crate) fn reference_delta(mut self, base: [u8; 20], delta: &[u8]) -> Self {
        self.entries
            .extend(header(REFERENCE_DELTA, delta.len() as u64));
        self.entries.extend_from_slice(&base);
        self.entries.extend(zlib(delta));
        self.count += 1;
        self
    }

    /// Adds arbitrary bytes as an entry.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.entries.extend_from_slice(bytes);
        self.count += 1;
        self
    }

    /// Returns the pack with its checksum.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = b"PACK".to_vec();
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.claimed.unwrap_or(self.count).to_be_bytes());
        bytes.extend(self.entries);
        sealed(bytes)
    }
}

/// Appends the checksum to `bytes`.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(sha1(&[&bytes]));
    bytes
}

/// Encodes the header of an entry.
pub(crate) fn header(kind: u8, size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut byte = kind << 4 | (size & 15) as u8;
    let mut rest = size >> 4;
    while rest > 0 {
        bytes.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    bytes.push(byte);
    bytes
}

/// Encodes the distance to the base of a delta.
fn offset(distance: u64) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.insert(0, 0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    bytes
}

/// Encodes the start of a delta: the sizes of its base and of its result.
pub(crate) fn delta(base: u64, result: u64, instructions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut size in [base, result] {
        while size > 0x7f {
            bytes.push(0x80 | (size & 0x7f) as u8);
            size >>= 7;
        }
        bytes.push(size as u8);
    }
    bytes.extend_from_slice(instructions);
    bytes
}

/// Compresses bytes with zlib.
pub(crate) fn zlib(content: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut bytes = vec![0; compressor.zlib_compress_bound(content.len())];
    let length = compressor.zlib_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

/// Compresses `head` followed by `zeros` zero bytes, without holding the zero bytes in memory.
pub(crate) fn zlib_bomb(head: &[u8], zeros: u64) -> Vec<u8> {
    let (mut low, mut high) = (1_u64, 0_u64);
    for byte in head {
        low = (low + u64::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    high = (high + zeros % 65_521 * low) % 65_521;
    let mut bytes = vec![0x78, 0x9c];
    bytes.extend(deflated(head, zeros));
    bytes.extend(((high << 16 | low) as u32).to_be_bytes());
    bytes
}

/// Does the same as [`zlib_bomb`] in the format of `gzip`.
pub(crate) fn gzip_bomb(head: &[u8], zeros: u64) -> Vec<u8> {
    let mut sum = crc32fast::Hasher::new();
    sum.update(head);
    let block = vec![0; 1 << 16];
    let mut left = zeros as usize;
    while left > 0 {
        let length = left.min(block.len());
        sum.update(&block[..length]);
        left -= length;
    }
    let mut bytes = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    bytes.extend(deflated(head, zeros));
    bytes.extend(sum.finalize().to_le_bytes());
    bytes.extend((head.len() as u32 + zeros as u32).to_le_bytes());
    bytes
}

/// Writes one block with the fixed codes of DEFLATE: literals, then matches of the maximum length
/// at distance 1.
fn deflated(head: &[u8], zeros: u64) -> Vec<u8> {
    const LONGEST: u64 = 258;
    let mut bits = Bits::default();
    // The block is the last one, with fixed codes. The lowest bit of each number is written first.
    bits.code(0b1, 1);
    bits.code(0b10, 2);
    head.iter().for_each(|byte| bits.literal(*byte));
    if let Some(left) = zeros.checked_sub(1) {
        bits.literal(0);
        for _ in 0..left / LONGEST {
            bits.code(0b1100_0101, 8);
            bits.code(0, 5);
        }
        (0..left % LONGEST).for_each(|_| bits.literal(0));
    }
    bits.code(0, 7);
    bits.finish()
}

/// Codes are written highest bit first into bytes that are filled from the lowest bit.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    byte: u8,
    count: u32,
}

impl Bits {
    fn literal(&mut self, value: u8) {
        match value {
            0..=143 => self.code(0x30 + u32::from(value), 8),
            _ => self.code(0x190 + u32::from(value) - 144, 9),
        }
    }

    fn code(&mut self, code: u32, length: u32) {
        for at in (0..length).rev() {
            self.byte |= ((code >> at & 1) as u8) << self.count;
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.byte);
                (self.byte, self.count) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.byte);
        }
        self.bytes
    }
}

pub(crate) fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let id = digest(Kind::Sha1, parts).expect("no collision");
    id.as_bytes().try_into().expect("20 bytes")
}

/// Returns the id of an object.
pub(crate) fn id(kind: &str, content: &[u8]) -> [u8; 20] {
    sha1(&[format!("{kind} {}\0", content.len()).as_bytes(), content])
}

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
