//! Options of a store that Git reads from the configuration and the environment.

use std::path::PathBuf;

use pronto_config::shared::Sharing;
use pronto_hash::Kind;
use pronto_io::sync::SyncMethod;
use pronto_io::view::Access;

/// How to open a [`Store`](crate::Store). The default is Git's.
#[derive(Clone, Debug)]
pub struct Options {
    /// The hash of the ids (`extensions.objectFormat`).
    pub kind: Kind,
    /// Object directories to look in beside those of `info/alternates`
    /// (`GIT_ALTERNATE_OBJECT_DIRECTORIES`), as absolute paths.
    pub alternates: Vec<PathBuf>,
    /// How many bytes of delta bases are kept (`core.deltaBaseCacheLimit`).
    pub delta_base_cache_bytes: usize,
    /// Whether files are mapped.
    pub access: Access,
    /// Whether multi-pack-indexes are used (`core.multiPackIndex`).
    pub multi_pack_index: bool,
    /// The zlib level of loose objects, 0 to 9 (`core.looseCompression`).
    pub loose_compression: u8,
    /// How to wait for a loose object before it gets its name (`core.fsync`).
    pub fsync_loose: SyncMethod,
    /// Who may read what is written (`core.sharedRepository`).
    pub sharing: Sharing,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kind: Kind::Sha1,
            alternates: Vec::new(),
            delta_base_cache_bytes: 96 << 20,
            access: Access::Auto,
            multi_pack_index: true,
            loose_compression: 1,
            fsync_loose: SyncMethod::No,
            sharing: Sharing::Umask,
        }
    }
}
