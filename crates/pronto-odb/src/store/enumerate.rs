//! Lists all object ids, or those with a prefix.

use std::sync::Arc;

use pronto_hash::{ObjectId, Prefix, oid};

use super::{PackLocation, Store};
use crate::error::{Error, from_pack};
use crate::loose;
use crate::packs::PackFile;
use crate::snapshot::PackSnapshot;

/// The objects that match a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixMatches {
    /// No object.
    None,
    /// One object.
    One(ObjectId),
    /// Several objects, sorted.
    Ambiguous(Vec<ObjectId>),
}

impl Store {
    /// Returns the objects whose ids start with `prefix`. Lists one directory of loose objects for
    /// each directory of the store; lists packs again if nothing is found.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index or directory cannot be read.
    pub fn prefix(&self, prefix: Prefix) -> Result<PrefixMatches, Error> {
        let mut snapshot = Arc::clone(&*self.snapshot()?);
        loop {
            let mut ids = self.prefix_in(&snapshot, &prefix)?;
            match ids.as_slice() {
                [] => match self.newer_than(&snapshot)? {
                    Some(newer) => snapshot = newer,
                    None => return Ok(PrefixMatches::None),
                },
                [id] => return Ok(PrefixMatches::One(*id)),
                _ => {
                    ids.shrink_to_fit();
                    return Ok(PrefixMatches::Ambiguous(ids));
                }
            }
        }
    }

