//! The fixed parts of a table: header, footer and block types.

use pronto_hash::Kind;

use super::error::BlockFault;

const MAGIC: &[u8; 4] = b"REFT";
const SHA1: u32 = u32::from_be_bytes(*b"sha1");
const SHA256: u32 = u32::from_be_bytes(*b"s256");

/// The number of low bits of the position of the object section that store the length of object
/// keys.
const ID_LEN_BITS: u32 = 5;

/// The largest size of a block.
pub(crate) const LARGEST_BLOCK: u32 = (1 << 24) - 1;

/// The length of the type and the length field before each block.
pub(crate) const BLOCK_HEADER_LEN: usize = 4;

/// The types of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Ref,
    Object,
    Index,
    Log,
}

impl BlockKind {
    pub(crate) fn from_byte(byte: u8) -> Option<BlockKind> {
        Some(match byte {
            b'r' => BlockKind::Ref,
            b'o' => BlockKind::Object,
            b'i' => BlockKind::Index,
            b'g' => BlockKind::Log,
            _ => return None,
        })
    }

    pub(crate) fn to_byte(self) -> u8 {
        match self {
            BlockKind::Ref => b'r',
            BlockKind::Object => b'o',
            BlockKind::Index => b'i',
            BlockKind::Log => b'g',
        }
    }
}

/// The first and the last update index that a table may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateIndexRange {
    /// The smallest update index.
    pub min: u64,
    /// The largest update index.
    pub max: u64,
}

/// The header of a table, which its footer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHeader {
    pub(crate) kind: Kind,
    /// The size of aligned blocks; 0 if blocks are not aligned.
    pub(crate) block_size: u32,
    pub(crate) limits: UpdateIndexRange,
    /// Whether the table has version 2, whose header names the hash function.
    pub(crate) is_version_2: bool,
}

impl TableHeader {
    pub(crate) fn len(&self) -> usize {
        if self.is_version_2 { 28 } else { 24 }
    }

    pub(crate) fn footer_len(&self) -> usize {
        self.len() + 44
    }

    /// Returns the header of a new table, with version 1 if possible.
    pub(crate) fn new(kind: Kind, block_size: u32, limits: UpdateIndexRange) -> TableHeader {
        TableHeader {
            kind,
            block_size,
            limits,
            is_version_2: kind != Kind::Sha1,
        }
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(MAGIC);
        bytes.push(if self.is_version_2 { 2 } else { 1 });
        bytes.extend_from_slice(&self.block_size.to_be_bytes()[1..]);
        bytes.extend_from_slice(&self.limits.min.to_be_bytes());
        bytes.extend_from_slice(&self.limits.max.to_be_bytes());
        if self.is_version_2 {
            let id = if self.kind == Kind::Sha1 {
                SHA1
            } else {
                SHA256
            };
            bytes.extend_from_slice(&id.to_be_bytes());
        }
    }

    /// Parses the header at the start of `bytes`. Returns `Ok(None)` if the version or the hash
    /// function is unknown.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<TableHeader>, BlockFault> {
        let ends = BlockFault::new("truncated reftable header", bytes.len());
        let fixed = bytes.get(..24).ok_or(ends)?;
        if &fixed[..4] != MAGIC {
            return Err(BlockFault::new("not a reftable", 0));
        }
        let (is_version_2, kind) = match fixed[4] {
            1 => (false, Kind::Sha1),
            2 => match be32(bytes, 24).ok_or(ends)? {
                SHA1 => (true, Kind::Sha1),
                SHA256 => (true, Kind::Sha256),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(TableHeader {
            kind,
            block_size: be24(fixed, 5).ok_or(ends)?,
            limits: UpdateIndexRange {
                min: be64(fixed, 8).ok_or(ends)?,
                max: be64(fixed, 16).ok_or(ends)?,
            },
            is_version_2,
        }))
    }
}

/// The positions of the blocks of one type, and of their index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSection {
    /// The position of the first block, if there is one.
    pub(crate) start: Option<u64>,
    /// The position of the root block of the index; 0 if there is no index.
    pub(crate) index: u64,
}

/// The footer of a table, after the copy of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) ref_index: u64,
    pub(crate) object_start: u64,
    pub(crate) id_len: usize,
    pub(crate) object_index: u64,
    pub(crate) log_start: u64,
    pub(crate) log_index: u64,
}

impl Footer {
    /// Appends the footer, which begins with `header`.
    pub(crate) fn write(&self, header: &TableHeader, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        header.write(bytes);
        let objects = (self.object_start << ID_LEN_BITS) | self.id_len as u64;
        for number in [
            self.ref_index,
            objects,
            self.object_index,
            self.log_start,
            self.log_index,
        ] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let crc = crc32fast::hash(&bytes[start..]);
        bytes.extend_from_slice(&crc.to_be_bytes());
    }

    /// Parses the footer `bytes`, whose length depends on `header`.
    pub(crate) fn read(bytes: &[u8], header: &TableHeader) -> Result<Footer, BlockFault> {
        let ends = BlockFault::new("truncated reftable footer", bytes.len());
        let crc_at = bytes.len().checked_sub(4).ok_or(ends)?;
        let mut copy = Vec::with_capacity(28);
        header.write(&mut copy);
        if !bytes.starts_with(&copy) {
            return Err(BlockFault::new("reftable header and footer differ", 0));
        }
        if be32(bytes, crc_at) != Some(crc32fast::hash(&bytes[..crc_at])) {
            return Err(BlockFault::new(
                "checksum mismatch in the reftable footer",
                crc_at,
            ));
        }
        let number = |at: usize| be64(bytes, header.len() + 8 * at).ok_or(ends);
        let objects = number(1)?;
        Ok(Footer {
            ref_index: number(0)?,
            object_start: objects >> ID_LEN_BITS,
            id_len: (objects & ((1 << ID_LEN_BITS) - 1)) as usize,
            object_index: number(2)?,
            log_start: number(3)?,
            log_index: number(4)?,
        })
    }
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

#[inline]
pub(crate) fn be24(bytes: &[u8], at: usize) -> Option<u32> {
    let [high, middle, low] = *bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes([0, high, middle, low]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes(*bytes))
}
