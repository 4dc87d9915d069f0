//! Checks for collisions: objects of the pack that exist in the destination must have the same
//! content.

use super::ExistingObjects;
use super::buffers::BufferPool;
use super::indexed::IndexedPack;
use super::limits::ObjectLimits;
use super::reader::Reader;
use crate::error::{Error, ErrorKind};
use pronto_hash::{Kind, ObjectId};

/// The number of ids in one query.
const ASKED_AT_ONCE: usize = 1 << 16;

/// Compares received objects with existing objects of the same id. An object that does not exist
/// costs only an entry in a sorted list of ids.
pub(super) fn check(
    kind: Kind,
    limits: ObjectLimits<'_>,
    existing: &dyn ExistingObjects,
    indexed: &IndexedPack,
    order: &[u32],
) -> Result<(), Error> {
    let id_len = kind.len_in_bytes();
    let mut found = Vec::new();
    let mut suspects: Vec<(u32, ObjectId)> = Vec::new();
    let mut ids = Vec::with_capacity(order.len().min(ASKED_AT_ONCE));
    for places in order.chunks(ASKED_AT_ONCE) {
        ids.clear();
        ids.extend(places.iter().map(|place| {
            ObjectId::from_bytes_or_panic(&indexed.ids[*place as usize * id_len..][..id_len])
        }));
        found.clear();
        existing.contains_batch(&ids, &mut found)?;
        suspects.extend(
            found
                .iter()
                .filter_map(|at| Some((*places.get(*at)?, *ids.get(*at)?))),
        );
    }
    // Appended bases were read from the destination, so they need not be compared.
    let added_from = indexed.tables.len() - indexed.added as usize;
    suspects.retain(|(place, _)| (*place as usize) < added_from);
    if suspects.is_empty() {
        return Ok(());
    }
    suspects.sort_unstable_by_key(|(place, _)| *place);
    compare(kind, limits, existing, indexed, &suspects)
}

fn compare(
    kind: Kind,
    limits: ObjectLimits<'_>,
    existing: &dyn ExistingObjects,
    indexed: &IndexedPack,
    suspects: &[(u32, ObjectId)],
) -> Result<(), Error> {
    let view = indexed.store.view()?;
    let mut reader = Reader::new(kind, &view, &indexed.tables, limits);
    let mut pool = BufferPool::default();
    let mut old = Vec::new();
    for (place, id) in suspects {
        let Some(old_kind) = existing.find(id, &mut old)? else {
            continue;
        };
        let new = reader.content(*place, &mut pool)?;
        if new.kind != old_kind || new.as_slice() != old {
            return Err(Error::new(
                ErrorKind::Collision,
                format!("SHA1 COLLISION FOUND WITH {id} !"),
            ));
        }
        pool.put(new);
    }
    Ok(())
}
