//! Expands sparse directory entries of an index.

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_index::{CachedTree, Filler, Index};

use crate::hostile::Protect;
use crate::tree_walk::{Go, WalkEvent, walk};
use crate::{Error, ErrorKind, ObjectSource};

/// Expands the sparse directory entries of `index` for which `wanted` returns true to an entry for each
/// file. `wanted` gets the path with a slash at its end. Reads each of their trees once, and copies all
/// entries.
///
/// # Errors
/// Fails with [`ErrorKind::MissingObject`] or [`ErrorKind::CorruptObject`] if a tree is missing or
/// malformed, or [`ErrorKind::HostilePath`] if it has a name that must never be written.
pub fn expand(
    index: Index,
    objects: &dyn ObjectSource,
    protect: Protect,
    wanted: &mut dyn FnMut(&BStr) -> bool,
) -> Result<Index, Error> {
    let _region = pronto_io::region!("index", "ensure_full_index");
    let expanded = index.expand(|entry, filler| {
        let prefix = entry.path;
        wanted(prefix)
            .then(|| fill(prefix, entry.id.to_owned(), objects, protect, filler))
            .transpose()
            .map_err(ExpandFailure)
    });
    expanded.map_err(|ExpandFailure(error)| error)
}

struct ExpandFailure(Error);

impl From<pronto_index::Error> for ExpandFailure {
    fn from(error: pronto_index::Error) -> Self {
        ExpandFailure(error.map_kind(|_| ErrorKind::Index))
    }
}

fn fill(
    prefix: &BStr,
    tree: ObjectId,
    objects: &dyn ObjectSource,
    protect: Protect,
    filler: &mut Filler<'_>,
) -> Result<CachedTree, Error> {
    let mut cached = CachedTree::builder(tree);
    let mut path = prefix.to_owned();
    walk(objects, Some(protect), None, Some(tree), &mut |step| {
        match step {
            WalkEvent::Enter(subtree) => cached.enter(subtree.name(), subtree.new),
            WalkEvent::Leave => cached.leave(),
            WalkEvent::Change(change) => {
                cached.add_entries(1);
                if let Some(side) = change.new {
                    path.truncate(prefix.len());
                    path.extend_from_slice(change.path);
                    let pushed = filler.push(path.as_ref(), side.mode, &side.id);
                    pushed.map_err(|error| error.map_kind(|_| ErrorKind::Index))?;
                }
            }
            // There is no old tree, so that these steps do not occur.
            WalkEvent::Same(..) | WalkEvent::Unchanged | WalkEvent::Gone(..) => {}
        }
        Ok(Go::On)
    })?;
    Ok(cached.finish())
}
