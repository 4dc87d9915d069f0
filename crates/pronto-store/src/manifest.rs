//! The manifest of a generation: the list of all data of a repository at a point in time.
//!
//! The format is described in `docs/design/store.md`. The encoding of a manifest is unique, and its last line
//! contains the digest of all preceding bytes.

mod decode;
mod encode;

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use pronto_hash::{Kind, ObjectId};

use crate::digest::Digest;
use crate::name::{self, UploadId};
use crate::{Error, ErrorKind, Result, hex};

/// The largest number of packs of a generation.
pub(crate) const MOST_PACKS: usize = 20_000;

/// The largest number of tables of a generation.
pub(crate) const MOST_TABLES: usize = 1_000;

/// The largest number of layers of a generation.
pub(crate) const MOST_LAYERS: usize = 1_000;

/// The largest number of objects that a generation drops.
pub(crate) const MOST_DROPS: usize = 8 * MOST_PACKS;

/// The largest size in bytes of the configuration.
pub(crate) const MOST_CONFIG_BYTES: usize = 64 << 10;

/// The largest total size in bytes of all tables in the manifest itself.
pub(crate) const MOST_INLINE_BYTES: usize = 32 << 10;

/// The largest total size in bytes of all objects of a generation. The data structures that a server prepares
/// for a pack grow with the size in the manifest, before any byte of the pack is read.
pub(crate) const MOST_BYTES: u64 = 64 << 40;

/// The largest number of a generation, which cannot be reached, and is far from the end of the value range.
const GREATEST_NUMBER: u64 = 1 << 62;

/// The smallest grace period in seconds. Requests that the store applies late must be complete after this
/// time.
pub(crate) const LEAST_GRACE_SECONDS: u64 = 3600;

/// A random number of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The times for which unused objects are kept. They are the same for all servers, because they are part of
/// the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The time in seconds for which a generation is kept after the next one was created. The time is at
    /// least `grace_seconds`.
    pub retention_seconds: u64,
    /// The time in seconds after which an object that no generation references is deleted. The time is at
    /// least 3,600 seconds, and no request may take longer.
    pub grace_seconds: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        RetentionPolicy {
            retention_seconds: 7 * 24 * 3600,
            grace_seconds: 24 * 3600,
        }
    }
}

impl RetentionPolicy {
    /// Returns whether the times are long enough for safe deletion.
    pub fn is_safe(&self) -> bool {
        self.grace_seconds >= LEAST_GRACE_SECONDS && self.retention_seconds >= self.grace_seconds
    }
}

/// The kind of a file of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// The pack (`.pack`).
    Pack,
    /// The index of the pack (`.idx`).
    Index,
    /// The reverse index (`.rev`).
    Reverse,
    /// The bitmap (`.bitmap`).
    Bitmap,
    /// The modification times of unreachable objects (`.mtimes`).
    Times,
    /// The digests of the blocks of the pack.
    Sums,
}

impl FileKind {
    /// All kinds, in the order in which a manifest lists them.
    pub const ALL: [FileKind; 6] = [
        FileKind::Pack,
        FileKind::Index,
        FileKind::Reverse,
        FileKind::Bitmap,
        FileKind::Times,
        FileKind::Sums,
    ];

    /// Returns the file name extension of the kind.
    pub fn extension(self) -> &'static str {
        match self {
            FileKind::Pack => "pack",
            FileKind::Index => "idx",
            FileKind::Reverse => "rev",
            FileKind::Bitmap => "bitmap",
            FileKind::Times => "mtimes",
            FileKind::Sums => "sum",
        }
    }
}

/// An object of the store that a generation references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreObject {
    /// The name without the prefix of the repository.
    pub name: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The digest of the content.
    pub digest: Digest,
}

/// A file of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The kind.
    pub kind: FileKind,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The digest of the content.
    pub digest: Digest,
}

/// A pack and its accompanying files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPack {
    /// The checksum in the file name of the pack.
    pub id: ObjectId,
    /// The upload that wrote its files.
    pub upload: UploadId,
    /// The number of objects.
    pub objects: u32,
    /// Whether the pack was received from a promisor remote.
    pub is_promisor: bool,
    /// The files, sorted by kind.
    pub files: Vec<StoredFile>,
}

