//! Notices about packs and the files beside them.

use std::fmt;
use std::path::PathBuf;

use bstr::BString;

/// A notice about packs. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackNotice {
    /// A multi-pack-index without objects gets no bitmaps.
    NoObjectsForBitmaps,
    /// Bitmaps are not written, because the new pack does not have all objects.
    PartialPack,
    /// The pack of this index is missing, so that a multi-pack-index does not cover it.
    MissingPack(PathBuf),
    /// This index of a pack cannot be opened, so that a multi-pack-index does not cover it.
    UnusableIndex(PathBuf),
    /// There is no such pack to be preferred.
    UnknownPreferredPack(BString),
    /// The multi-pack-index exists and cannot be read.
    MalformedMultiPackIndex,
    /// This multi-pack-index is too small for its header.
    MultiPackIndexTooSmall(PathBuf),
    /// The checksum of the multi-pack-index is wrong, so that it is not used.
    MultiPackIndexChecksum,
    /// A chain of multi-pack-indexes lacks a layer.
    MissingLayer,
    /// Other processes write objects all the time, so that nothing is pruned.
    PruningGivenUp,
}

impl PackNotice {
    /// Whether Git reports it as an error.
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
                "other processes are writing objects all the time; what was to be deleted is kept"
            }
        })
    }
}
