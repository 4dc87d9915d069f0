//! Errors of the crates below as errors of the repository.

use crate::{Error, ErrorKind};

/// An error of the object store as one of the repository.
#[cold]
pub fn from_odb(error: pronto_odb::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_odb::ErrorKind::Interrupted => ErrorKind::Interrupted,
        pronto_odb::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::Object,
    })
}

/// An error from between index and files as one of the repository.
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

/// An error of the index file as one of the repository.
pub fn from_index(error: pronto_index::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_index::ErrorKind::Locked => ErrorKind::Locked,
        pronto_index::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::Worktree,
    })
}
