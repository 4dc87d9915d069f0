//! Options for indexing a pack and for making its files.

use crate::idx::Version;
use pronto_hash::Kind;
use pronto_io::sync::SyncMethod;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of indexing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash of the repository.
    pub kind: Kind,
    /// The number of computing threads; zero for as many as there are cores.
    pub threads: usize,
    /// Refuses packs of more bytes than this.
    pub max_input_size_bytes: Option<u64>,
    /// Whole blobs larger than this are never held in memory (`core.bigFileThreshold`).
    pub big_file_threshold_bytes: u64,
    /// Refuses objects larger than this, but for blobs that are not held: those stored whole above
    /// [`big_file_threshold_bytes`](Self::big_file_threshold_bytes).
    pub max_object_size_bytes: Option<u64>,
    /// The directory for blobs that are too large for memory; `None` if all are held in memory.
    pub in_files: Option<InFiles>,
    /// The memory for contents that wait to be a base, in all threads together.
    pub base_cache_bytes: usize,
    /// The memory for inflated deltas that wait for their base.
    pub kept_deltas_bytes: usize,
    /// The version of the index; 2 is written where 1 cannot do.
    pub index_version: Version,
    /// Offsets above this take 64 bits in the index.
    pub index_offset_limit: u64,
    /// Writes a reverse index too (`pack.writeReverseIndex`).
    pub reverse_index: bool,
    /// Whether input that continues after the pack is refused.
    pub must_end: bool,
    /// Adds the bases that a thin pack lacks, if [`Existing`](crate::indexer::Existing) has them.
    pub fix_thin: bool,
    /// Refuses a pack that holds an object twice.
    pub forbid_duplicates: bool,
    /// The way to flush the pack before it gets its name.
    pub sync: SyncMethod,
    /// The way to flush the other files before they get their names.
    pub sync_indexes: SyncMethod,
    /// Writes a `.keep` file with this in it, first of all.
    pub keep: Option<Vec<u8>>,
    /// Writes a `.promisor` file with this in it, first of all.
    pub promisor: Option<Vec<u8>>,
    /// The path of the pack, if it is not named by its checksum in the directory. It must not
    /// exist.
    pub pack_path: Option<PathBuf>,
    /// The prefix of the names of the files, in place of `pack`; `-` and the checksum follow.
    pub name_prefix: Option<OsString>,
    /// The path of the index, with the reverse index beside it, if they are not beside the pack.
    /// Existing files are replaced.
    pub index_path: Option<PathBuf>,
    /// The permissions of what is written, if not those that the umask leaves.
    pub permissions: Option<u32>,
    /// The title of the first phase.
    pub title: &'static str,
    /// Whether the first phase counts bytes too, for a rate.
    pub show_bytes: bool,
    /// Whether the second phase, which resolves deltas, has separate progress.
    pub show_resolving: bool,
    /// Whether objects that exist already are compared with those of the pack.
    pub check_collisions: bool,
}

/// Blobs that deltas make, or are made of, in files without a name rather than in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFiles {
    /// The directory in which the files are made.
    pub directory: PathBuf,
    /// Blobs of more bytes than this go there.
    pub from_bytes: u64,
    /// Refuses those that are larger, in place of [`Options::max_object_size_bytes`].
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
            index_version: Version::Two,
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

/// The title of the first phase for a pack that comes from elsewhere.
pub const RECEIVING: &str = "Receiving objects";
/// The title of the first phase for a pack that is on the disk.
pub const INDEXING: &str = "Indexing objects";
/// The title of the only phase for a pack that becomes loose objects.
pub const UNPACKING: &str = "Unpacking objects";
