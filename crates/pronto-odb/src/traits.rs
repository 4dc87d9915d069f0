//! Implements traits of gix crates and of the pack indexer for the store.

use std::io::Read;

use gix_error::Result;
use gix_object::{Data, Kind};
use pronto_hash::{ObjectId, oid};

use crate::error::to_pack;
use crate::store::{Inventory, Store};

/// Answers the queries of the indexer from listings, so that queries cost no system call for each
/// object.
impl pronto_pack::indexer::ExistingObjects for Inventory {
    fn contains_batch(
        &self,
        ids: &[ObjectId],
        found: &mut Vec<usize>,
    ) -> std::result::Result<(), pronto_pack::Error> {
        Inventory::contains_batch(self, ids, found).map_err(to_pack)
    }

    fn find(
        &self,
        id: &oid,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Option<Kind>, pronto_pack::Error> {
        self.store()
            .without_replacements()
            .find(id, out)
            .map_err(to_pack)
    }
}

/// Answers the queries of the indexer for a few objects. Each query uses the current state.
impl pronto_pack::indexer::ExistingObjects for Store {
    fn contains_batch(
        &self,
        ids: &[ObjectId],
        found: &mut Vec<usize>,
    ) -> std::result::Result<(), pronto_pack::Error> {
        let present = Store::contains_batch(self, ids).map_err(to_pack)?;
        let places = present.iter().enumerate().filter(|(_, present)| **present);
        found.extend(places.map(|(at, _)| at));
        Ok(())
    }

    fn find(
        &self,
        id: &oid,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Option<Kind>, pronto_pack::Error> {
        Store::find(&self.without_replacements(), id, out).map_err(to_pack)
    }
}

impl gix_object::Find for Store {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> Result<Option<Data<'a>>> {
        let found = self
            .find(id, buffer)
            .map_err(gix_error::Error::from_error)?;
        Ok(found.map(|kind| Data::new(buffer, kind, self.kind())))
    }
}

impl gix_object::FindHeader for Store {
    fn try_header(&self, id: &oid) -> Result<Option<gix_object::Header>> {
        self.header(id).map_err(gix_error::Error::from_error)
    }
}

impl gix_object::Exists for Store {
    fn exists(&self, id: &oid) -> bool {
        self.contains(id).unwrap_or(false)
    }
}

impl gix_object::Write for Store {
    fn write_buf(&self, object: Kind, from: &[u8]) -> Result<ObjectId> {
        Store::write(self, object, from).map_err(gix_error::Error::from_error)
    }

    fn write_buf_with_known_id(&self, object: Kind, from: &[u8], id: ObjectId) -> Result<ObjectId> {
        self.write_known(&id, object, from)
            .map_err(gix_error::Error::from_error)?;
        Ok(id)
    }

    fn write_stream(&self, kind: Kind, size: u64, from: &mut dyn Read) -> Result<ObjectId> {
        Store::write_stream(self, kind, size, from).map_err(gix_error::Error::from_error)
    }

    fn write_stream_with_known_id(
        &self,
        kind: Kind,
        size: u64,
        from: &mut dyn Read,
        _id: ObjectId,
    ) -> Result<ObjectId> {
        gix_object::Write::write_stream(self, kind, size, from)
    }
}
