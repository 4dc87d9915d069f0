//! Reads a tree into an empty directory of the index (`git read-tree --prefix`).

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::super::TreeFile;
use super::super::fresh::files;
use super::super::guard::IsExpendable;
use super::super::worktree_view::WorktreeView;
use super::{MergeDecision, Request, UnpackWalk};
use crate::Error;

/// Adds the files in `tree` below the directory `prefix` (with a slash at its end, or empty for the
/// top). The trees and the rule of `request` are ignored.
///
/// # Errors
/// As for [`merge`](super::merge).
pub fn bind(
    tree: ObjectId,
    prefix: &BStr,
    request: &Request<'_>,
    view: &WorktreeView<'_>,
    is_expendable: &mut IsExpendable<'_>,
) -> Result<MergeDecision, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let mut found: Vec<(BString, TreeFile)> = Vec::new();
    let (objects, protect) = (view.objects, view.protect);
    files(tree, objects, protect, &mut |_| true, &mut |path, side| {
        found.push(([prefix.as_bytes(), path.as_bytes()].concat().into(), side));
    })?;
    let index = view.index;
    let mut walk = UnpackWalk::new(request, view);
    let mut next = 0;
    for (path, side) in found {
        let path: &BStr = path.as_bstr();
        let place = match index.find(path, 0) {
            Ok(_) => {
                walk.refusals.overlapping.push(path.to_owned());
                continue;
            }
            Err(place) => place,
        };
        walk.keep(next..place);
        next = place;
        walk.changed.push(path.to_owned());
        walk.change(path, side, None)?;
    }
    walk.keep(next..index.len());
    walk.finish(is_expendable)
}
