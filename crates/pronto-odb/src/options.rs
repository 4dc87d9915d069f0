//! Options of a store that Git reads from the configuration and the environment.

use std::path::PathBuf;

use pronto_config::shared::SharedPermissions;
use pronto_hash::Kind;
use pronto_io::sync::SyncMethod;
use pronto_io::view::ViewAccess;

/// Options for opening a [`Store`](crate::Store). The defaults are those of Git.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash function of object ids (`extensions.objectFormat`).
    pub kind: Kind,
    /// Additional object directories, besides those of `info/alternates`, as absolute paths
    /// (`GIT_ALTERNATE_OBJECT_DIRECTORIES`).
    pub alternates: Vec<PathBuf>,
    /// The largest size of the cache of delta bases in bytes (`core.deltaBaseCacheLimit`).
    pub delta_base_cache_bytes: usize,
    /// The method to access files: mapping or reading.
    pub access: ViewAccess,
    /// Whether multi-pack-indexes are used (`core.multiPackIndex`).
    pub multi_pack_index: bool,
    /// The zlib level of loose objects, 0 to 9 (`core.looseCompression`).
    pub loose_compression: u8,
    /// The method to flush a loose object before it is renamed to its final name (`core.fsync`,
    /// `core.fsyncMethod`).
    pub fsync_loose: SyncMethod,
    /// The permissions of written files (`core.sharedRepository`).
    pub sharing: SharedPermissions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kind: Kind::Sha1,
            alternates: Vec::new(),
            delta_base_cache_bytes: 96 << 20,
            access: ViewAccess::Auto,
            multi_pack_index: true,
            loose_compression: 1,
            fsync_loose: SyncMethod::No,
            sharing: SharedPermissions::Umask,
        }
    }
}
