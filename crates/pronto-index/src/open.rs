//! Opens indexes, including split indexes.

use crate::error::Error;
use crate::extension;
use crate::index::Index;
use crate::link::SplitIndexLink;
use crate::outline::IndexOutline;
use crate::split::SharedIndex;
use pronto_hash::Kind;
use std::path::{Path, PathBuf};

/// Options for opening an index.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The directory of the shared index of a split index, if it is not the directory of the index.
    pub shared_directory: Option<PathBuf>,
}

impl Index {
    /// Opens the index at `path`; if the file does not exist, the index is empty. Costs one pass
    /// over the entries, which reads a few bytes of each entry; version 4 and split indexes are
    /// unpacked.
    ///
    /// # Errors
    /// Fails with [`Io`](crate::ErrorKind::Io) if the file cannot be read, with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is malformed, and with
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for an unknown version or an unknown required
    /// extension.
    pub fn open(path: &Path, kind: Kind) -> Result<Index, Error> {
        Self::open_with(path, kind, &OpenOptions::default())
    }

    /// Does the same as [`open`](Index::open) with options.
    ///
    /// # Errors
    /// Fails as [`open`](Index::open) does.
    pub fn open_with(path: &Path, kind: Kind, options: &OpenOptions) -> Result<Index, Error> {
        let outline = IndexOutline::open(path, kind)?;
        let mut index = Self::parse(outline).map_err(|it| it.at_path(path))?;
        if index.outline().is_split() {
            let _region = pronto_io::region!("index", "do_read_index");
            let beside = path.parent().unwrap_or(Path::new(""));
            let other = options.shared_directory.as_deref();
            merge_shared(&mut index, beside, other)?;
        }
        index.complete()
    }
}

/// Merges the shared index, which is in the directory `other`, or else in the directory of the
/// index.
fn merge_shared(index: &mut Index, beside: &Path, other: Option<&Path>) -> Result<(), Error> {
    let data = index.extension(extension::LINK).unwrap_or_default();
    let base = SplitIndexLink::base_of(data, index.hash_len())?;
    if base.is_null() {
        return Ok(());
    }
    let directory = match other {
        Some(other) if !SharedIndex::path(beside, &base).exists() => other,
        _ => beside,
    };
    let shared = SharedIndex::open(directory, base, index.kind())?;
    let shared = shared.index();
    let link = SplitIndexLink::parse(data, index.hash_len(), shared.len())?;
    let merged = link.merge(shared, index)?;
    index.set_merged(merged);
    Ok(())
}
