//! Writes a split index: the differences from a shared file, and that file.

use crate::bytes::take;
use crate::entry::{EntryRef, order};
use crate::error::{Error, ErrorKind, corrupt};
use crate::ewah::Bitmap;
use crate::extension;
use crate::index::Index;
use crate::outline::Outline;
use crate::writer::{Content, Writer};
use bstr::BStr;
use pronto_hash::{Kind, ObjectId};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// The file that several split indexes may share.
#[derive(Debug)]
pub struct SharedIndex {
    entries: Index,
    id: ObjectId,
}

impl SharedIndex {
    /// Returns the path of the shared file `id` in the directory of a repository.
    pub fn path(directory: &Path, id: &ObjectId) -> PathBuf {
        directory.join(format!("sharedindex.{id}"))
    }

    /// Reads the shared file `id` in `directory`.
    ///
    /// # Errors
    /// As [`Index::open`]; [`ErrorKind::Corrupt`] if it is another one.
    pub fn open(directory: &Path, id: ObjectId, kind: Kind) -> Result<SharedIndex, Error> {
        let path = Self::path(directory, &id);
        let shared = Outline::open(&path, kind)?;
        if shared.identity().is_none() {
            return Err(Error::new(ErrorKind::Io, "shared index file open failed").at_path(path));
        }
        let entries = Index::parse(shared).map_err(|error| error.at_path(&path))?;
        if entries.checksum() != Some(id) {
            return Err(corrupt(format!("broken index, expect {id}")).at_path(path));
        }
        Ok(SharedIndex { entries, id })
    }

    /// Its entries.
    pub fn index(&self) -> &Index {
        &self.entries
    }

    /// The digest at its end, by which it is named.
    pub fn id(&self) -> ObjectId {
        self.id
    }
}

impl Outline {
    /// The shared file that it says how it differs from, if it is split and has one.
    pub fn shared_id(&self) -> Option<ObjectId> {
        let mut data = self.extension(extension::LINK)?;
        let id = take(&mut data, self.hash_len()).map(ObjectId::from_bytes_or_panic)?;
        (!id.is_null()).then_some(id)
    }
}

impl Index {
    /// The shared file that it was read from beside its own, if it is split and has one.
    pub fn shared_id(&self) -> Option<ObjectId> {
        self.outline().shared_id()
    }
}

/// Whether an index is written in one file or in two. Who encodes it decides by this between
/// [`encode`](Writer::encode) and [`encode_split`](Writer::encode_split).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splitting {
    /// As it was.
    #[default]
    AsRead,
    /// In two, of which the shared one is kept if it can be.
    Split,
    /// In two, of which the shared one is new.
    Renew,
    /// In one.
    Join,
}

impl Writer {
    /// The file that indexes of this content and of those that will follow can share: the entries
    /// and nothing else, with a digest whatever is configured, because it is named by that.
    ///
    /// # Errors
    /// As [`encode`](Writer::encode).
    pub fn encode_shared(&self, content: &Content<'_>) -> Result<(SharedIndex, Vec<u8>), Error> {
        let plain = Content {
            base: content.base,
            version: content.version,
            timestamp: content.timestamp,
            ..Content::new(content.kind, content.entries.iter().copied())
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

    /// The bytes of an index that says how `content` differs from `shared`.
    ///
    /// # Errors
    /// As [`encode`](Writer::encode).
    pub fn encode_split(
        &self,
        content: &Content<'_>,
        shared: &SharedIndex,
    ) -> Result<Vec<u8>, Error> {
        let difference = Difference::of(content, &shared.entries);
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

/// Returns the number of entries of `content` that are not in `shared`, whatever they hold. Linear.
pub(crate) fn count_new(content: &Content<'_>, shared: &SharedIndex) -> usize {
    Difference::of(content, &shared.entries).added.len()
}

impl Content<'_> {
    /// Returns whether more than `percent` of all entries are not in `shared`, so that a new shared
    /// file is due (`splitIndex.maxPercentChange`). Linear.
    pub fn outgrows(&self, shared: &SharedIndex, percent: usize) -> bool {
        match percent {
            0 => true,
            100.. => false,
            _ => self.entries.len() * percent < count_new(self, shared) * 100,
        }
    }
}

/// The differences of the entries of a shared file.
#[derive(Default)]
struct Difference<'a> {
    /// Positions in the shared file.
    deleted: Vec<u32>,
    replaced: Vec<u32>,
    /// The entries that replace them, without the path, which the shared entry has.
    replacements: Vec<EntryRef<'a>>,
    added: Vec<EntryRef<'a>>,
}

impl<'a> Difference<'a> {
    fn of(content: &Content<'a>, shared: &Index) -> Difference<'a> {
        let mut difference = Difference::default();
        let mut at = 0;
        let key = |entry: &EntryRef<'a>| (entry.path.as_ref() as &[u8], entry.stage());
        for entry in &content.entries {
            let mut found = Ordering::Greater;
            while at < shared.len() {
                found = order(shared.key(at), key(entry));
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

/// Whether a file holds the same of both.
fn is_same(one: &EntryRef<'_>, two: &EntryRef<'_>) -> bool {
    one.id == two.id
        && one.mode == two.mode
        && one.stat == two.stat
        && one.flags.to_stored() == two.flags.to_stored()
}
