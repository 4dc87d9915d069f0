//! Compares two trees. Equal subtrees are not read.

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_index::mode;
use pronto_io::interrupt::Interrupt;

use crate::error::check;
use crate::pathspec::{DirectoryRelation, Pathspec};
use crate::tree_walk::{Go, WalkEvent, walk};
use crate::{Error, ObjectSource};
use pronto_diff::{Difference, DifferenceSide};

/// The depth of a comparison of trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeDiffDepth {
    /// Recurse into directories that differ (`-r`).
    pub recursive: bool,
    /// Also report the directories that differ (`-t`). This is implied without `recursive`.
    pub show_trees: bool,
}

/// Returns the differences between the trees `old` and `new` (`None` for the empty tree), in tree
/// order. Reads the trees of each differing directory that is entered.
///
/// # Errors
/// Fails with `ErrorKind::MissingObject` or `ErrorKind::CorruptObject` if a tree is missing or
/// malformed, or with `ErrorKind::Interrupted`, which is checked before each tree.
pub fn trees(
    objects: &dyn ObjectSource,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    depth: TreeDiffDepth,
    pathspec: &Pathspec,
    interrupt: &Interrupt,
) -> Result<Vec<Difference>, Error> {
    let mut found = Vec::new();
    if old == new {
        return Ok(found);
    }
    walk(objects, None, old, new, &mut |step| {
        let (path, old, new) = match step {
            WalkEvent::Enter(subtree) => (subtree.path, subtree.old, Some(subtree.new)),
            WalkEvent::Gone(path, old) => (path, Some(old), None),
            WalkEvent::Change(change) => {
                let sides = change.old.iter().chain(&change.new);
                let is_submodule = sides.into_iter().any(|side| side.mode == mode::GITLINK);
                if pathspec.matches(change.path, is_submodule) {
                    let (old, new) = (change.old.map(side), change.new.map(side));
                    found.push(difference(change.path, old, new));
                }
                return Ok(Go::On);
            }
            WalkEvent::Same(_) | WalkEvent::Unchanged | WalkEvent::Leave => return Ok(Go::On),
        };
        check(interrupt)?;
        let shows = depth.show_trees || !depth.recursive;
        if shows && pathspec.names_directory(path, depth.recursive) {
            found.push(difference(path, old.map(tree), new.map(tree)));
        }
        let is_outside = pathspec.directory(path) == DirectoryRelation::Outside;
        Ok(match depth.recursive && !is_outside {
            true => Go::On,
            false => Go::Past,
        })
    })?;
    Ok(found)
}

fn side(side: crate::unpack::TreeFile) -> DifferenceSide {
    DifferenceSide {
        mode: side.mode,
        id: side.id,
    }
}

fn tree(id: ObjectId) -> DifferenceSide {
    let mode = mode::TREE;
    DifferenceSide { mode, id }
}

fn difference(path: &BStr, old: Option<DifferenceSide>, new: Option<DifferenceSide>) -> Difference {
    Difference {
        path: path.to_owned(),
        old,
        new,
        origin: None,
        unmerged: false,
    }
}

#[cfg(test)]
mod tests {
    use gix_object::Kind;
    use pronto_hash::oid;

    use super::*;
    use crate::ErrorKind;

    /// Each tree has one directory, whose id is one more.
    struct Endless;

    impl ObjectSource for Endless {
        fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
            buffer.clear();
            buffer.extend_from_slice(b"40000 d\0");
            buffer.extend_from_slice(id.as_bytes());
            let last = buffer.len() - 1;
            buffer[last] = buffer[last].wrapping_add(1);
            Ok(Kind::Tree)
        }
    }

    #[test]
    fn a_comparison_can_be_interrupted() {
        let (mut one, two) = (
            ObjectId::null(pronto_hash::Kind::Sha1),
            Some(ObjectId::empty_tree(pronto_hash::Kind::Sha1)),
        );
        one = pronto_hash::parse_hex(format!("{one}").replacen('0', "1", 1).as_bytes())
            .expect("an id");
        let depth = TreeDiffDepth {
            recursive: true,
            show_trees: false,
        };
        let (interrupt, everything) = (Interrupt::default(), Pathspec::default());
        interrupt.trigger();
        let compared = trees(&Endless, Some(one), two, depth, &everything, &interrupt);
        let error = compared.expect_err("it never ends");
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    }
}
