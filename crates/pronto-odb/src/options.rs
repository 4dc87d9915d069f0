//! Options of a store that Git reads from the configuration and the environment.

use std::path::PathBuf;

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

/// Who may use what is written: the permissions of new files and directories, as
/// `core.sharedRepository` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The permissions that the umask leaves.
    #[default]
    Umask,
    /// The group too.
    Group,
    /// Everybody may read, and the group write.
    Everybody,
    /// Exactly these bits, whatever the umask.
    Mode(u32),
}

impl Sharing {
    /// The permissions that something made with `mode` gets, or `None` when they stay as the
    /// umask left them.
    pub fn adjust(self, mode: u32, is_directory: bool) -> Option<u32> {
        let (mut bits, exact) = match self {
            Sharing::Umask => return None,
            Sharing::Group => (0o660, false),
            Sharing::Everybody => (0o664, false),
            Sharing::Mode(bits) => (bits, true),
        };
        if mode & 0o200 == 0 {
            bits &= !0o222;
        }
        if mode & 0o100 != 0 {
            // Who may read may also execute, or enter.
            bits |= (bits & 0o444) >> 2;
        }
        let mut adjusted = match exact {
            true => (mode & !0o777) | bits,
            false => mode | bits,
        };
        if is_directory {
            adjusted |= 0o2000;
        }
        Some(adjusted)
    }
}
