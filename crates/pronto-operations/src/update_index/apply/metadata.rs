//! Examines the paths of `update-index`.

use std::io;

use bstr::{BStr, ByteSlice};
use pronto_io::dir::{Metadata, is_missing};

use crate::add;
use crate::session::WorktreeSession;

/// The kind of the file system entry at a path.
pub(super) enum PathMetadata {
    Nothing,
    BeyondLink,
    Unknown(io::Error),
    There(Metadata),
}

pub(super) fn find(prepared: &WorktreeSession<'_>, path: &BStr) -> PathMetadata {
    let bare = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
    let (directory, name) = crate::path::split(bare);
    let found = match prepared.top.open_beneath(directory) {
        Ok(directory) => directory.metadata(name),
        Err(_) if add::is_beyond_link(&prepared.top, bare) => return PathMetadata::BeyondLink,
        Err(error) => Err(error),
    };
    match found {
        Ok(metadata) => PathMetadata::There(metadata),
        Err(error) if is_missing(&error) => PathMetadata::Nothing,
        Err(error) => PathMetadata::Unknown(error),
    }
}
