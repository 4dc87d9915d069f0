//! Access by id to the objects of a received pack, before its files have their final names.

use super::buffers::BufferPool;
use super::indexed::IndexedPack;
use super::limits::ObjectLimits;
use super::reader::Reader;
use super::spool::Viewed;
use crate::error::Error;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, oid};
use std::cell::RefCell;

/// Gives the inspector access to all objects of a complete pack.
pub trait IndexedObjects {
    /// Returns the type of the object; `None` if the pack does not contain it.
    fn kind(&self, id: &oid) -> Option<ObjectKind>;

    /// Reads the object `id` into `out`, replacing its content. Returns `None` if the pack does not
    /// contain the object.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error>;
}

/// Implements [`IndexedObjects`] for a complete pack.
pub(super) struct Complete<'a> {
    indexed: &'a IndexedPack,
    order: &'a [u32],
    limits: ObjectLimits<'a>,
    hash: Kind,
    view: Viewed<'a>,
    pool: RefCell<BufferPool>,
}

impl<'a> Complete<'a> {
    pub(super) fn new(
        indexed: &'a IndexedPack,
        order: &'a [u32],
        limits: ObjectLimits<'a>,
        hash: Kind,
    ) -> Result<Complete<'a>, Error> {
        Ok(Complete {
            indexed,
            order,
            limits,
            hash,
            view: indexed.store.view()?,
            pool: RefCell::default(),
        })
    }

    fn place(&self, id: &oid) -> Option<u32> {
        let len = self.hash.len_in_bytes();
        let id_at = |place: u32| &self.indexed.ids[place as usize * len..][..len];
        let at = self
            .order
            .binary_search_by(|place| id_at(*place).cmp(id.as_bytes()));
        Some(self.order[at.ok()?])
    }
}

impl IndexedObjects for Complete<'_> {
    fn kind(&self, id: &oid) -> Option<ObjectKind> {
        let tables = &self.indexed.tables;
        let mut at = self.place(id)?;
        loop {
            match (tables.kind(at), tables.bases[at as usize].index()) {
                (Some(kind), _) => return Some(kind),
                (None, Some(base)) => at = base,
                (None, None) => return None,
            }
        }
    }

    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        let Some(place) = self.place(id) else {
            return Ok(None);
        };
        let mut reader = Reader::new(self.hash, &self.view, &self.indexed.tables, self.limits);
        let mut pool = self.pool.borrow_mut();
        let content = reader.content(place, &mut pool)?;
        out.clear();
        out.extend_from_slice(content.as_slice());
        let kind = self.kind(id);
        pool.put(content);
        Ok(kind)
    }
}
