//! A tree against a tree. Subtrees that both share are not read.

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_index::mode;

use super::{Difference, Side};
use crate::pathspec::{Directory, Pathspec};
use crate::unpack::trees::{Go, Step, walk};
use crate::{Error, Objects};

/// How far a comparison of trees goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Into directories that differ.
    pub recursive: bool,
    /// These directories themselves, too: always so when it does not go into them.
    pub show_trees: bool,
}

/// How the tree `new` differs from `old` (`None` for the empty one), in the order of trees. Reads
/// the trees of each directory that differs and is gone into.
///
/// # Errors
/// A tree is missing or not sound.
pub fn trees(
    objects: &dyn Objects,
    (old, new): (Option<ObjectId>, Option<ObjectId>),
    depth: Depth,
    pathspec: &Pathspec,
) -> Result<Vec<Difference>, Error> {
    let mut found = Vec::new();
    if old == new {
        return Ok(found);
    }
    walk(objects, None, (old, new), &mut |step| {
        let (path, old, new) = match step {
            Step::Enter(subtree) => (subtree.path, subtree.old, Some(subtree.new)),
            Step::Gone(path, old) => (path, Some(old), None),
            Step::Change(change) => {
                if pathspec.matches(change.path, false) {
                    let sides = (change.old.map(side), change.new.map(side));
                    found.push(difference(change.path, sides));
                }
                return Ok(Go::On);
            }
            Step::Same(_) | Step::Unchanged | Step::Leave => return Ok(Go::On),
        };
        if pathspec.directory(path) == Directory::Outside {
            return Ok(Go::Past);
        }
        if depth.show_trees || !depth.recursive {
            found.push(difference(path, (old.map(tree), new.map(tree))));
        }
        Ok(match depth.recursive {
            true => Go::On,
            false => Go::Past,
        })
    })?;
    Ok(found)
}

fn side(side: crate::unpack::Side) -> Side {
    Side {
        mode: side.mode,
        id: side.id,
    }
}

fn tree(id: ObjectId) -> Side {
    let mode = mode::TREE;
    Side { mode, id }
}

fn difference(path: &BStr, (old, new): (Option<Side>, Option<Side>)) -> Difference {
    Difference {
        path: path.to_owned(),
        old,
        new,
        origin: None,
        unmerged: false,
    }
}