impl StoredPack {
    /// Returns the objects of the store for the files of the pack.
    pub fn objects(&self) -> impl Iterator<Item = StoreObject> + '_ {
        self.files.iter().map(|file| StoreObject {
            name: name::pack(&self.id, self.upload, file.kind.extension()),
            size_bytes: file.size_bytes,
            digest: file.digest,
        })
    }

    /// Returns the size of the pack file in bytes.
    pub fn size_bytes(&self) -> u64 {
        let pack = self.files.iter().find(|file| file.kind == FileKind::Pack);
        pack.map_or(0, |file| file.size_bytes)
    }
}

/// The kind of a [`RepositoryLayer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LayerKind {
    /// A layer of the commit-graph. The base layer is first.
    Graph,
    /// A multi-pack-index.
    MultiPackIndex,
    /// A bundle of the whole repository.
    Bundle,
}

impl LayerKind {
    const ALL: [LayerKind; 3] = [
        LayerKind::Graph,
        LayerKind::MultiPackIndex,
        LayerKind::Bundle,
    ];

    fn word(self) -> &'static str {
        match self {
            LayerKind::Graph => "graph",
            LayerKind::MultiPackIndex => "midx",
            LayerKind::Bundle => "bundle",
        }
    }
}

/// A file with data about the whole repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryLayer {
    /// The kind.
    pub kind: LayerKind,
    /// The checksum in the file name of the layer.
    pub id: ObjectId,
    /// The upload that wrote it.
    pub upload: UploadId,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The digest of the content.
    pub digest: Digest,
}

impl RepositoryLayer {
    /// Returns the object of the store that contains the layer.
    pub fn object(&self) -> StoreObject {
        let word = self.kind.word();
        StoreObject {
            name: format!("{word}/{}-{}.{word}", self.id, self.upload),
            size_bytes: self.size_bytes,
            digest: self.digest,
        }
    }
}

/// The storage of the bytes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableStorage {
    /// An object of the store with this size and digest.
    Object {
        /// The size in bytes.
        size_bytes: u64,
        /// The digest of the content.
        digest: Digest,
    },
    /// The bytes in the manifest itself.
    Inline(Bytes),
}

/// A table of refs (reftable).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRecord {
    /// The smallest update index of its records.
    pub min: u64,
    /// The largest update index of its records.
    pub max: u64,
    /// The random number in the name of the table.
    pub upload: UploadId,
    /// The storage of the bytes.
    pub place: TableStorage,
}

impl TableRecord {
    /// Returns the object of the store, if the table is not in the manifest.
    pub fn object(&self) -> Option<StoreObject> {
        match self.place {
            TableStorage::Inline(_) => None,
            TableStorage::Object { size_bytes, digest } => Some(StoreObject {
                name: name::table(self.upload),
                size_bytes,
                digest,
            }),
        }
    }

    /// Returns the size in bytes.
    pub fn size_bytes(&self) -> u64 {
        match &self.place {
            TableStorage::Inline(bytes) => bytes.len() as u64,
            TableStorage::Object { size_bytes, .. } => *size_bytes,
        }
    }
}

/// The content of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// A random number, chosen when the repository was created.
    pub repository: Nonce,
    /// The number of the generation, starting at 1.
    pub number: u64,
    /// The digest of the previous manifest, or `None` for the first generation.
    pub replaces: Option<Digest>,
    /// The random id of the process that wrote the manifest.
    pub writer: u64,
    /// A random number, chosen for this generation.
    pub nonce: Nonce,
    /// The time of the writer's clock, in milliseconds since 1970.
    pub time_ms: u64,
    /// The hash function of object ids.
    pub hash: Kind,
    /// The times for which unused objects are kept.
    pub policy: RetentionPolicy,
    /// The number of the newest earlier generation that drops objects, or 0.
    pub dropped: u64,
    /// The number of the newest generation, which may be this one, that lacks Git objects of its predecessor,
    /// or 0.
    pub pruned: u64,
    /// Whether the repository is removed. A removed repository has no objects and no refs, and the next
    /// generation creates it again.
    pub is_removed: bool,
    /// The configuration in Git's format, without the settings that the object format implies.
    pub config: Bytes,
    /// The packs, sorted by upload.
    pub packs: Vec<StoredPack>,
    /// The layers, in their order within each kind.
    pub layers: Vec<RepositoryLayer>,
    /// The tables, the oldest first.
    pub tables: Vec<TableRecord>,
    /// The sorted names of objects of the previous generation that this generation does not reference.
    pub drops: Vec<String>,
}

