//! Walks two trees side by side, and enters directories that differ.

use std::cmp::Ordering;

use bstr::{BStr, BString, ByteSlice};
use gix_object::tree::EntryRef;
use pronto_hash::ObjectId;
use pronto_index::mode;

use entries::WalkedEntries;

use crate::hostile::Protect;
use crate::{Error, ObjectSource, objects};

mod entries;

pub(crate) use entries::put_in_order;

/// The id of a tree on one side; `None` if there is no directory.
pub(crate) type TreeId = Option<ObjectId>;

/// A file, a symbolic link or a submodule in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// The id of the blob or commit.
    pub id: ObjectId,
    /// The mode as the index records it.
    pub mode: u32,
}

/// A path that differs between two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePathChange<'a> {
    /// The path from the top.
    pub path: &'a BStr,
    /// The old state; `None` if the path is not in the old tree.
    pub old: Option<TreeFile>,
    /// The new state; `None` if the path is not in the new tree.
    pub new: Option<TreeFile>,
}

/// A step of the walk.
pub(crate) enum WalkEvent<'a> {
    /// A path differs.
    Change(TreePathChange<'a>),
    /// A directory of the new tree begins.
    Enter(Subtree<'a>),
    /// A directory that is equal in both trees and is skipped.
    Same(Subtree<'a>),
    /// A directory of the old tree begins that is not in the new tree: its path and id.
    Gone(&'a BStr, ObjectId),
    /// A path is equal in both trees, in a directory that differs.
    Unchanged,
    /// A directory of the new tree ends.
    Leave,
}

/// A directory of the new tree.
#[derive(Clone, Copy)]
pub(crate) struct Subtree<'a> {
    /// The path of the directory from the top.
    pub(crate) path: &'a BStr,
    /// The tree of the directory in the old tree.
    pub(crate) old: TreeId,
    /// The tree of the directory in the new tree.
    pub(crate) new: ObjectId,
}

impl<'a> Subtree<'a> {
    /// Returns the last component of the path.
    pub(crate) fn name(&self) -> &'a BStr {
        let start = self.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        self.path[start..].as_bstr()
    }
}

/// The decision whether a directory is entered. Only used for [`WalkEvent::Enter`] and [`WalkEvent::Gone`]. There
/// is no [`WalkEvent::Leave`] for a directory that is not entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Past,
}

type Visitor<'a> = dyn FnMut(WalkEvent<'_>) -> Result<Go, Error> + 'a;

/// Calls `visit` for the paths that differ between the trees `old` and `new`, in index order. `None`
/// stands for the empty tree.
///
/// # Errors
/// Fails with `ErrorKind::MissingObject` or `ErrorKind::CorruptObject` if a tree is missing or
/// malformed, with `ErrorKind::HostilePath` if the new tree has a name that must never be written, or
/// if `visit` fails.
pub fn diff(
    objects: &dyn ObjectSource,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    visit: &mut dyn FnMut(TreePathChange<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if old == new {
        return Ok(());
    }
    walk(objects, None, old, new, &mut |step| {
        if let WalkEvent::Change(change) = step {
            visit(change)?;
        }
        Ok(Go::On)
    })
}

/// Does the same as [`diff`], and reports all steps. With `protect` the names of the new tree are
/// checked.
pub(crate) fn walk(
    objects: &dyn ObjectSource,
    protect: Option<Protect>,
    old: TreeId,
    new: TreeId,
    visit: &mut Visitor<'_>,
) -> Result<(), Error> {
    let mut walk = TreeWalk {
        objects,
        protect,
        visit,
        path: BString::default(),
        spare: Vec::new(),
    };
    walk.run(old, new)
}

struct TreeWalk<'a> {
    objects: &'a dyn ObjectSource,
    protect: Option<Protect>,
    visit: &'a mut Visitor<'a>,
    path: BString,
    /// Reusable buffers for the content of trees.
    spare: Vec<Vec<u8>>,
}

/// A directory that the walk has entered. Levels are on an explicit stack, because nested trees could
/// overflow the stack of a thread.
struct WalkedDirectory {
    old: WalkedEntries,
    new: WalkedEntries,
    /// The length of the path of the parent directory.
    outer_len: usize,
    /// Whether the new tree has the directory.
    is_new: bool,
}

