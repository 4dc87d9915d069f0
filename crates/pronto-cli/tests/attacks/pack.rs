//! Packs that are made by hand, and so may be wrong in any way.

use libdeflater::{CompressionLvl, Compressor};
use pronto_hash::{Kind, digest};

/// The kinds of entries.
pub(crate) const COMMIT: u8 = 1;
pub(crate) const TREE: u8 = 2;
pub(crate) const BLOB: u8 = 3;
pub(crate) const TAG: u8 = 4;
const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// A pack in the making.
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

    /// Claims a number of entries.
    pub(crate) fn claim(mut self, count: u32) -> Self {
        self.claimed = Some(count);
        self
    }

    /// Where the next entry begins.
    pub(crate) fn position(&self) -> u64 {
        12 + self.entries.len() as u64
    }

    /// An entry with a size and compressed bytes that need not belong together.
    pub(crate) fn entry(mut self, kind: u8, claimed_size: u64, compressed: &[u8]) -> Self {
        self.entries.extend(header(kind, claimed_size));
        self.entries.extend_from_slice(compressed);
        self.count += 1;
        self
    }

    /// A sound entry.
    pub(crate) fn object(self, kind: u8, content: &[u8]) -> Self {
        self.entry(kind, content.len() as u64, &zlib(content))
    }

    /// A delta upon the entry that begins `distance` bytes before it.
    pub(crate) fn offset_delta(mut self, distance: u64, delta: &[u8]) -> Self {
        self.entries
            .extend(header(OFFSET_DELTA, delta.len() as u64));
        self.entries.extend(offset(distance));
        self.entries.extend(zlib(delta));
        self.count += 1;
        self
    }

    /// A delta upon an object.
    pub(crate) fn reference_delta(mut self, base: [u8; 20], delta: &[u8]) -> Self {
        self.entries
            .extend(header(REFERENCE_DELTA, delta.len() as u64));
        self.entries.extend_from_slice(&base);
        self.entries.extend(zlib(delta));
        self.count += 1;
        self
    }

    /// Any bytes, which count as an entry.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.entries.extend_from_slice(bytes);
        self.count += 1;
        self
    }

    /// The pack with its checksum.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = b"PACK".to_vec();
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.claimed.unwrap_or(self.count).to_be_bytes());
        bytes.extend(self.entries);
        sealed(bytes)
    }
}

/// `bytes` with their checksum.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(sha1(&[&bytes]));
    bytes
}

/// The header of an entry.
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

/// The distance to the base of a delta.
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

/// The head of a delta: the sizes of its base and of its result.
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

/// Compressed bytes.
pub(crate) fn zlib(content: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut bytes = vec![0; compressor.zlib_compress_bound(content.len())];
    let length = compressor.zlib_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

/// Compressed bytes in the format of `gzip`.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut bytes = vec![0; compressor.gzip_compress_bound(content.len())];
    let length = compressor.gzip_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

pub(crate) fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let id = digest(Kind::Sha1, parts).expect("no collision");
    id.as_bytes().try_into().expect("20 bytes")
}

/// The id of an object.
pub(crate) fn id(kind: &str, content: &[u8]) -> [u8; 20] {
    sha1(&[format!("{kind} {}\0", content.len()).as_bytes(), content])
}

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
