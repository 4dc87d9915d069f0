//! The entries of a tree object, read as a whole.

use bstr::BString;
use gix_object::TreeRefIter;
use pronto_diff::DifferenceSide;
use pronto_hash::oid;
use pronto_index::mode;

use crate::names::NameSortKey;
use crate::{Error, ErrorKind};

/// A callback that reads the content of the tree `id` into the buffer.
pub type ReadTree<'a> = dyn FnMut(&oid, &mut Vec<u8>) -> Result<(), Error> + 'a;

/// An entry of a tree.
#[derive(Clone)]
pub(crate) struct ListedTreeEntry {
    pub(crate) name: BString,
    pub(crate) side: DifferenceSide,
    /// Whether the mode has the form that Git writes today.
    pub(crate) is_canonical: bool,
}

impl ListedTreeEntry {
    pub(crate) fn is_directory(&self) -> bool {
        self.side.mode == mode::TREE
    }

    /// Returns the sort key of the entry.
    pub(crate) fn key(&self) -> NameSortKey<'_> {
        NameSortKey {
            name: &self.name,
            is_directory: self.is_directory(),
        }
    }

    pub(crate) fn side(&self) -> DifferenceSide {
        self.side
    }
}

/// Reads the entries of the tree `id`.
///
/// # Errors
/// Fails with [`ErrorKind::CorruptObject`] if the tree is malformed, or if `read` fails.
pub(crate) fn read_tree(id: &oid, read: &mut ReadTree<'_>) -> Result<Vec<ListedTreeEntry>, Error> {
    let mut content = Vec::new();
    read(id, &mut content)?;
    let mut entries = Vec::new();
    for entry in TreeRefIter::from_bytes(&content, id.kind()) {
        let entry = entry.map_err(|error| {
            Error::new(ErrorKind::CorruptObject, "corrupt tree")
                .on_object(id)
                .because(error)
        })?;
        let stored = u32::from(entry.mode.value());
        let mode = canonical(stored);
        let side = DifferenceSide {
            mode,
            id: entry.oid.to_owned(),
        };
        entries.push(ListedTreeEntry {
            name: entry.filename.to_owned(),
            side,
            is_canonical: mode == stored,
        });
    }
    Ok(entries)
}

/// Returns the mode that Git uses for a mode of an old tree.
fn canonical(mode: u32) -> u32 {
    match mode & mode::TYPE {
        0o100_000 if mode & 0o100 != 0 => mode::EXECUTABLE,
        0o100_000 => mode::FILE,
        kind => kind,
    }
}
