//! Writes a bitmap file.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pronto_hash::{Kind, ObjectId};
use pronto_io::ewah::{BitmapBuilder, Ewah};
use pronto_io::pool::{self, Workers};

use super::{
    Bits, ENTRY_HEADER_LEN, FULL_DAG, HASH_CACHE, LOOKUP_TABLE, SIGNATURE, TABLE_ROW_LEN, VERSION,
};
use crate::idx::IndexPosition;
use crate::trailing::Trailing;

/// The number of preceding bitmaps that are tried as XOR bases.
const TRIED: usize = 10;

/// All objects that are reachable from a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitBitmap {
    /// The position of the commit in the index.
    pub position: IndexPosition,
    /// The bits of the reachable objects, compressed by [`Bits::compress`].
    pub bitmap: Vec<u8>,
}

/// The content of a bitmap file.
#[derive(Clone, Copy, Debug)]
pub struct BitmapContents<'a> {
    /// The checksum of the pack or multi-pack-index.
    pub checksum: ObjectId,
    /// The commits, trees, blobs and tags among the objects.
    pub kinds: &'a [Bits; 4],
    /// The commits that have a bitmap, in the order of the file. Bitmaps of neighbours are combined
    /// by XOR, so they should be similar.
    pub commits: &'a [CommitBitmap],
    /// The name hash of each object, in the order of the index (`pack.writeBitmapHashCache`).
    pub name_hashes: Option<&'a [u32]>,
    /// Write a lookup table, with which a bitmap is found without a scan
    /// (`pack.writeBitmapLookupTable`).
    pub lookup_table: bool,
}

/// A bitmap in its stored form.
struct StoredBitmap {
    /// The XOR offset: the distance to the earlier entry with which the bitmap is combined; zero if
    /// it is not combined.
    distance: u8,
    bitmap: Vec<u8>,
}

/// Writes a bitmap file to `out`, which need not be buffered, and returns its checksum. Combines
/// each bitmap with the ten preceding ones, on all processors.
///
/// # Errors
/// Fails if writing fails, and with `InvalidInput` if a bitmap is malformed.
pub fn write(
    out: &mut dyn Write,
    kind: Kind,
    contents: &BitmapContents<'_>,
) -> io::Result<ObjectId> {
    let stored = combine(contents.commits)?;
    let mut flags = FULL_DAG;
    if contents.name_hashes.is_some() {
        flags |= HASH_CACHE;
    }
    if contents.lookup_table {
        flags |= LOOKUP_TABLE;
    }
    let mut out = Trailing::new(out, kind);
    out.put(&SIGNATURE)?;
    out.put(&VERSION.to_be_bytes())?;
    out.put(&flags.to_be_bytes())?;
    out.put(&(stored.len() as u32).to_be_bytes())?;
    out.put(contents.checksum.as_slice())?;
    let mut at = (SIGNATURE.len() + 8 + kind.len_in_bytes()) as u64;
    let mut bitmap = Vec::new();
    for bits in contents.kinds {
        bitmap.clear();
        bits.compress_set(&mut bitmap);
        out.put(&bitmap)?;
        at += bitmap.len() as u64;
    }
    let mut starts = Vec::with_capacity(stored.len());
    for (commit, stored) in contents.commits.iter().zip(&stored) {
        starts.push(at);
        out.put(&commit.position.0.to_be_bytes())?;
        out.put(&[stored.distance, 0])?;
        out.put(&stored.bitmap)?;
        at += (ENTRY_HEADER_LEN + stored.bitmap.len()) as u64;
    }
    if contents.lookup_table {
        let _region = pronto_io::region!("pack-bitmap-write", "writing_lookup_table");
        write_table(&mut out, contents.commits, &stored, &starts)?;
    }
    for hash in contents.name_hashes.unwrap_or_default() {
        out.put(&hash.to_be_bytes())?;
    }
    out.finish()
}

/// Writes the lookup table: the position of each bitmap, in the order of the index.
fn write_table(
    out: &mut Trailing<'_>,
    commits: &[CommitBitmap],
    stored: &[StoredBitmap],
    starts: &[u64],
) -> io::Result<()> {
    let mut order: Vec<usize> = (0..commits.len()).collect();
    order.sort_by_key(|at| commits[*at].position);
    let mut rows = vec![0u32; commits.len()];
    for (row, at) in order.iter().enumerate() {
        rows[*at] = row as u32;
    }
    for at in order {
        let base = match usize::from(stored[at].distance) {
            0 => u32::MAX,
            distance => rows[at - distance],
        };
        let mut row = [0; TABLE_ROW_LEN];
        row[..4].copy_from_slice(&commits[at].position.0.to_be_bytes());
        row[4..12].copy_from_slice(&starts[at].to_be_bytes());
        row[12..].copy_from_slice(&base.to_be_bytes());
        out.put(&row)?;
    }
    Ok(())
}

/// Stores each bitmap as it is or combined with a preceding one, whichever is shortest.
fn combine(commits: &[CommitBitmap]) -> io::Result<Vec<StoredBitmap>> {
    let parsed: Option<Vec<Ewah<'_>>> = commits
        .iter()
        .map(|commit| Ewah::parse(&mut &commit.bitmap[..], u64::from(u32::MAX)))
        .collect();
    let parsed = parsed.ok_or(io::ErrorKind::InvalidInput)?;
    let combined: Mutex<Vec<(usize, StoredBitmap)>> = Mutex::default();
    let workers = pool::cores().min(1 + commits.len() / 16);
    pool::run(
        Workers::Exactly(workers),
        commits.len(),
        || (Vec::new(), BitmapBuilder::new()),
        |(own, builder), range| {
            own.extend(range.map(|at| (at, shortest(commits, &parsed, at, builder))));
            ControlFlow::Continue(())
        },
        |(own, _)| {
            let mut combined = combined.lock().unwrap_or_else(PoisonError::into_inner);
            combined.extend(own);
        },
    );
    let mut combined = combined
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    combined.sort_unstable_by_key(|(at, _)| *at);
    Ok(combined.into_iter().map(|(_, stored)| stored).collect())
}

fn shortest(
    commits: &[CommitBitmap],
    parsed: &[Ewah<'_>],
    at: usize,
    builder: &mut BitmapBuilder,
) -> StoredBitmap {
    let mut best = StoredBitmap {
        distance: 0,
        bitmap: commits[at].bitmap.clone(),
    };
    let own = &parsed[at];
    for distance in 1..=TRIED.min(at) {
        let other = &parsed[at - distance];
        builder.clear();
        if own.xor(other, builder, best.bitmap.len()) {
            best.distance = distance as u8;
            best.bitmap.clear();
            builder.write(own.len().max(other.len()), &mut best.bitmap);
        }
    }
    best
}
