//! Completes a thin pack: missing bases of deltas are read from the destination and appended.

use super::buffers::BufferPool;
use super::digesting::NumberedIds;
use super::forest::{Forest, RefDeltaGroup};
use super::kept::DeltaArena;
use super::resolve::{DeltaResolution, DeltaSubtree, Walker};
use super::spool::SpoolStorage;
use super::tables::{EntryBase, EntryTables};
use super::{ExistingObjects, StageContext};
use crate::entry::{Entry, EntryHeader};
use crate::error::{Error, ErrorKind};
use crate::temporary::TemporaryFile;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::error::IoContext as _;
use pronto_io::view::FileView;
use sirocco::Format;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

/// The arguments for completing a thin pack.
pub(super) struct Fix<'a> {
    pub(super) surroundings: &'a StageContext<'a>,
    pub(super) existing: Option<&'a dyn ExistingObjects>,
    pub(super) forest: &'a Forest,
    pub(super) arenas: &'a [DeltaArena],
    pub(super) view: &'a FileView,
}

/// A base that was appended to the pack.
struct AddedBase {
    offset: u64,
    crc: u32,
    kind: ObjectKind,
}

/// A thin pack that has been completed.
pub(super) struct CompletedPack {
    /// The ids of the appended bases and of the objects made from them.
    pub(super) ids: NumberedIds,
    pub(super) added: u32,
    /// The new checksum, if any base was appended.
    pub(super) checksum: Option<ObjectId>,
}

impl Fix<'_> {
    /// Appends the missing bases, resolves the deltas based on them, and updates the header and the
    /// trailer of the pack. Bases that do not exist are skipped.
    pub(super) fn run(
        &self,
        store: &SpoolStorage,
        tables: &mut EntryTables,
    ) -> Result<CompletedPack, Error> {
        let mut ids = Vec::new();
        let mut added = Vec::new();
        let mut tail = Tail {
            store,
            start: tables.end,
            len: 0,
        };
        if let Some(existing) = self.existing {
            let tables_before = &*tables;
            let work = DeltaResolution::new(
                self.surroundings,
                tables_before,
                self.forest,
                self.arenas,
                self.view,
            );
            let mut walker = Walker::new(&work);
            let mut pool = BufferPool::default();
            let mut base = Vec::new();
            for group in self.wanted(existing)? {
                let index = (tables_before.len() + added.len()) as u32;
                if index >= EntryBase::MOST_ENTRIES || group.base().is_some() {
                    continue;
                }
                let Some(kind) = existing.find(&group.id, &mut base)? else {
                    continue;
                };
                check_id(self.surroundings.kind, kind, &base, &group.id)?;
                added.push(tail.append(kind, &base)?);
                ids.push((index, group.id));
                group.claim(index);
                let mut content = pool.take(base.len(), kind);
                content.as_mut_slice().copy_from_slice(&base);
                walker.walk(DeltaSubtree {
                    content: Arc::new(content),
                    children: group.nodes.clone(),
                })?;
            }
            let mut found = walker.into_ids();
            for (index, id) in &ids {
                found.push(*index, id);
            }
            return Ok(CompletedPack {
                ids: found,
                added: added.len() as u32,
                checksum: self.mend(&tail, tables, &added)?,
            });
        }
        Ok(CompletedPack {
            ids: NumberedIds::new(self.surroundings.kind),
            added: 0,
            checksum: None,
        })
    }

    /// Returns the groups without a base whose base exists in the destination, in pack order.
    fn wanted(&self, existing: &dyn ExistingObjects) -> Result<Vec<&RefDeltaGroup>, Error> {
        let mut groups: Vec<&RefDeltaGroup> = self
            .forest
            .groups
            .iter()
            .filter(|group| group.base().is_none())
            .collect();
        groups.sort_by_key(|group| group.id);
        let ids: Vec<ObjectId> = groups.iter().map(|group| group.id).collect();
        let mut found = Vec::new();
        existing.contains_batch(&ids, &mut found)?;
        let mut wanted: Vec<&RefDeltaGroup> = found
            .iter()
            .filter_map(|at| groups.get(*at).copied())
            .collect();
        wanted.sort_by_key(|group| self.forest.nodes[group.nodes.start as usize].index);
        wanted.dedup_by_key(|group| group.id);
        Ok(wanted)
    }

    /// Writes the updated header and trailer.
    fn mend(
        &self,
        tail: &Tail<'_>,
        tables: &mut EntryTables,
        added: &[AddedBase],
    ) -> Result<Option<ObjectId>, Error> {
        if added.is_empty() {
            return Ok(None);
        }
        for added in added {
            tables.push(added.offset, EntryBase::NONE, Some(added.kind), 0);
            tables.crcs.push(added.crc);
        }
        tables.end += tail.len;
        let (count, end) = (tables.len() as u32, tables.end);
        let temporary = tail.file()?;
        let path = &temporary.path;
        rewrite(&temporary.file, self.surroundings.kind, |file| {
            file.seek(SeekFrom::Start(8))?;
            file.write_all(&count.to_be_bytes())?;
            file.set_len(end)
        })
        .context(ErrorKind::Io, UNABLE, path)
        .map(Some)
    }
}