impl Manifest {
    /// Returns the objects of the store that the generation references.
    pub fn objects(&self) -> impl Iterator<Item = StoreObject> + '_ {
        let packs = self.packs.iter().flat_map(StoredPack::objects);
        let layers = self.layers.iter().map(RepositoryLayer::object);
        packs
            .chain(layers)
            .chain(self.tables.iter().filter_map(TableRecord::object))
    }

    /// Returns the total size of all objects in bytes, saturated at the largest value.
    fn size_bytes(&self) -> u64 {
        let packs = self.packs.iter().flat_map(|pack| &pack.files);
        let sizes = packs.map(|file| file.size_bytes);
        let layers = self.layers.iter().map(|layer| layer.size_bytes);
        let tables = self.tables.iter().map(TableRecord::size_bytes);
        sizes
            .chain(layers)
            .chain(tables)
            .fold(0, u64::saturating_add)
    }

    /// Returns the total size in bytes of the tables in the manifest itself.
    pub fn inline_bytes(&self) -> usize {
        let inline = self.tables.iter().map(|table| match &table.place {
            TableStorage::Inline(bytes) => bytes.len(),
            TableStorage::Object { .. } => 0,
        });
        inline.sum()
    }

    /// Sets the names of the objects that this manifest drops from the previous one.
    pub(crate) fn drop_of(&mut self, before: &Manifest) {
        let kept: BTreeSet<String> = self.objects().map(|object| object.name).collect();
        let gone = before.objects().map(|object| object.name);
        self.drops = gone.filter(|name| !kept.contains(name)).collect();
        self.drops.sort_unstable();
        self.dropped = match before.drops.is_empty() {
            true => before.dropped,
            false => before.number,
        };
    }

    /// Returns the update index of the next table.
    pub fn next_update_index(&self) -> u64 {
        let newest = self.tables.iter().map(|table| table.max).max();
        newest.unwrap_or(0).saturating_add(1)
    }
}

fn corrupt(message: &str, offset: usize) -> Error {
    Error::new(ErrorKind::Corrupt, message).at_offset(offset as u64)
}

/// Checks the conditions that the syntax does not ensure.
fn check(manifest: &Manifest) -> Result<(), &'static str> {
    let Manifest {
        number,
        replaces,
        dropped,
        pruned,
        ..
    } = manifest;
    if *number == 0 || replaces.is_none() != (*number == 1) {
        return Err("its number does not match the generation that it replaces");
    }
    if *number > GREATEST_NUMBER {
        return Err("its number is too large");
    }
    if dropped >= number {
        return Err("the number in 'dropped' is not smaller than its own");
    }
    if pruned > number {
        return Err("the number in 'pruned' is larger than its own");
    }
    let has_content = !manifest.packs.is_empty()
        || !manifest.layers.is_empty()
        || !manifest.tables.is_empty()
        || !manifest.config.is_empty();
    if manifest.is_removed && has_content {
        return Err("a removed repository has objects or refs");
    }
    if !manifest.policy.is_safe() {
        return Err("the grace period or the retention is too short");
    }
    if !manifest.packs.is_sorted_by(|a, b| a.upload < b.upload) {
        return Err("the packs are not sorted");
    }
    if !manifest.layers.is_sorted_by_key(|layer| layer.kind) {
        return Err("the layers are not sorted");
    }
    let ascend = |pair: &[TableRecord]| pair[0].max < pair[1].min;
    if manifest.tables.iter().any(|table| table.min > table.max)
        || !manifest.tables.windows(2).all(ascend)
    {
        return Err("the update indexes of the tables do not ascend");
    }
    if manifest.size_bytes() > MOST_BYTES {
        return Err("its objects are too large in total");
    }
    if manifest.inline_bytes() > MOST_INLINE_BYTES {
        return Err("its embedded tables are too large in total");
    }
    let is_kind = |id: &ObjectId| id.kind() == manifest.hash;
    if !manifest.packs.iter().all(|pack| is_kind(&pack.id))
        || !manifest.layers.iter().all(|layer| is_kind(&layer.id))
    {
        return Err("a pack or layer id has another object format");
    }
    let sound = |pack: &StoredPack| {
        let kinds = || pack.files.iter().map(|file| file.kind);
        kinds().is_sorted_by(|a, b| a < b)
            && kinds().any(|kind| kind == FileKind::Pack)
            && kinds().any(|kind| kind == FileKind::Index)
    };
    if !manifest.packs.iter().all(sound) {
        return Err("the files of a pack are missing or not sorted");
    }
    match manifest.drops.is_sorted_by(|a, b| a < b) {
        true => Ok(()),
        false => Err("the dropped objects are not sorted"),
    }
}

#[cfg(test)]
mod tests;