impl TreeWalk<'_> {
    fn run(&mut self, old: TreeId, new: TreeId) -> Result<(), Error> {
        let mut levels = vec![self.level(old, new, 0)?];
        while let Some(level) = levels.last_mut() {
            let Some(order) = level.next_name()? else {
                self.leave(&mut levels)?;
                continue;
            };
            let outer_len = self.path.len();
            let below = self.entry(level, order)?;
            level.take(order);
            let Some((old, new)) = below else {
                self.path.truncate(outer_len);
                continue;
            };
            objects::check_depth(levels.len())
                .map_err(|error| error.at_path(self.path.to_string()))?;
            let below = self.level(old, new, outer_len)?;
            levels.push(below);
        }
        Ok(())
    }

    /// Leaves the innermost directory.
    fn leave(&mut self, levels: &mut Vec<WalkedDirectory>) -> Result<(), Error> {
        let Some(level) = levels.pop() else {
            return Ok(());
        };
        if !levels.is_empty() && level.is_new {
            (self.visit)(WalkEvent::Leave)?;
        }
        self.path.truncate(level.outer_len);
        self.spare.push(level.old.into_bytes());
        self.spare.push(level.new.into_bytes());
        Ok(())
    }

    fn read(&mut self, id: TreeId) -> Result<Vec<u8>, Error> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        if let Some(id) = id {
            objects::tree(self.objects, &id, &mut buffer)?;
        }
        Ok(buffer)
    }

    fn level(
        &mut self,
        old: TreeId,
        new: TreeId,
        outer_len: usize,
    ) -> Result<WalkedDirectory, Error> {
        let (old_bytes, new_bytes) = (self.read(old)?, self.read(new)?);
        let is_new = new.is_some();
        let (old, new) = match self.protect {
            None => {
                let old = WalkedEntries::as_stored(old_bytes, old);
                (old, WalkedEntries::as_stored(new_bytes, new))
            }
            // The old tree is not written, so its names are not checked.
            Some(_) => {
                let old = WalkedEntries::in_order(old_bytes, old)?;
                (
                    old,
                    WalkedEntries::checked(new_bytes, new, self.path.as_bstr())?,
                )
            }
        };
        Ok(WalkedDirectory {
            old,
            new,
            outer_len,
            is_new,
        })
    }

    /// Visits one name, and appends it to the path. If both sides have the name, either both or none
    /// are trees. Returns the trees of a directory to enter.
    fn entry(
        &mut self,
        level: &WalkedDirectory,
        order: Ordering,
    ) -> Result<Option<(TreeId, TreeId)>, Error> {
        let old = level.old.peek().filter(|_| order.is_le());
        let new = level.new.peek().filter(|_| order.is_ge());
        let Some(any) = new.or(old) else {
            return Ok(None);
        };
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(any.filename);
        self.check(new)?;
        if any.mode.is_tree() {
            let (old, new) = (old.map(id), new.map(id));
            return Ok(self.enters(old, new)?.then_some((old, new)));
        }
        self.leaf(old.map(side), new.map(side))?;
        Ok(None)
    }

    fn check(&self, new: Option<EntryRef<'_>>) -> Result<(), Error> {
        let (Some(new), Some(protect)) = (new, self.protect) else {
            return Ok(());
        };
        let path = || self.first_below(new).to_string();
        protect.check(new.filename, new.mode.is_link(), &path)
    }

    fn leaf(&mut self, old: Option<TreeFile>, new: Option<TreeFile>) -> Result<(), Error> {
        let path = self.path.as_bstr();
        let step = if old == new {
            WalkEvent::Unchanged
        } else {
            WalkEvent::Change(TreePathChange { path, old, new })
        };
        (self.visit)(step).map(|_| ())
    }

    /// Returns the first path that is not a directory at or below the current entry, which Git names in
    /// messages about refused paths. Returns the path of the entry itself if no such path can be
    /// determined.
    fn first_below(&self, entry: EntryRef<'_>) -> BString {
        let mut path = self.path.clone();
        let (mut tree, mut buffer) = (entry.mode.is_tree().then(|| id(entry)), Vec::new());
        for _ in 0..objects::DEEPEST {
            let Some(id) = tree else { return path };
            let read = objects::tree(self.objects, &id, &mut buffer);
            let entries = read.and_then(|()| {
                WalkedEntries::checked(std::mem::take(&mut buffer), tree, path.as_bstr())
            });
            let Ok(mut entries) = entries else { break };
            let Ok(Some(first)) = entries.next() else {
                break;
            };
            path.push(b'/');
            path.extend_from_slice(first.filename);
            tree = first.mode.is_tree().then(|| first.oid.to_owned());
            buffer = entries.into_bytes();
        }
        self.path.clone()
    }

    /// Visits a directory. Returns whether it is entered.
    fn enters(&mut self, old: TreeId, new: TreeId) -> Result<bool, Error> {
        let path = self.path.as_bstr();
        let step = match (old, new) {
            (_, Some(new)) => {
                let subtree = Subtree { path, old, new };
                if old == Some(new) {
                    (self.visit)(WalkEvent::Same(subtree))?;
                    return Ok(false);
                }
                WalkEvent::Enter(subtree)
            }
            (Some(old), None) => WalkEvent::Gone(path, old),
            (None, None) => return Ok(false),
        };
        Ok((self.visit)(step)? == Go::On)
    }
}

impl WalkedDirectory {
    /// Compares the next names of both sides. Returns `None` at the end.
    fn next_name(&mut self) -> Result<Option<Ordering>, Error> {
        Ok(match (self.old.next()?, self.new.next()?) {
            (None, None) => None,
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (Some(old), Some(new)) => Some(entries::order(&old, &new)),
        })
    }

    /// Removes the entries that were compared.
    fn take(&mut self, order: Ordering) {
        if order.is_le() {
            self.old.take();
        }
        if order.is_ge() {
            self.new.take();
        }
    }
}

fn id(entry: EntryRef<'_>) -> ObjectId {
    entry.oid.to_owned()
}

fn side(entry: EntryRef<'_>) -> TreeFile {
    TreeFile {
        id: entry.oid.to_owned(),
        mode: index_mode(entry.mode.value()),
    }
}

/// Returns the mode that the index records for a mode of a tree entry.
pub(crate) fn index_mode(tree_mode: u16) -> u32 {
    match u32::from(tree_mode) & mode::TYPE {
        mode::SYMLINK => mode::SYMLINK,
        mode::GITLINK => mode::GITLINK,
        _ if tree_mode & 0o100 != 0 => mode::EXECUTABLE,
        _ => mode::FILE,
    }
}