    fn prefix_in(&self, snapshot: &PackSnapshot, prefix: &Prefix) -> Result<Vec<ObjectId>, Error> {
        let mut ids = Vec::new();
        for multi in &snapshot.multi {
            let rows = multi.index.prefix(prefix).map_err(from_pack)?;
            for row in rows.start.0..rows.end.0 {
                let id = multi.index.id_at(pronto_pack::idx::IndexPosition(row));
                ids.push(id.map_err(from_pack)?);
            }
        }
        for pack in &snapshot.single {
            let index = match pack.index() {
                Ok(index) => index,
                Err(_) if pack.has_vanished() => continue,
                Err(error) => return Err(error),
            };
            let rows = index.prefix(prefix).map_err(from_pack)?;
            for row in rows.start.0..rows.end.0 {
                let id = index.id_at(pronto_pack::idx::IndexPosition(row));
                ids.push(id.map_err(from_pack)?);
            }
        }
        for objects in &self.inner.directories {
            loose::prefix(objects, prefix, &mut ids)?;
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Returns the number of hex digits, at least `least`, that distinguish `id` from all other
    /// objects. The object `id` itself need not exist.
    ///
    /// # Errors
    /// Fails as [`prefix`](Self::prefix) does.
    pub fn unique_prefix_len(&self, id: &oid, least: usize) -> Result<usize, Error> {
        let whole = id.kind().len_in_hex();
        let least = least.clamp(1, whole);
        let Ok(prefix) = Prefix::new(id, least) else {
            return Ok(whole);
        };
        let snapshot = Arc::clone(&*self.snapshot()?);
        let others = self.prefix_in(&snapshot, &prefix)?;
        let shared = others
            .iter()
            .filter(|other| other.as_bytes() != id.as_bytes())
            .map(|other| shared_digits(other, id))
            .max();
        Ok(shared.map_or(least, |shared| (shared + 1).clamp(least, whole)))
    }

    /// Returns the approximate number of objects, from which Git derives the length of abbreviated
    /// ids: each copy in a pack counts, and loose objects do not count.
    ///
    /// # Errors
    /// Fails as [`prefix`](Self::prefix) does.
    pub fn approximate_count(&self) -> Result<u64, Error> {
        let snapshot = self.snapshot()?;
        let mut count = 0;
        for multi in &snapshot.multi {
            count += u64::from(multi.index.len());
        }
        for pack in &snapshot.single {
            match pack.index() {
                Ok(index) => count += u64::from(index.len()),
                Err(_) if pack.has_vanished() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Returns all object ids, sorted, each once. Uses the packs of the start; needs memory for one
    /// 256th of the ids at a time.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn iter(&self) -> Result<StoreIds, Error> {
        self.refresh()?;
        let snapshot = Arc::clone(&*self.snapshot()?);
        Ok(StoreIds {
            store: self.clone(),
            snapshot,
            next_byte: 0,
            bucket: Vec::new().into_iter(),
        })
    }

    /// Calls `visit` once with every object id, in the order in which reading is fastest: first
    /// loose objects, then the objects of each pack in pack order.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index or directory cannot be read,
    /// and with the error of `visit`.
    pub fn for_each_stored<E: From<Error>>(
        &self,
        mut visit: impl FnMut(&oid, Option<PackLocation>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.refresh()?;
        let snapshot = Arc::clone(&*self.snapshot()?);
        let mut loose = Vec::new();
        for objects in &self.inner.directories {
            let fanouts = loose::fanouts(objects)?;
            for byte in (0..=u8::MAX).filter(|byte| fanouts[usize::from(*byte)]) {
                loose::list(objects, byte, self.kind(), &mut loose)?;
            }
        }
        loose.sort_unstable();
        loose.dedup();
        for id in &loose {
            visit(id, None)?;
        }
        let packs: Vec<&Arc<PackFile>> = snapshot.all_packs().collect();
        for (place, pack) in packs.iter().enumerate() {
            let earlier = &packs[..place];
            visit_pack(pack, &mut |id, location| {
                let is_loose = !loose.is_empty() && loose.binary_search(&id.to_owned()).is_ok();
                if is_loose || in_any(earlier, id)? {
                    return Ok(());
                }
                visit(id, Some(location))
            })?;
        }
        Ok(())
    }

    /// Calls `visit` with every packed object id, pack by pack in pack order. The id of an object
    /// in several packs is visited several times.
    ///
    /// # Errors
    /// Fails as [`for_each_stored`](Self::for_each_stored) does.
    pub fn for_each_packed<E: From<Error>>(
        &self,
        mut visit: impl FnMut(&oid, PackLocation) -> Result<(), E>,
    ) -> Result<(), E> {
        self.refresh()?;
        let snapshot = Arc::clone(&*self.snapshot()?);
        for pack in snapshot.all_packs() {
            visit_pack(pack, &mut visit)?;
        }
        Ok(())
    }

    /// Returns the paths of the promisor packs (`.promisor`): objects to which their objects refer
    /// may be missing.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn promisor_packs(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        let snapshot = self.snapshot()?;
        let promisors = snapshot.all_packs().filter(|pack| pack.listed.promisor);
        Ok(promisors.map(|pack| pack.pack_path()).collect())
    }
}

fn visit_pack<E: From<Error>>(
    pack: &PackFile,
    visit: &mut impl FnMut(&oid, PackLocation) -> Result<(), E>,
) -> Result<(), E> {
    let order = match pack.order() {
        Ok(order) => order,
        Err(_) if pack.has_vanished() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let index = pack.index()?;
    for position in 0..order.len() {
        let Some((offset, row)) = order.get(pronto_pack::pack::PackPosition(position)) else {
            break;
        };
        let id = index.id_at(row).map_err(from_pack)?;
        let location = PackLocation {
            pack: pack.number,
            offset,
        };
        visit(&id, location)?;
    }
    Ok(())
}

/// Returns whether any of `packs` contains `id`.
fn in_any(packs: &[&Arc<PackFile>], id: &oid) -> Result<bool, Error> {
    for pack in packs {
        match pack.index() {
            Ok(index) if index.find(id).map_err(from_pack)?.is_some() => return Ok(true),
            Ok(_) => {}
            Err(_) if pack.has_vanished() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns the length of the common prefix of two ids in hex digits.
fn shared_digits(a: &oid, b: &oid) -> usize {
    let pairs = a.as_bytes().iter().zip(b.as_bytes());
    let mut digits = 0;
    for (a, b) in pairs {
        if a != b {
            return digits + usize::from(a >> 4 == b >> 4);
        }
        digits += 2;
    }
    digits
}

/// An iterator over all ids of a store, from [`Store::iter`]. Ends after the first error.
pub struct StoreIds {
    store: Store,
    snapshot: Arc<PackSnapshot>,
    next_byte: usize,
    bucket: std::vec::IntoIter<ObjectId>,
}

impl StoreIds {
    fn fill(&mut self, first_byte: u8) -> Result<Vec<ObjectId>, Error> {
        let mut ids = Vec::new();
        for pack in self.snapshot.all_packs() {
            let index = match pack.index() {
                Ok(index) => index,
                Err(_) if pack.has_vanished() => continue,
                Err(error) => return Err(error),
            };
            let rows = index.bucket(first_byte);
            ids.reserve(rows.len());
            index
                .scan_ids(rows, |id| ids.push(id.to_owned()))
                .map_err(from_pack)?;
        }
        for objects in &self.store.inner.directories {
            loose::list(objects, first_byte, self.store.kind(), &mut ids)?;
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

impl Iterator for StoreIds {
    type Item = Result<ObjectId, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(id) = self.bucket.next() {
                return Some(Ok(id));
            }
            let byte = u8::try_from(self.next_byte).ok()?;
            self.next_byte += 1;
            match self.fill(byte) {
                Ok(ids) => self.bucket = ids.into_iter(),
                Err(error) => {
                    self.next_byte = 256;
                    return Some(Err(error));
                }
            }
        }
    }
}
