//! The sorted objects of several packs, without duplicates.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pronto_hash::ObjectId;
use pronto_io::pool::{self, Workers};
use pronto_pack::idx::IndexPosition;
use pronto_pack::midx::write::Entry;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::{MidxContext, Present, SourcePack};

/// A copy of an object, ordered so that the first copy is used: that of the preferred pack, else that
/// of the newest pack.
type ObjectCopy = (ObjectId, bool, Reverse<u64>, u32, u64);

/// Merges the objects of all packs, separately for each first byte of the id. Workers share the bytes,
/// and memory holds little more than the result.
pub(super) fn merge(
    work: &MidxContext<'_>,
    present: Option<&Present>,
    sources: &[SourcePack],
    preferred: Option<usize>,
) -> Result<Vec<Entry>> {
    let merged: Mutex<Vec<(u8, Vec<Entry>)>> = Mutex::default();
    let failed: Mutex<Option<Error>> = Mutex::default();
    let workers = pool::cores().min(1 + object_count(present, sources) / 4096);
    pool::run(
        Workers::Exactly(workers),
        256,
        Vec::new,
        |own: &mut Vec<(u8, Vec<Entry>)>, bytes| {
            for byte in bytes {
                let byte = byte as u8;
                let result = bucket(work, present, sources, preferred, byte);
                match result {
                    Ok(entries) => own.push((byte, entries)),
                    Err(error) => {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        },
        |own| {
            let mut merged = merged.lock().unwrap_or_else(PoisonError::into_inner);
            merged.extend(own);
        },
    );
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut merged = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    merged.sort_unstable_by_key(|(byte, _)| *byte);
    Ok(merged
        .into_iter()
        .flat_map(|(_, entries)| entries)
        .collect())
}

fn object_count(present: Option<&Present>, sources: &[SourcePack]) -> usize {
    let packs = sources.iter().filter_map(|source| source.index.as_ref());
    let known = present.map_or(0, |present| present.len() as usize);
    known + packs.map(|index| index.len() as usize).sum::<usize>()
}

fn bucket(
    work: &MidxContext<'_>,
    present: Option<&Present>,
    sources: &[SourcePack],
    preferred: Option<usize>,
    byte: u8,
) -> Result<Vec<Entry>> {
    let interrupted = |reason: pronto_io::interrupt::Interrupted| {
        Error::new(ErrorKind::Interrupted, reason.to_string())
    };
    work.watch.interrupt().check().map_err(interrupted)?;
    let mut copies: Vec<ObjectCopy> = Vec::new();
    let layers = present.into_iter().flat_map(Present::numbered);
    for (first, layer) in layers {
        for row in layer.bucket(byte) {
            let position = IndexPosition(row);
            let (pack, offset) = layer.location_at(position).map_err(from_pack)?;
            let pack = first + pack.0;
            // The copies of a preferred pack are read from its pack index.
            if preferred != Some(pack as usize) {
                let id = layer.id_at(position).map_err(from_pack)?;
                copies.push((id, true, Reverse(0), pack, offset.0));
            }
        }
    }
    for (number, source) in sources.iter().enumerate() {
        let Some(index) = &source.index else {
            continue;
        };
        let (rank, modified) = (preferred != Some(number), Reverse(source.modified));
        let scanned = index.scan(index.bucket(byte), |_, id, offset| {
            copies.push((id.to_owned(), rank, modified, number as u32, offset.0));
        });
        scanned.map_err(from_pack)?;
    }
    copies.sort_unstable();
    copies.dedup_by_key(|copy| copy.0);
    let entry = |(id, _, _, pack, offset)| Entry { id, pack, offset };
    Ok(copies.into_iter().map(entry).collect())
}
