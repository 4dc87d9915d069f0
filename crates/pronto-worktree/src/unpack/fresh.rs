//! Plans the checkout of a whole tree into an empty worktree and index.

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{CachedTree, Flags};

use super::{TreeFile, UnpackPlan, new_entry};
use crate::hostile::Protect;
use crate::sparse::Sparse;
use crate::tree_walk::{Go, WalkEvent, walk};
use crate::{Error, ObjectSource};

/// Plans to write all files in `tree`, except those that `sparse` excludes. Excluded files only get an
/// index entry.
///
/// # Errors
/// Fails with [`ErrorKind::MissingObject`](crate::ErrorKind::MissingObject) or
/// [`ErrorKind::CorruptObject`](crate::ErrorKind::CorruptObject) if a tree is missing or malformed, or
/// [`ErrorKind::HostilePath`](crate::ErrorKind::HostilePath) if it has a name that must never be
/// written.
pub fn all(
    tree: ObjectId,
    objects: &dyn ObjectSource,
    protect: Protect,
    sparse: Option<&Sparse>,
) -> Result<UnpackPlan, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let mut unpacked = UnpackPlan::default();
    let mut cached = CachedTree::builder(tree);
    walk(objects, Some(protect), None, Some(tree), &mut |step| {
        match step {
            WalkEvent::Enter(subtree) => cached.enter(subtree.name(), subtree.new),
            WalkEvent::Leave => cached.leave(),
            WalkEvent::Change(change) => {
                cached.add_entries(1);
                let Some(side) = change.new else {
                    return Ok(Go::On);
                };
                if sparse.is_none_or(|sparse| sparse.includes(change.path)) {
                    unpacked.write(change.path, side, false);
                } else {
                    let mut entry = new_entry(change.path, side);
                    entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
                    unpacked.change(change.path.as_bstr(), Some(entry), None);
                }
            }
            // There is no old tree, so that these steps do not occur.
            WalkEvent::Same(..) | WalkEvent::Unchanged | WalkEvent::Gone(..) => {}
        }
        Ok(Go::On)
    })?;
    unpacked.cached_tree = Some(cached.finish());
    Ok(unpacked)
}

/// Calls `visit` for each path in `tree` that is not a directory, in index order. Directories that
/// `enter` rejects are skipped.
///
/// # Errors
/// As for [`all`].
pub fn files(
    tree: ObjectId,
    objects: &dyn ObjectSource,
    protect: Protect,
    enter: &mut dyn FnMut(&BStr) -> bool,
    visit: &mut dyn FnMut(&BStr, TreeFile),
) -> Result<(), Error> {
    walk(objects, Some(protect), None, Some(tree), &mut |step| {
        match step {
            WalkEvent::Enter(subtree) if !enter(subtree.path) => return Ok(Go::Past),
            WalkEvent::Change(change) => {
                if let Some(side) = change.new {
                    visit(change.path, side);
                }
            }
            _ => {}
        }
        Ok(Go::On)
    })
}
