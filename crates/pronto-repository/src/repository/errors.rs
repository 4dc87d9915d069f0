//! Conversions of errors of lower crates into errors of the repository.

use crate::{Error, ErrorKind};

/// Converts an error of the object store, and keeps its kind where there is an equivalent.
#[cold]
pub fn from_odb(error: pronto_odb::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_odb::ErrorKind::Interrupted => ErrorKind::Interrupted,
        pronto_odb::ErrorKind::Io => ErrorKind::Io,
        pronto_odb::ErrorKind::Rejected => ErrorKind::Rejected,
        _ => ErrorKind::Object,
    })
}

/// Converts an error of the worktree crate, and keeps its kind where there is an equivalent.
pub fn from_worktree(error: pronto_worktree::Error) -> Error {
    use pronto_worktree::ErrorKind as Below;
    error.map_kind(|kind| match kind {
        Below::MissingObject | Below::CorruptObject => ErrorKind::Object,
        Below::Interrupted => ErrorKind::Interrupted,
        Below::WouldLose => ErrorKind::Refused,
        Below::Io => ErrorKind::Io,
        Below::HostilePath => ErrorKind::Hostile,
        _ => ErrorKind::Worktree,
    })
}

/// Converts an error of the index file, and keeps its kind where there is an equivalent.
pub fn from_index(error: pronto_index::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_index::ErrorKind::Locked => ErrorKind::Locked,
        pronto_index::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::Worktree,
    })
}
