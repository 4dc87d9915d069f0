//! Writes a split index and its shared index.

use crate::bytes::take;
use crate::entry::EntryRef;
use crate::error::{Error, ErrorKind, corrupt};
use crate::ewah::Bitmap;
use crate::extension;
use crate::index::Index;
use crate::outline::IndexOutline;
use crate::writer::{IndexContent, Writer};
use bstr::BStr;
use pronto_hash::{Kind, ObjectId};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// A shared index, which several split indexes may use (`sharedindex.<id>`).
#[derive(Debug)]
pub struct SharedIndex {
    entries: Index,
    id: ObjectId,
}

impl SharedIndex {
    /// Returns the path of the shared index `id` in the Git directory `directory`.
    pub fn path(directory: &Path, id: &ObjectId) -> PathBuf {
        directory.join(format!("sharedindex.{id}"))
    }

    /// Reads the shared index `id` in `directory`.
    ///
    /// # Errors
    /// Fails as [`Index::open`] does, and with [`ErrorKind::Corrupt`] if the checksum of the file
    /// is not `id`.
    pub fn open(directory: &Path, id: ObjectId, kind: Kind) -> Result<SharedIndex, Error> {
        let path = Self::path(directory, &id);
        let shared = IndexOutline::open(&path, kind)?;
        if shared.identity().is_none() {
            return Err(Error::new(ErrorKind::Io, "shared index file open failed").at_path(path));
        }
        let entries = Index::parse(shared).map_err(|error| error.at_path(&path))?;
        if entries.checksum() != Some(id) {
            return Err(corrupt(format!("broken index, expect {id}")).at_path(path));
        }
        Ok(SharedIndex { entries, id })
    }

    /// Returns the entries of the shared index.
    pub fn index(&self) -> &Index {
        &self.entries
    }

    /// Returns the checksum of the shared index, which is part of its file name.
    pub fn id(&self) -> ObjectId {
        self.id
    }
}

impl IndexOutline {
    /// Returns the id of the shared index, if this is a split index with a shared index.
    pub fn shared_id(&self) -> Option<ObjectId> {
        let mut data = self.extension(extension::LINK)?;
        let id = take(&mut data, self.hash_len()).map(ObjectId::from_bytes_or_panic)?;
        (!id.is_null()).then_some(id)
    }
}

impl Index {
    /// Returns the id of the shared index from which this index was read, if it is split and has
    /// one.
    pub fn shared_id(&self) -> Option<ObjectId> {
        self.outline().shared_id()
    }
}

impl Writer {
    /// Returns a new shared index for split indexes of this and later content, with its bytes. The
    /// file contains only the entries. It always has a checksum, independent of the configuration,
    /// because the checksum is part of its file name.
    ///
    /// # Errors
    /// Fails as [`encode`](Writer::encode) does.
    pub fn encode_shared(
        &self,
        content: &IndexContent<'_>,
    ) -> Result<(SharedIndex, Vec<u8>), Error> {
        let plain = IndexContent {
            base: content.base,
            version: content.version,
            timestamp: content.timestamp,
            ..IndexContent::new(content.kind, content.entries.iter().copied())
        };
        let writer = Writer {
            skip_hash: false,
            offset_table: Default::default(),
            ..self.clone()
        };
        let bytes = writer.encode(&plain)?;
        let entries = Index::from_bytes(bytes.clone(), content.kind)?;
        let Some(id) = entries.checksum() else {
            return Err(corrupt("index file smaller than expected"));
        };
        Ok((SharedIndex { entries, id }, bytes))
    }

    /// Returns the bytes of a split index with the differences of `content` from `shared`.
    ///
    /// # Errors
    /// Fails as [`encode`](Writer::encode) does.
    pub fn encode_split(
        &self,
        content: &IndexContent<'_>,
        shared: &SharedIndex,
    ) -> Result<Vec<u8>, Error> {
        let difference = SplitDifference::of(content, &shared.entries);
        let mut link = shared.id.as_slice().to_vec();
        Bitmap::new(difference.deleted).encode(&mut link);
        Bitmap::new(difference.replaced).encode(&mut link);
        let rows: Vec<EntryRef<'_>> = difference
            .replacements
            .into_iter()
            .chain(difference.added)
            .collect();
        self.encode_rows(content, &rows, Some(&link))
    }
}

/// Returns the number of entries of `content` whose path and stage are not in `shared`. Linear.
pub(crate) fn count_new(content: &IndexContent<'_>, shared: &SharedIndex) -> usize {
    SplitDifference::of(content, &shared.entries).added.len()
}

impl IndexContent<'_> {
    /// Returns whether more than `percent` of all entries are not in `shared`, so that a new shared
    /// index is due (`splitIndex.maxPercentChange`). Linear.
    pub fn outgrows(&self, shared: &SharedIndex, percent: usize) -> bool {
        match percent {
            0 => true,
            100.. => false,
            _ => self.entries.len() * percent < count_new(self, shared) * 100,
        }
    }
}

/// The differences of the entries from those of a shared index.
#[derive(Default)]
struct SplitDifference<'a> {
    /// The positions of deleted entries in the shared index.
    deleted: Vec<u32>,
    replaced: Vec<u32>,
    /// The replaced entries, without the path, which the shared entry contains.
    replacements: Vec<EntryRef<'a>>,
    added: Vec<EntryRef<'a>>,
}

impl<'a> SplitDifference<'a> {
    fn of(content: &IndexContent<'a>, shared: &Index) -> SplitDifference<'a> {
        let mut difference = SplitDifference::default();
        let mut at = 0;
        for entry in &content.entries {
            let mut found = Ordering::Greater;
            while at < shared.len() {
                found = shared.key(at).cmp(&entry.key());
                if found != Ordering::Less {
                    break;
                }
                difference.deleted.push(at as u32);
                at += 1;
            }
            if at == shared.len() || found == Ordering::Greater {
                difference.added.push(*entry);
                continue;
            }
            if !is_same(&shared.entry(at), entry) {
                difference.replaced.push(at as u32);
                difference.replacements.push(EntryRef {
                    path: BStr::new(b""),
                    ..*entry
                });
            }
            at += 1;
        }
        difference.deleted.extend(at as u32..shared.len() as u32);
        difference
    }
}

/// Returns whether the two entries have the same stored form.
fn is_same(one: &EntryRef<'_>, two: &EntryRef<'_>) -> bool {
    one.id == two.id
        && one.mode == two.mode
        && one.stat == two.stat
        && one.flags.to_stored() == two.flags.to_stored()
}
