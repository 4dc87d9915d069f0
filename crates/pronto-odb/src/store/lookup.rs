//! Finds an object: in packs, then in loose files, then in packs that were added meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pronto_hash::oid;
use pronto_pack::pack::PackOffset;

use super::{Store, on_object};
use crate::error::{Error, ErrorKind};
use crate::packs::PackFile;
use crate::snapshot::PackSnapshot;

/// The largest number of times that packs are listed for one object while other processes change
/// packs.
const MAX_ATTEMPTS: usize = 64;

impl Store {
    /// Calls `packed` with each position of `id` in packs, then `loose` with each object directory,
    /// until a call returns a result. If no call does and packs have changed meanwhile, repeats the
    /// search: the object may have been moved from one pack to another, or from a loose file to a
    /// pack. An error is returned only if no copy can be read.
    #[inline]
    pub(super) fn lookup<T>(
        &self,
        id: &oid,
        mut packed: impl FnMut(&PackFile, PackOffset) -> Result<T, Error>,
        loose: impl Fn(&Path) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut failure = None;
        let snapshot = self.snapshot()?;
        if let Some(found) = in_packs(&snapshot, id, &mut failure, &mut packed) {
            return Ok(Some(found));
        }
        let snapshot = Arc::clone(&snapshot);
        self.lookup_further(id, snapshot, failure, &mut packed, &loose)
    }

    fn lookup_further<T>(
        &self,
        id: &oid,
        mut snapshot: Arc<PackSnapshot>,
        mut failure: Option<Error>,
        packed: &mut impl FnMut(&PackFile, PackOffset) -> Result<T, Error>,
        loose: &impl Fn(&Path) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        for _ in 0..MAX_ATTEMPTS {
            for objects in &self.inner.directories {
                match loose(objects) {
                    Ok(Some(found)) => return Ok(Some(found)),
                    Ok(None) => {}
                    Err(error) => failure = Some(failure.unwrap_or(error)),
                }
            }
            match self.newer_than(&snapshot)? {
                Some(newer) => snapshot = newer,
                None => {
                    return match failure {
                        Some(error) => Err(error.on_object(id)),
                        None => Ok(None),
                    };
                }
            }
            failure = None;
            if let Some(found) = in_packs(&snapshot, id, &mut failure, packed) {
                return Ok(Some(found));
            }
        }
        let message = "gave up: other processes keep changing the packs; try again";
        Err(failure
            .unwrap_or_else(|| Error::new(ErrorKind::Io, message))
            .on_object(id))
    }
}

/// Calls `found` with each position of `id` in the packs of `snapshot`, until a call returns a
/// result. The first error is stored in `failure`, unless the error is that the pack is gone.
#[inline]
pub(super) fn in_packs<T>(
    snapshot: &PackSnapshot,
    id: &oid,
    failure: &mut Option<Error>,
    found: &mut impl FnMut(&PackFile, PackOffset) -> Result<T, Error>,
) -> Option<T> {
    let mut failed = false;
    for multi in &snapshot.multi {
        let located = multi.index.find(id).and_then(|position| {
            position
                .map(|position| multi.index.location_at(position))
                .transpose()
        });
        let (number, offset) = match located {
            Ok(Some(location)) => location,
            Ok(None) => continue,
            Err(error) => {
                failed = true;
                note(failure, on_object(error, id));
                continue;
            }
        };
        let Some(Some(pack)) = multi.packs.get(number.0 as usize) else {
            failed = true;
            continue;
        };
        match found(pack, offset) {
            Ok(found) => return Some(found),
            Err(error) => {
                failed = true;
                note_unless_gone(failure, pack, error);
            }
        }
    }
    let last_hit = snapshot.last_hit.load(Relaxed);
    if let Some(pack) = snapshot.single.get(last_hit)
        && let Some(found) = in_pack(pack, id, failure, found)
    {
        return Some(found);
    }
    for (place, pack) in snapshot.single.iter().enumerate() {
        if place == last_hit {
            continue;
        }
        if let Some(found) = in_pack(pack, id, failure, found) {
            snapshot.last_hit.store(place, Relaxed);
            return Some(found);
        }
    }
    if failed {
        // The multi-pack-index lists only one copy; other packs may contain further copies.
        let mut packs = snapshot.covered.iter();
        return packs.find_map(|pack| in_pack(pack, id, failure, found));
    }
    None
}

#[inline]
fn in_pack<T>(
    pack: &PackFile,
    id: &oid,
    failure: &mut Option<Error>,
    found: &mut impl FnMut(&PackFile, PackOffset) -> Result<T, Error>,
) -> Option<T> {
    let index = match pack.index() {
        Ok(index) => index,
        Err(error) => {
            note_unless_gone(failure, pack, error);
            return None;
        }
    };
    match index.find_offset(id) {
        Ok(Some(offset)) => match found(pack, offset) {
            Ok(found) => Some(found),
            Err(error) => {
                note_unless_gone(failure, pack, error);
                None
            }
        },
        Ok(None) => None,
        Err(error) => {
            note_unless_gone(failure, pack, pack.failed(error));
            None
        }
    }
}

#[cold]
fn note_unless_gone(failure: &mut Option<Error>, pack: &PackFile, error: Error) {
    if !pack.has_vanished() {
        note(failure, error);
    }
}

#[cold]
fn note(failure: &mut Option<Error>, error: Error) {
    failure.get_or_insert(error);
}
