//! Numbers for packed objects, and sets of objects with one bit for each number.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pronto_hash::{ObjectId, oid};
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;

use super::Store;
use crate::error::{Error, ErrorKind, from_pack};
use crate::snapshot::PackSnapshot;

/// The packed objects of a store at one moment, numbered from zero: index by index, in the order of
/// ids. An object in several packs has several numbers.
///
/// Lookups use the packs of that moment, even if they have been removed since. `Send + Sync`.
#[derive(Debug)]
pub struct NumberedObjects {
    rows: Vec<IndexRange>,
    len: u32,
    /// The position in `rows` of the index in which an object was found last.
    last_hit: AtomicUsize,
}

/// One index, and the number of its first object.
#[derive(Debug)]
struct IndexRange {
    start: u32,
    index: IdTable,
}

/// A sorted list of ids: a pack index or a multi-pack-index.
#[derive(Debug)]
enum IdTable {
    Single(Arc<PackIndex>),
    Multi(Arc<MultiIndex>),
}

impl Store {
    /// Numbers the objects of the packs that exist now. Opens every index; reads no ids.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if a directory or an index cannot be
    /// read, and with `ErrorKind::Limit` if there are more than 2^32 objects.
    pub fn numbered(&self) -> Result<NumberedObjects, Error> {
        self.refresh()?;
        let snapshot = self.snapshot()?;
        NumberedObjects::of(&snapshot)
    }
}

impl NumberedObjects {
    fn of(snapshot: &PackSnapshot) -> Result<Self, Error> {
        let mut tables = Vec::with_capacity(snapshot.multi.len() + snapshot.single.len());
        for multi in &snapshot.multi {
            tables.push(IdTable::Multi(Arc::clone(&multi.index)));
        }
        for pack in &snapshot.single {
            match pack.index() {
                Ok(index) => tables.push(IdTable::Single(Arc::clone(index))),
                Err(_) if pack.has_vanished() => {}
                Err(error) => return Err(error),
            }
        }
        let (mut rows, mut len) = (Vec::with_capacity(tables.len()), 0_u32);
        for index in tables {
            let start = len;
            let end = start.checked_add(index.len());
            len = end.ok_or_else(|| Error::new(ErrorKind::Limit, "too many objects in packs"))?;
            rows.push(IndexRange { start, index });
        }
        Ok(NumberedObjects {
            rows,
            len,
            last_hit: AtomicUsize::new(0),
        })
    }

    /// Returns one number of `id`; `None` if no pack contains the object. First searches the index
    /// in which the previous object was found.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index cannot be read.
    pub fn find(&self, id: &oid) -> Result<Option<u32>, Error> {
        let last_hit = self.last_hit.load(Relaxed);
        if let Some(rows) = self.rows.get(last_hit)
            && let Some(number) = rows.find(id)?
        {
            return Ok(Some(number));
        }
        for (at, rows) in self.rows.iter().enumerate() {
            if at != last_hit
                && let Some(number) = rows.find(id)?
            {
                self.last_hit.store(at, Relaxed);
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the id of the object with this number.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if the index cannot be read, and with
    /// `ErrorKind::Limit` if there is no such number.
    pub fn id(&self, number: u32) -> Result<ObjectId, Error> {
        let next = self.rows.partition_point(|rows| rows.start <= number);
        let rows = next.checked_sub(1).and_then(|at| self.rows.get(at));
        let rows = rows.filter(|_| number < self.len);
        let unknown = || Error::new(ErrorKind::Limit, "no packed object has this position");
        let rows = rows.ok_or_else(unknown)?;
        rows.index.id_at(number - rows.start)
    }

    /// Returns whether `marked` returns `true` for any number of `id`.
    fn any(&self, id: &oid, marked: impl Fn(u32) -> bool) -> Result<bool, Error> {
        for rows in &self.rows {
            if rows.find(id)?.is_some_and(&marked) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl IndexRange {
    fn find(&self, id: &oid) -> Result<Option<u32>, Error> {
        let found = match &self.index {
            IdTable::Single(index) => index.find(id),
            IdTable::Multi(index) => index.find(id),
        };
        let found = found.map_err(from_pack)?;
        Ok(found.map(|position| self.start + position.0))
    }
}

impl IdTable {
    fn len(&self) -> u32 {
        match self {
            IdTable::Single(index) => index.len(),
            IdTable::Multi(index) => index.len(),
        }
    }

    fn id_at(&self, row: u32) -> Result<ObjectId, Error> {
        let found = match self {
            IdTable::Single(index) => index.id_at(IndexPosition(row)),
            IdTable::Multi(index) => index.id_at(IndexPosition(row)),
        };
        found.map_err(from_pack)
    }
}

/// A set of objects: one bit for each object of [`NumberedObjects`], and the ids of all other members.
#[derive(Clone, Debug)]
pub struct ObjectSet {
    numbered: Arc<NumberedObjects>,
    bits: Vec<u64>,
    others: HashSet<ObjectId>,
}

impl ObjectSet {
    /// Returns an empty set.
    pub fn new(numbered: Arc<NumberedObjects>) -> Self {
        let words = numbered.len.div_ceil(u64::BITS) as usize;
        ObjectSet {
            numbered,
            bits: vec![0; words],
            others: HashSet::new(),
        }
    }

    /// Adds `id` and returns whether it was absent. For an object in several packs, the result can
    /// be `true` once for each pack, because only one index is searched.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index cannot be read.
    pub fn insert(&mut self, id: &oid) -> Result<bool, Error> {
        match self.numbered.find(id)? {
            Some(number) => Ok(self.insert_number(number)),
            None => Ok(self.others.insert(id.to_owned())),
        }
    }

    /// Does the same as [`insert`](Self::insert) for the object with this number.
    ///
    /// # Panics
    /// Panics if no object has this number.
    pub fn insert_number(&mut self, number: u32) -> bool {
        let word = &mut self.bits[(number / u64::BITS) as usize];
        let bit = 1 << (number % u64::BITS);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Returns whether `id` was added. Searches every index if the object was not added.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index cannot be read.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        if self.others.contains(id) {
            return Ok(true);
        }
        self.numbered.any(id, |number| {
            let word = self.bits[(number / u64::BITS) as usize];
            word & (1 << (number % u64::BITS)) != 0
        })
    }
}
