//! Writes multi-pack-indexes.

use std::io::{self, Write};

use pronto_hash::{Kind, ObjectId};

use super::{HEADER_LEN, LARGE, SIGNATURE};
use crate::chunks::{write_fanout, write_table};
use crate::fanout::FANOUT_LEN;
use crate::rev::format_id;
use crate::trailing::Trailing;

/// The version of the written format.
const VERSION: u8 = 1;

/// An object and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the object.
    pub id: ObjectId,
    /// The number of the pack in the list of pack names.
    pub pack: u32,
    /// The start of the entry in the pack.
    pub offset: u64,
}

/// Returns the pseudo-pack order, which bitmaps use: the row of each object. The objects of the
/// pack `preferred` are first, followed by those of the other packs in the order of their numbers;
/// the objects of each pack are in pack order.
pub fn order(entries: &[Entry], preferred: Option<u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..entries.len() as u32).collect();
    rows.sort_unstable_by_key(|row| {
        let entry = &entries[*row as usize];
        (Some(entry.pack) != preferred, entry.pack, entry.offset)
    });
    rows
}

/// Writes a multi-pack-index to `out`, which need not be buffered, and returns its checksum.
/// `pack_names` are the sorted file names of indexes (`pack-….idx`); `entries` are sorted by id,
/// each once. With `order`, the file also contains a reverse index with the [pseudo-pack
/// order](order).
///
/// # Errors
/// Fails if writing fails.
pub fn write(
    out: &mut dyn Write,
    kind: Kind,
    pack_names: &[impl AsRef<[u8]>],
    entries: &[Entry],
    order: Option<&[u32]>,
) -> io::Result<ObjectId> {
    let names_len: usize = pack_names.iter().map(|name| name.as_ref().len() + 1).sum();
    let names_len = names_len.next_multiple_of(4);
    let count = entries.len() as u64;
    let has_large = entries
        .iter()
        .any(|entry| entry.offset > u64::from(u32::MAX));
    let is_large = |entry: &&Entry| has_large && entry.offset >= u64::from(LARGE);
    let mut chunks = vec![
        (*b"PNAM", names_len as u64),
        (*b"OIDF", FANOUT_LEN as u64),
        (*b"OIDL", count * kind.len_in_bytes() as u64),
        (*b"OOFF", count * 8),
    ];
    if has_large {
        let large = entries.iter().filter(is_large).count() as u64;
        chunks.push((*b"LOFF", large * 8));
    }
    if let Some(order) = order {
        chunks.push((*b"RIDX", order.len() as u64 * 4));
        chunks.push((*b"BTMP", pack_names.len() as u64 * 8));
    }
    let mut out = Trailing::new(out, kind);
    out.put(&SIGNATURE)?;
    out.put(&[VERSION, format_id(kind) as u8, chunks.len() as u8, 0])?;
    out.put(&(pack_names.len() as u32).to_be_bytes())?;
    write_table(&mut out, HEADER_LEN as u64, &chunks)?;
    let mut padding = names_len;
    for name in pack_names {
        out.put(name.as_ref())?;
        out.put(&[0])?;
        padding -= name.as_ref().len() + 1;
    }
    out.put(&[0; 3][..padding])?;
    write_fanout(&mut out, entries.iter().map(|entry| entry.id.as_bytes()[0]))?;
    for entry in entries {
        out.put(entry.id.as_bytes())?;
    }
    let mut large = 0u32;
    for entry in entries {
        out.put(&entry.pack.to_be_bytes())?;
        let field = if is_large(&entry) {
            large += 1;
            LARGE | (large - 1)
        } else {
            entry.offset as u32
        };
        out.put(&field.to_be_bytes())?;
    }
    for entry in entries.iter().filter(is_large) {
        out.put(&entry.offset.to_be_bytes())?;
    }
    if let Some(order) = order {
        for row in order {
            out.put(&row.to_be_bytes())?;
        }
        for run in runs(entries, order, pack_names.len()) {
            out.put(&run.start.to_be_bytes())?;
            out.put(&run.count.to_be_bytes())?;
        }
    }
    out.finish()
}

/// The range of the objects of a pack in pseudo-pack order.
#[derive(Clone, Copy)]
struct PackRun {
    start: u32,
    count: u32,
}

/// Returns the range of each pack in `order`, in which the objects of a pack are consecutive. A
/// pack without objects starts at `u32::MAX`, as in Git.
fn runs(entries: &[Entry], order: &[u32], packs: usize) -> Vec<PackRun> {
    let mut runs = vec![
        PackRun {
            start: u32::MAX,
            count: 0,
        };
        packs
    ];
    for (at, row) in (0..).zip(order) {
        let pack = entries.get(*row as usize).map(|entry| entry.pack as usize);
        if let Some(run) = pack.and_then(|pack| runs.get_mut(pack)) {
            run.start = run.start.min(at);
            run.count += 1;
        }
    }
    runs
}
