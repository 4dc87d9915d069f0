//! Writes pack indexes.

use super::{PackIndex, PackIndexVersion};
use crate::chunks::write_fanout;
use crate::error::{Error, ErrorKind};
use crate::trailing::Trailing;
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use std::io::{self, Write};

/// The rows of an index. The tables are in pack order; `order` sorts their rows by id.
#[derive(Clone, Copy, Debug)]
pub struct IndexTable<'a> {
    /// The hash function of object ids.
    pub kind: Kind,
    /// The concatenated ids.
    pub ids: &'a [u8],
    /// The start of each entry in the pack, in ascending order.
    pub offsets: &'a [u64],
    /// The CRC-32 of each entry; not used in version 1.
    pub crcs: &'a [u32],
    /// The row numbers of the other tables, sorted by id.
    pub order: &'a [u32],
}

impl<'a> IndexTable<'a> {
    /// Returns the id in row `place`.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn id(&self, place: u32) -> &'a [u8] {
        let len = self.kind.len_in_bytes();
        &self.ids[place as usize * len..][..len]
    }

    /// Returns the version to write: `wanted`, or version 2 if an offset is too large for version
    /// 1.
    pub fn version(&self, wanted: PackIndexVersion, offset_limit: u64) -> PackIndexVersion {
        self.version_where(wanted, &|offset| offset > offset_limit)
    }

    fn version_where(
        &self,
        wanted: PackIndexVersion,
        is_large: IsLargeOffset<'_>,
    ) -> PackIndexVersion {
        match self.offsets.last() {
            Some(last) if *last >= LARGE_OFFSET || is_large(*last) => PackIndexVersion::Two,
            _ => wanted,
        }
    }
}

/// The smallest offset that always takes 64 bits.
const LARGE_OFFSET: u64 = 1 << 31;

/// A predicate for further offsets that are stored in 64 bits.
type IsLargeOffset<'a> = &'a dyn Fn(u64) -> bool;

/// Writes an index to `out`, which need not be buffered, and returns its checksum. Offsets above
/// `offset_limit` are stored in 64 bits even if they fit into 31 bits; `u64::MAX` disables this.
/// Does not copy any table.
///
/// # Errors
/// Fails if writing fails.
pub fn write(
    out: &mut dyn Write,
    rows: &IndexTable<'_>,
    wanted: PackIndexVersion,
    offset_limit: u64,
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let is_large = |offset| offset >= LARGE_OFFSET || offset > offset_limit;
    write_where(out, rows, wanted, &is_large, pack_checksum)
}

/// Writes an index of `rows` with the version of `model` and with the same offsets in 64 bits, to
/// be compared with `model`.
///
/// # Errors
/// Fails if writing fails, or if `model` cannot be read.
pub(crate) fn write_again(
    out: &mut dyn Write,
    rows: &IndexTable<'_>,
    model: &PackIndex,
    pack_checksum: &ObjectId,
) -> Result<(), Error> {
    let large = model.offsets_in_64_bits()?;
    let is_large = |offset| offset >= LARGE_OFFSET || large.binary_search(&offset).is_ok();
    write_where(out, rows, model.version(), &is_large, pack_checksum).context(
        ErrorKind::Io,
        "cannot read",
        model.path(),
    )?;
    Ok(())
}

fn write_where(
    out: &mut dyn Write,
    rows: &IndexTable<'_>,
    wanted: PackIndexVersion,
    is_large: IsLargeOffset<'_>,
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let mut out = Trailing::new(out, rows.kind);
    match rows.version_where(wanted, is_large) {
        PackIndexVersion::One => {
            write_fanout(&mut out, first_bytes(rows))?;
            for place in rows.order {
                let offset = rows.offsets[*place as usize] as u32;
                out.put(&offset.to_be_bytes())?;
                out.put(rows.id(*place))?;
            }
        }
        PackIndexVersion::Two => {
            out.put(&super::SIGNATURE)?;
            out.put(&2u32.to_be_bytes())?;
            write_fanout(&mut out, first_bytes(rows))?;
            write_tables(&mut out, rows, is_large)?;
        }
    }
    out.put(pack_checksum.as_slice())?;
    out.finish()
}

fn first_bytes<'a>(rows: &'a IndexTable<'_>) -> impl Iterator<Item = u8> + 'a {
    rows.order.iter().map(|place| rows.id(*place)[0])
}

fn write_tables(
    out: &mut Trailing<'_>,
    rows: &IndexTable<'_>,
    is_large: IsLargeOffset<'_>,
) -> io::Result<()> {
    for place in rows.order {
        out.put(rows.id(*place))?;
    }
    for place in rows.order {
        out.put(&rows.crcs[*place as usize].to_be_bytes())?;
    }
    let mut large = 0u32;
    for place in rows.order {
        let offset = rows.offsets[*place as usize];
        let field = if is_large(offset) {
            large += 1;
            LARGE_OFFSET as u32 | (large - 1)
        } else {
            offset as u32
        };
        out.put(&field.to_be_bytes())?;
    }
    for place in rows.order {
        let offset = rows.offsets[*place as usize];
        if is_large(offset) {
            out.put(&offset.to_be_bytes())?;
        }
    }
    Ok(())
}
