//! The bytes of an index file.

use crate::error::{Error, ErrorKind, corrupt};
use crate::outline::Identity;
use pronto_io::error::IoContext;
use pronto_io::view::{Access, Advice, View};
use std::path::{Path, PathBuf};

/// The bytes of a file: mapped where that is safe.
#[derive(Debug)]
pub(crate) enum Data {
    Mapped(View, PathBuf),
    Owned(Vec<u8>),
}

impl Data {
    /// All of it will be read.
    pub(crate) fn advise(&self) {
        // A smaller one comes into memory with its first page.
        if let Data::Mapped(view, _) = self
            && view.len() > READ_AHEAD_BYTES
        {
            view.advise(Advice::WillNeed);
        }
    }
}

impl std::ops::Deref for Data {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Data::Mapped(view, _) => view.bytes().unwrap_or_default(),
            Data::Owned(bytes) => bytes,
        }
    }
}

/// The smallest read of a system for a missing page.
const READ_AHEAD_BYTES: u64 = 64 * 1024;

/// Reads the file at `path`, with its identity; `None` if there is none.
pub(crate) fn read_file(path: &Path) -> Result<Option<(Data, Identity)>, Error> {
    let view = match View::open(path, Access::Auto) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.context(ErrorKind::Io, "unable to open index file", path)?,
    };
    let identity = Identity::of_view(&view);
    if view.bytes().is_some() {
        return Ok(Some((Data::Mapped(view, path.to_owned()), identity)));
    }
    let mut bytes = Vec::new();
    let len = usize::try_from(view.len()).map_err(|_| corrupt("index file is too large"))?;
    view.read(0, len, &mut bytes)
        .context(ErrorKind::Io, "unable to read index file", path)?;
    Ok(Some((Data::Owned(bytes), identity)))
}
