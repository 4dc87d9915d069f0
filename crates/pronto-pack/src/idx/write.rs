//! Writing pack indexes.

use super::Version;
use crate::fanout::FANOUT_LEN;
use crate::rev::Trailing;
use pronto_hash::{Kind, ObjectId};
use std::io::{self, Write};

/// What an index is made of. Tables are in the order of the pack; `order` says in which order
/// their rows are sorted by id.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The hash of the pack.
    pub kind: Kind,
    /// Ids, one behind the other.
    pub ids: &'a [u8],
    /// Where each entry starts in the pack; rising.
    pub offsets: &'a [u64],
    /// The CRC-32 of each entry; not used in version 1.
    pub crcs: &'a [u32],
    /// Places in the other tables, by rising id.
    pub order: &'a [u32],
}

impl<'a> Rows<'a> {
    /// The id at a place of the pack.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn id(&self, place: u32) -> &'a [u8] {
        let len = self.kind.len_in_bytes();
        &self.ids[place as usize * len..][..len]
    }

    /// The version that will do: `wanted`, unless an offset is too large for it.
    pub fn version(&self, wanted: Version, offset_limit: u64) -> Version {
        match self.offsets.last() {
            Some(last) if is_large(*last, offset_limit) => Version::Two,
            _ => wanted,
        }
    }
}

/// Offsets from here on always take 64 bits.
const LARGE_OFFSET: u64 = 1 << 31;

/// Offsets above `offset_limit`, or that need it, are stored in 64 bits.
fn is_large(offset: u64, offset_limit: u64) -> bool {
    offset >= LARGE_OFFSET || offset > offset_limit
}

/// Writes an index to `out`, which need not be buffered, and returns its checksum. Offsets above
/// `offset_limit` are stored in 64 bits even where they would fit 31; `u64::MAX` for none.
/// Streams: no table is copied.
///
/// # Errors
/// Those of writing.
pub fn write(
    out: &mut dyn Write,
    rows: &Rows<'_>,
    wanted: Version,
    offset_limit: u64,
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let mut out = Trailing::new(out, rows.kind);
    match rows.version(wanted, offset_limit) {
        Version::One => {
            write_fanout(&mut out, rows)?;
            for place in rows.order {
                let offset = rows.offsets[*place as usize] as u32;
                out.put(&offset.to_be_bytes())?;
                out.put(rows.id(*place))?;
            }
        }
        Version::Two => {
            out.put(&super::SIGNATURE)?;
            out.put(&2u32.to_be_bytes())?;
            write_fanout(&mut out, rows)?;
            write_tables(&mut out, rows, offset_limit)?;
        }
    }
    out.put(pack_checksum.as_slice())?;
    out.finish()
}

fn write_fanout(out: &mut Trailing<'_>, rows: &Rows<'_>) -> io::Result<()> {
    let mut counts = [0u32; FANOUT_LEN / 4];
    for place in rows.order {
        counts[usize::from(rows.id(*place)[0])] += 1;
    }
    let mut sum = 0u32;
    for count in counts {
        sum += count;
        out.put(&sum.to_be_bytes())?;
    }
    Ok(())
}

fn write_tables(out: &mut Trailing<'_>, rows: &Rows<'_>, offset_limit: u64) -> io::Result<()> {
    for place in rows.order {
        out.put(rows.id(*place))?;
    }
    for place in rows.order {
        out.put(&rows.crcs[*place as usize].to_be_bytes())?;
    }
    let mut large = 0u32;
    for place in rows.order {
        let offset = rows.offsets[*place as usize];
        let field = if is_large(offset, offset_limit) {
            large += 1;
            LARGE_OFFSET as u32 | (large - 1)
        } else {
            offset as u32
        };
        out.put(&field.to_be_bytes())?;
    }
    for place in rows.order {
        let offset = rows.offsets[*place as usize];
        if is_large(offset, offset_limit) {
            out.put(&offset.to_be_bytes())?;
        }
    }
    Ok(())
}