const UNABLE: &str = "unable to complete thin pack";

/// The end of a thin pack, where entries overwrite the old trailer.
struct Tail<'a> {
    store: &'a SpoolStorage,
    start: u64,
    len: u64,
}

impl Tail<'_> {
    fn file(&self) -> Result<&TemporaryFile, Error> {
        match self.store {
            SpoolStorage::New(temporary) => Ok(temporary),
            SpoolStorage::Given(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "cannot complete a thin pack that is read from a file",
            )),
        }
    }

    fn append(&mut self, kind: ObjectKind, content: &[u8]) -> Result<AddedBase, Error> {
        let mut bytes = Vec::new();
        append(kind, content, &mut bytes);
        let temporary = self.file()?;
        let offset = self.start + self.len;
        let mut file = &temporary.file;
        (file.seek(SeekFrom::Start(offset)))
            .and_then(|_| file.write_all(&bytes))
            .context(ErrorKind::Io, UNABLE, &temporary.path)?;
        self.len += bytes.len() as u64;
        Ok(AddedBase {
            offset,
            crc: crc32fast::hash(&bytes),
            kind,
        })
    }
}

/// Updates the header of the file, hashes the whole file, and writes the checksum at the end.
fn rewrite(
    mut file: &std::fs::File,
    kind: Kind,
    change: impl FnOnce(&mut &std::fs::File) -> std::io::Result<()>,
) -> std::io::Result<ObjectId> {
    change(&mut file)?;
    let mut digester = TrailerDigester::new(kind);
    let mut buffer = vec![0; 1 << 20];
    file.seek(SeekFrom::Start(0))?;
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            break;
        }
        digester.update(&buffer[..len]);
    }
    let checksum = digester.finish();
    file.write_all(checksum.as_slice())?;
    Ok(checksum)
}

/// Appends an entry with the object as a non-delta.
fn append(kind: ObjectKind, content: &[u8], bytes: &mut Vec<u8>) {
    let entry = Entry {
        header: EntryHeader::Object(kind),
        size_bytes: content.len() as u64,
        header_len: 0,
    };
    entry.encode(bytes);
    bytes.extend(sirocco::compress(
        Format::Zlib,
        sirocco::deflate::Level::DEFAULT,
        content,
    ));
}

/// Checks that an object of the destination has the expected id.
fn check_id(hash: Kind, kind: ObjectKind, content: &[u8], id: &ObjectId) -> Result<(), Error> {
    let (header, header_len) = super::digesting::header(kind, content.len() as u64);
    match pronto_hash::digest(hash, &[&header[..header_len], content]) {
        Ok(found) if found == *id => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Corrupt,
            format!("local object {id} is corrupt"),
        )),
    }
}
