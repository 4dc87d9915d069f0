//! The set of reachable objects.

use std::collections::HashSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_repository::expiry::ExpiryAge;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::named::{ReferencedObject, named_by};
use super::tips::TipReader;
use super::{check, has_expired, loose};
use crate::pack_objects::known_packs;

/// The reachable objects found so far. The set grows each time the roots of reachability are read.
pub(crate) struct ReachableMarks<'a> {
    repository: &'a Repository,
    watch: &'a Watch<'a>,
    store: Store,
    tips: TipReader<'a>,
    seen: HashSet<ObjectId>,
    /// The objects that were found from roots that may be incomplete. If another root that must be
    /// complete reaches them, they are walked again.
    partial: HashSet<ObjectId>,
    buffer: Vec<u8>,
}

/// The treatment of missing objects in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingInWalk {
    Fails,
    Passes,
}

impl<'a> ReachableMarks<'a> {
    pub(crate) fn new(
        repository: &'a Repository,
        watch: &'a Watch<'a>,
    ) -> Result<ReachableMarks<'a>> {
        Ok(ReachableMarks {
            store: repository.objects()?.without_replacements(),
            tips: TipReader::new(repository),
            repository,
            watch,
            seen: HashSet::new(),
            partial: HashSet::new(),
            buffer: Vec::new(),
        })
    }

    pub(crate) fn contains(&self, id: &oid) -> bool {
        self.seen.contains(id) || self.partial.contains(id)
    }

    /// Reads refs, reflogs, indexes and operations in progress, and walks from new roots. Returns the
    /// objects found since the last call.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if a root cannot be read, or
    /// [`ErrorKind::Object`] if an object is missing or malformed.
    pub(crate) fn look_again(&mut self) -> Result<Vec<ObjectId>> {
        let found = self.tips.look()?;
        let mut new = Vec::new();
        if self.seen.is_empty() {
            self.take_bitmaps(&found.strict)?;
        }
        self.walk(found.strict, MissingInWalk::Fails, &mut new)?;
        for id in found.blobs {
            if self.seen.insert(id) {
                new.push(id);
            }
        }
        self.walk(found.lenient, MissingInWalk::Passes, &mut new)?;
        Ok(new)
    }

    /// Adds the objects that the bitmaps of `tips` list, without a walk.
    fn take_bitmaps(&mut self, tips: &[ObjectId]) -> Result<()> {
        let Some(bitmaps) = self.repository.usable_bitmaps(&self.store)? else {
            return Ok(());
        };
        let bitmaps = Some(&bitmaps);
        let found =
            self.repository
                .reachable_by(bitmaps.map(AsRef::as_ref), tips, &[], self.watch)?;
        self.seen.extend(found.packed);
        self.seen.extend(found.others);
        Ok(())
    }

    /// Adds the objects reachable from `tips`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object is missing or malformed.
    pub(crate) fn lead_from(&mut self, tips: &[ObjectId]) -> Result<()> {
        self.walk(tips.to_vec(), MissingInWalk::Fails, &mut Vec::new())
    }

    /// Adds the objects reachable from all loose objects and packs of this repository that have not
    /// expired. Missing objects are skipped.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a directory, a pack index or an object
    /// cannot be read.
    pub(crate) fn lead_from_recent(&mut self, expire: ExpiryAge) -> Result<()> {
        if expire == ExpiryAge::Now {
            return Ok(());
        }
        let mut tips = Vec::new();
        loose::each(self.store.path(), &mut |found| {
            if let loose::LooseFile::Object { id, path } = found
                && let Ok(modified) = path.metadata().and_then(|found| found.modified())
                && !has_expired(expire, modified)
            {
                tips.push(id);
            }
            Ok(())
        })?;
        for pack in known_packs(self.repository)? {
            let Ok(modified) = pack.path.metadata().and_then(|found| found.modified()) else {
                continue;
            };
            if !pack.is_own || has_expired(expire, modified) {
                continue;
            }
            let dates = crate::last_used::dates(&pack, self.store.kind())?;
            for (row, id) in (0..).zip(pack.ids()?) {
                let date = dates.as_ref().map(|dates| dates.at(row)).transpose()?;
                if date.is_none_or(|date| !has_expired(expire, date)) {
                    tips.push(id);
                }
            }
        }
        self.walk(tips, MissingInWalk::Passes, &mut Vec::new())
    }

    /// Does the same as [`lead_from`](Self::lead_from), but skips missing objects.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Interrupted`].
    pub(crate) fn lead_loosely_from(&mut self, tips: Vec<ObjectId>) -> Result<()> {
        self.walk(tips, MissingInWalk::Passes, &mut Vec::new())
    }

    /// Marks `chosen`, which must contain all objects reachable from them, as found.
    pub(crate) fn assume(&mut self, chosen: HashSet<ObjectId>) {
        self.seen = chosen;
    }

    fn walk(
        &mut self,
        mut rest: Vec<ObjectId>,
        missing: MissingInWalk,
        new: &mut Vec<ObjectId>,
    ) -> Result<()> {
        let mut count = 0u32;
        while let Some(id) = rest.pop() {
            let is_new = !self.seen.contains(&id)
                && match missing {
                    MissingInWalk::Fails => self.seen.insert(id),
                    MissingInWalk::Passes => self.partial.insert(id),
                };
            if !is_new {
                continue;
            }
            count = count.wrapping_add(1);
            if count.is_multiple_of(1024) {
                check(self.watch)?;
            }
            new.push(id);
            match self.follow(&id, &mut rest, new) {
                Err(_) if missing == MissingInWalk::Passes => {}
                followed => followed?,
            }
        }
        Ok(())
    }

    /// Adds the objects that `id` references to `rest`. Blobs of trees, which reference no objects, are
    /// added to `new` at once.
    fn follow(
        &mut self,
        id: &ObjectId,
        rest: &mut Vec<ObjectId>,
        new: &mut Vec<ObjectId>,
    ) -> Result<()> {
        let header = self.store.header(id).map_err(from_odb)?;
        let Some(header) = header else {
            let message = format!("bad object {id}");
            return Err(Error::new(ErrorKind::MissingObject, message));
        };
        if header.kind == ObjectKind::Blob {
            return Ok(());
        }
        let mut content = std::mem::take(&mut self.buffer);
        let found = self.store.find(id, &mut content).map_err(from_odb)?;
        let is_cut = found == Some(ObjectKind::Commit)
            && self.repository.shallow_commits()?.binary_search(id).is_ok();
        let mut blobs = Vec::new();
        let is_whole = found.is_some_and(|kind| {
            named_by(kind, &content, id.kind(), &mut |named| match named {
                ReferencedObject::Parent(_) if is_cut => {}
                ReferencedObject::Parent(id) | ReferencedObject::Other(id) => rest.push(id),
                ReferencedObject::Blob(id) => blobs.push(id),
            })
        });
        self.buffer = content;
        if !is_whole {
            let message = format!("unable to parse object {id}");
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        for blob in blobs {
            if self.seen.insert(blob) {
                new.push(blob);
            }
        }
        Ok(())
    }

    /// Returns the object store without replacements.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

impl crate::pack_objects::ExistingPack {
    /// Returns the ids that the index of the pack lists, in order.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
    pub(crate) fn ids(&self) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::with_capacity(self.index.len() as usize);
        let scanned = (self.index).scan_ids(0..self.index.len(), |id| ids.push(id.to_owned()));
        scanned.map_err(from_pack)?;
        Ok(ids)
    }
}
