//! Conversions of errors of lower crates into errors of the repository.

use crate::{Error, ErrorKind};

/// Converts an error of the object store, and keeps its kind where there is an equivalent.
#[cold]
pub fn from_odb(error: pronto_odb::Error) -> Error {
    use pronto_odb::ErrorKind as Below;
    error.map_kind(|kind| match kind {
        Below::Interrupted => ErrorKind::Interrupted,
        Below::Io => ErrorKind::Io,
        Below::Rejected => ErrorKind::Rejected,
        Below::PackTooLarge => ErrorKind::PackTooLarge,
        Below::Missing => ErrorKind::MissingObject,
        Below::Corrupt | Below::UnknownType => ErrorKind::Corrupt,
        _ => ErrorKind::Object,
    })
}

/// Converts an error of packs, or of the files beside packs, and keeps its kind where there is an
/// equivalent.
#[cold]
pub fn from_pack(error: pronto_pack::Error) -> Error {
    use pronto_pack::ErrorKind as Below;
    error.map_kind(|kind| match kind {
        Below::Interrupted => ErrorKind::Interrupted,
        Below::Io => ErrorKind::Io,
        Below::Rejected | Below::RejectedBlob { .. } => ErrorKind::Rejected,
        Below::BrokenLink => ErrorKind::BrokenLink,
        Below::PackTooLarge => ErrorKind::PackTooLarge,
        Below::Missing | Below::Unresolved => ErrorKind::MissingObject,
        Below::Corrupt
        | Below::NotAPack
        | Below::UnknownType { .. }
        | Below::Inflate
        | Below::BaseOffset
        | Below::BaseSize
        | Below::DeltaOpcode
        | Below::FanoutOrder
        | Below::IndexSize
        | Below::Truncated
        | Below::NoHeader
        | Below::Checksum
        | Below::Trailing
        | Below::Duplicate => ErrorKind::Corrupt,
        _ => ErrorKind::Object,
    })
}

/// Converts an error of the worktree crate, and keeps its kind where there is an equivalent.
pub fn from_worktree(error: pronto_worktree::Error) -> Error {
    error.map_kind(ErrorKind::from)
}

/// Converts an error of the index file, and keeps its kind where there is an equivalent.
pub fn from_index(error: pronto_index::Error) -> Error {
    use pronto_index::ErrorKind as Below;
    error.map_kind(|kind| match kind {
        Below::Locked => ErrorKind::Locked,
        Below::Io => ErrorKind::Io,
        Below::Corrupt | Below::Checksum => ErrorKind::Corrupt,
        _ => ErrorKind::Worktree,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind to which `lift` converts an error of `kind`.
    fn lifted<K>(kind: K, lift: fn(pronto_io::error::Error<K>) -> Error) -> ErrorKind {
        lift(pronto_io::error::Error::new(kind, "an error")).kind()
    }

    #[test]
    fn kinds_of_the_object_store_stay_apart() {
        use pronto_odb::ErrorKind as Below;
        for (below, kind) in [
            (Below::Io, ErrorKind::Io),
            (Below::Interrupted, ErrorKind::Interrupted),
            (Below::Missing, ErrorKind::MissingObject),
            (Below::Corrupt, ErrorKind::Corrupt),
            (Below::UnknownType, ErrorKind::Corrupt),
            (Below::Rejected, ErrorKind::Rejected),
            (Below::PackTooLarge, ErrorKind::PackTooLarge),
            (Below::Collision, ErrorKind::Object),
        ] {
            assert_eq!(lifted(below, from_odb), kind, "{below:?}");
        }
    }

    #[test]
    fn kinds_of_packs_stay_apart() {
        use pronto_pack::ErrorKind as Below;
        for (below, kind) in [
            (Below::Io, ErrorKind::Io),
            (Below::Interrupted, ErrorKind::Interrupted),
            (Below::Missing, ErrorKind::MissingObject),
            (Below::Unresolved, ErrorKind::MissingObject),
            (Below::Corrupt, ErrorKind::Corrupt),
            (Below::Truncated, ErrorKind::Corrupt),
            (Below::Checksum, ErrorKind::Corrupt),
            (Below::BrokenLink, ErrorKind::BrokenLink),
            (Below::Rejected, ErrorKind::Rejected),
            (Below::PackTooLarge, ErrorKind::PackTooLarge),
        ] {
            assert_eq!(lifted(below, from_pack), kind, "{below:?}");
        }
    }

    #[test]
    fn kinds_of_the_worktree_stay_apart() {
        use pronto_worktree::ErrorKind as Below;
        for (below, kind) in [
            (Below::Io, ErrorKind::Io),
            (Below::UnreadableObject, ErrorKind::Io),
            (Below::Interrupted, ErrorKind::Interrupted),
            (Below::MissingObject, ErrorKind::MissingObject),
            (Below::CorruptObject, ErrorKind::Corrupt),
            (Below::HostilePath, ErrorKind::Hostile),
            (Below::WouldLose, ErrorKind::Refused),
            (Below::Filter, ErrorKind::Worktree),
        ] {
            assert_eq!(lifted(below, from_worktree), kind, "{below:?}");
        }
    }

    #[test]
    fn kinds_of_the_index_stay_apart() {
        use pronto_index::ErrorKind as Below;
        for (below, kind) in [
            (Below::Io, ErrorKind::Io),
            (Below::Locked, ErrorKind::Locked),
            (Below::Corrupt, ErrorKind::Corrupt),
            (Below::Checksum, ErrorKind::Corrupt),
            (Below::Unsupported, ErrorKind::Worktree),
        ] {
            assert_eq!(lifted(below, from_index), kind, "{below:?}");
        }
    }
}
