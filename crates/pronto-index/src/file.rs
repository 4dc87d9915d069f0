//! Reads or maps an index file.

use crate::error::{Error, ErrorKind, corrupt};
use crate::identity::IndexFileIdentity;
use pronto_io::error::IoContext;
use pronto_io::view::{Advice, FileView, ViewAccess};
use std::path::{Path, PathBuf};

/// The bytes of an index file, mapped where this is safe.
#[derive(Debug)]
pub(crate) enum FileBytes {
    Mapped(FileView, PathBuf),
    Owned(Vec<u8>),
}

impl FileBytes {
    /// Announces to the kernel that the whole file will be read.
    pub(crate) fn advise(&self) {
        // A smaller file is read with its first page.
        if let FileBytes::Mapped(view, _) = self
            && view.len() > READ_AHEAD_BYTES
        {
            view.advise(Advice::WillNeed);
        }
    }
}

impl std::ops::Deref for FileBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(view, _) => view.bytes().unwrap_or_default(),
            FileBytes::Owned(bytes) => bytes,
        }
    }
}

/// The smallest read-ahead of the kernel for a missing page.
const READ_AHEAD_BYTES: u64 = 64 * 1024;

/// Reads the file at `path` with its identity; `None` if the file does not exist.
pub(crate) fn read_file(path: &Path) -> Result<Option<(FileBytes, IndexFileIdentity)>, Error> {
    let view = match FileView::open(path, ViewAccess::Auto) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.context(ErrorKind::Io, "unable to open index file", path)?,
    };
    let identity = IndexFileIdentity::of_view(&view);
    if view.bytes().is_some() {
        return Ok(Some((FileBytes::Mapped(view, path.to_owned()), identity)));
    }
    let mut bytes = Vec::new();
    let len = usize::try_from(view.len()).map_err(|_| corrupt("index file is too large"))?;
    view.read(0, len, &mut bytes)
        .context(ErrorKind::Io, "unable to read index file", path)?;
    Ok(Some((FileBytes::Owned(bytes), identity)))
}
