//! Notices about packs and their accompanying files.

use std::fmt;
use std::path::PathBuf;

use bstr::BString;

/// A notice about packs. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackNotice {
    /// The multi-pack-index has no objects, so that no bitmaps are written.
    NoObjectsForBitmaps,
    /// The new pack does not contain all objects, so that no bitmaps are written.
    PartialPack,
    /// The pack of this pack index is missing, so that the multi-pack-index omits it.
    MissingPack(PathBuf),
    /// This pack index cannot be opened, so that the multi-pack-index omits it.
    UnusableIndex(PathBuf),
    /// The preferred pack of this name does not exist (`--preferred-pack`).
    UnknownPreferredPack(BString),
    /// The multi-pack-index exists but is malformed.
    MalformedMultiPackIndex,
    /// This multi-pack-index is too small for its header.
    MultiPackIndexTooSmall(PathBuf),
    /// The checksum of the multi-pack-index is wrong, so that the file is ignored.
    MultiPackIndexChecksum,
    /// The chain of multi-pack-indexes lacks a layer.
    MissingLayer,
    /// Other processes write objects continuously, so that nothing is pruned.
    PruningGivenUp,
}

impl PackNotice {
    /// Returns whether Git reports the notice as an error.
    pub fn is_error(&self) -> bool {
        matches!(
            self,
            PackNotice::MalformedMultiPackIndex | PackNotice::MultiPackIndexTooSmall(_)
        )
    }
}

impl fmt::Display for PackNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackNotice::NoObjectsForBitmaps => {
                "refusing to write multi-pack .bitmap without any objects"
            }
            PackNotice::PartialPack => {
                "disabling bitmap writing, as some objects are not being packed"
            }
            PackNotice::MissingPack(path) => {
                return write!(f, "failed to add packfile '{}'", path.display());
            }
            PackNotice::UnusableIndex(path) => {
                return write!(f, "failed to open pack-index '{}'", path.display());
            }
            PackNotice::UnknownPreferredPack(name) => {
                return write!(f, "unknown preferred pack: '{name}'");
            }
            PackNotice::MalformedMultiPackIndex => {
                "multi-pack-index file exists, but failed to parse"
            }
            PackNotice::MultiPackIndexTooSmall(path) => {
                return write!(f, "multi-pack-index file {} is too small", path.display());
            }
            PackNotice::MultiPackIndexChecksum => {
                "ignoring existing multi-pack-index; checksum mismatch"
            }
            PackNotice::MissingLayer => "unable to find all multi-pack index files",
            PackNotice::PruningGivenUp => {
                "other processes keep writing objects; nothing was deleted"
            }
        })
    }
}
