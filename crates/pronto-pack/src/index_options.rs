//! Options to index a pack and to create its files.

use crate::idx::PackIndexVersion;
use pronto_hash::Kind;
use pronto_io::sync::SyncMethod;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of the indexer (`git index-pack`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash function of object ids (`--object-format`).
    pub kind: Kind,
    /// The number of worker threads; zero means the number of cores (`--threads`, `pack.threads`).
    pub threads: usize,
    /// The size in bytes above which a pack is refused (`--max-input-size`).
    pub max_input_size_bytes: Option<u64>,
    /// The size above which blobs that are not deltas are never held in memory
    /// (`core.bigFileThreshold`).
    pub big_file_threshold_bytes: u64,
    /// The size above which objects are refused, except for blobs that are never held in memory
    /// because of [`big_file_threshold_bytes`](Self::big_file_threshold_bytes).
    pub max_object_size_bytes: Option<u64>,
    /// The directory for blobs that are too large for memory; `None` to hold all of them in memory.
    pub in_files: Option<InFiles>,
    /// The memory for contents that wait to be used as delta bases, for all threads together.
    pub base_cache_bytes: usize,
    /// The memory for inflated deltas that wait for their base.
    pub kept_deltas_bytes: usize,
    /// The version of the index (`--index-version`); version 2 is written if version 1 is not
    /// sufficient.
    pub index_version: PackIndexVersion,
    /// The offset above which offsets take 64 bits in the index (`--index-version=VERSION,OFFSET`).
    pub index_offset_limit: u64,
    /// Write a reverse index, too (`--rev-index`, `pack.writeReverseIndex`).
    pub reverse_index: bool,
    /// Refuse input with bytes after the pack.
    pub must_end: bool,
    /// Append the missing bases of a thin pack (`--fix-thin`), if
    /// [`Existing`](crate::indexer::ExistingObjects) contains them.
    pub fix_thin: bool,
    /// Refuse a pack that contains an object twice (`--strict`).
    pub forbid_duplicates: bool,
    /// The method to flush the pack before it is renamed to its final name (`core.fsync`).
    pub sync: SyncMethod,
    /// The method to flush the other files before they are renamed to their final names
    /// (`core.fsync`).
    pub sync_indexes: SyncMethod,
    /// The content of a `.keep` file, which is written before the pack is visible (`--keep`).
    pub keep: Option<Vec<u8>>,
    /// The content of a `.promisor` file, which is written before the pack is visible
    /// (`--promisor`).
    pub promisor: Option<Vec<u8>>,
    /// The path of the pack; `None` for a path in the directory that contains the checksum. The
    /// file must not exist.
    pub pack_path: Option<PathBuf>,
    /// The prefix of the file names instead of `pack`; `-` and the checksum follow.
    pub name_prefix: Option<OsString>,
    /// The path of the index, with the reverse index beside it (`-o`); `None` for a path beside the
    /// pack. Existing files are replaced.
    pub index_path: Option<PathBuf>,
    /// The permissions of the files (`core.sharedRepository`); `None` for those of the umask.
    pub permissions: Option<u32>,
    /// The title of the progress of the first phase.
    pub title: &'static str,
    /// Show the number of received bytes and the rate in the progress of the first phase.
    pub show_bytes: bool,
    /// Show progress of the second phase, which resolves deltas.
    pub show_resolving: bool,
    /// Compare objects of the pack with existing objects of the same id.
    pub check_collisions: bool,
}

/// Options for blobs that are stored in unnamed files instead of memory: deltified blobs and their
/// bases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFiles {
    /// The directory in which the files are made.
    pub directory: PathBuf,
    /// The size in bytes above which a blob is stored in a file.
    pub from_bytes: u64,
    /// The size above which such blobs are refused, instead of [`Options::max_object_size_bytes`].
    pub most_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kind: Kind::Sha1,
            threads: 0,
            max_input_size_bytes: None,
            big_file_threshold_bytes: 512 << 20,
            max_object_size_bytes: None,
            in_files: None,
            base_cache_bytes: 64 << 20,
            kept_deltas_bytes: 96 << 20,
            index_version: PackIndexVersion::Two,
            index_offset_limit: u64::MAX,
            reverse_index: true,
            must_end: false,
            fix_thin: false,
            forbid_duplicates: false,
            sync: SyncMethod::Flush,
            sync_indexes: SyncMethod::Flush,
            keep: None,
            promisor: None,
            pack_path: None,
            name_prefix: None,
            index_path: None,
            permissions: None,
            title: RECEIVING,
            show_bytes: true,
            show_resolving: true,
            check_collisions: true,
        }
    }
}

/// The title of the first phase for a received pack.
pub const RECEIVING: &str = "Receiving objects";
/// The title of the first phase for a pack on disk.
pub const INDEXING: &str = "Indexing objects";
/// The title of the only phase for a pack that is unpacked into loose objects.
pub const UNPACKING: &str = "Unpacking objects";
