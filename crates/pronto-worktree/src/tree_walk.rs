//! Walks two trees side by side, where they differ.

use std::cmp::Ordering;

use bstr::{BStr, BString, ByteSlice};
use gix_object::tree::EntryRef;
use pronto_hash::ObjectId;
use pronto_index::mode;

use entries::Entries;

use crate::hostile::Protect;
use crate::{Error, Objects, objects};

mod entries;

pub(crate) use entries::put_in_order;

/// The id of a side, where it is a directory.
pub(crate) type TreeId = Option<ObjectId>;

/// A file, a link or a submodule in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The blob or commit.
    pub id: ObjectId,
    /// As the index records it.
    pub mode: u32,
}

/// A path that two trees do not have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// From the top.
    pub path: &'a BStr,
    /// In the old tree.
    pub old: Option<Side>,
    /// In the new tree.
    pub new: Option<Side>,
}

/// A step of the walk.
pub(crate) enum Step<'a> {
    /// A path differs.
    Change(Change<'a>),
    /// A directory of the new tree begins.
    Enter(Subtree<'a>),
    /// A directory that is equal in both trees and is skipped.
    Same(Subtree<'a>),
    /// A directory of the old tree begins that the new one does not have: path and id.
    Gone(&'a BStr, ObjectId),
    /// A path is the same in both trees, in a directory that is not.
    Unchanged,
    /// A directory of the new tree ends.
    Leave,
}

/// A directory of the new tree.
#[derive(Clone, Copy)]
pub(crate) struct Subtree<'a> {
    /// Its path from the top.
    pub(crate) path: &'a BStr,
    /// In the old tree.
    pub(crate) old: TreeId,
    /// In the new tree.
    pub(crate) new: ObjectId,
}

impl<'a> Subtree<'a> {
    /// The last component of its path.
    pub(crate) fn name(&self) -> &'a BStr {
        let start = self.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        self.path[start..].as_bstr()
    }
}

/// Whether a directory is entered. Only used after [`Step::Enter`] and [`Step::Gone`]; a directory
/// that is not entered is not left either.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Past,
}

type Visitor<'a> = dyn FnMut(Step<'_>) -> Result<Go, Error> + 'a;

/// Calls `visit` for the paths that differ between the trees `old` and `new`, in index order. A
/// tree that is not given is empty.
///
/// # Errors
/// A tree is missing or corrupt, or the new one has a name that must never be written; those of
/// `visit`.
pub fn diff(
    objects: &dyn Objects,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    visit: &mut dyn FnMut(Change<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if old == new {
        return Ok(());
    }
    walk(objects, None, old, new, &mut |step| {
        if let Step::Change(change) = step {
            visit(change)?;
        }
        Ok(Go::On)
    })
}

/// Does the same as [`diff`], with all steps. With `protect` the names of the new tree are checked.
pub(crate) fn walk(
    objects: &dyn Objects,
    protect: Option<Protect>,
    old: TreeId,
    new: TreeId,
    visit: &mut Visitor<'_>,
) -> Result<(), Error> {
    let mut walk = Walk {
        objects,
        protect,
        visit,
        path: BString::default(),
        depth: 0,
        spare: Vec::new(),
    };
    walk.directory(old, new)
}

struct Walk<'a> {
    objects: &'a dyn Objects,
    protect: Option<Protect>,
    visit: &'a mut Visitor<'a>,
    path: BString,
    depth: usize,
    /// Buffers to read trees into.
    spare: Vec<Vec<u8>>,
}

impl Walk<'_> {
    fn read(&mut self, id: TreeId) -> Result<Vec<u8>, Error> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        if let Some(id) = id {
            objects::tree(self.objects, &id, &mut buffer)?;
        }
        Ok(buffer)
    }

    // These three functions call one another as deep as the tree is. Data that need not be held
    // during the calls are in separate functions, so that each call takes little stack.
    fn directory(&mut self, old: TreeId, new: TreeId) -> Result<(), Error> {
        objects::check_depth(self.depth).map_err(|error| error.at_path(self.path.to_string()))?;
        let (old_bytes, new_bytes) = (self.read(old)?, self.read(new)?);
        let mut sides = Box::new(self.sides(&old_bytes, old, &new_bytes, new)?);
        while let Some((one, two)) = next_name(&mut sides)? {
            self.entry(one, two)?;
        }
        drop(sides);
        self.spare.push(old_bytes);
        self.spare.push(new_bytes);
        Ok(())
    }

    fn sides<'b>(
        &self,
        old_bytes: &'b [u8],
        old: TreeId,
        new_bytes: &'b [u8],
        new: TreeId,
    ) -> Result<[Entries<'b>; 2], Error> {
        if self.protect.is_none() {
            let old = Entries::as_stored(old_bytes, old);
            return Ok([old, Entries::as_stored(new_bytes, new)]);
        }
        // What is left behind may be as bad as it likes.
        let old = Entries::in_order(old_bytes, old)?;
        let new = Entries::checked(new_bytes, new, self.path.as_bstr())?;
        Ok([old, new])
    }

    /// One name: both sides, where there are two, are trees or both are not.
    fn entry(&mut self, old: Option<EntryRef<'_>>, new: Option<EntryRef<'_>>) -> Result<(), Error> {
        let Some(any) = new.or(old) else {
            return Ok(());
        };
        let before = self.path.len();
        if before > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(any.filename);
        self.check(new)?;
        if any.mode.is_tree() {
            self.subtree(old.map(id), new.map(id))?;
        } else {
            self.leaf(old.map(side), new.map(side))?;
        }
        self.path.truncate(before);
        Ok(())
    }

    fn check(&self, new: Option<EntryRef<'_>>) -> Result<(), Error> {
        let (Some(new), Some(protect)) = (new, self.protect) else {
            return Ok(());
        };
        let path = || self.first_below(new).to_string();
        protect.check(new.filename, new.mode.is_link(), &path)
    }

    fn leaf(&mut self, old: Option<Side>, new: Option<Side>) -> Result<(), Error> {
        let path = self.path.as_bstr();
        let step = if old == new {
            Step::Unchanged
        } else {
            Step::Change(Change { path, old, new })
        };
        (self.visit)(step).map(|_| ())
    }

    /// Returns the first path that is not a directory at or below the current entry, as Git names
    /// refused paths; the entry itself if that cannot be determined.
    fn first_below(&self, entry: EntryRef<'_>) -> BString {
        let mut path = self.path.clone();
        let (mut tree, mut buffer) = (entry.mode.is_tree().then(|| id(entry)), Vec::new());
        for _ in 0..objects::DEEPEST {
            let Some(id) = tree else { return path };
            let read = objects::tree(self.objects, &id, &mut buffer);
            let entries = read.and_then(|()| Entries::checked(&buffer, tree, path.as_bstr()));
            let first = entries.and_then(|mut entries| {
                entries.next()?;
                Ok(entries.take())
            });
            let Ok(Some(first)) = first else { break };
            path.push(b'/');
            path.extend_from_slice(first.filename);
            tree = first.mode.is_tree().then(|| first.oid.to_owned());
        }
        self.path.clone()
    }

    fn subtree(&mut self, old: TreeId, new: TreeId) -> Result<(), Error> {
        if let Some(new) = new {
            let path = self.path.as_bstr();
            let subtree = Subtree { path, old, new };
            if old == Some(new) {
                (self.visit)(Step::Same(subtree))?;
                return Ok(());
            }
            if (self.visit)(Step::Enter(subtree))? == Go::Past {
                return Ok(());
            }
        } else if let Some(old) = old
            && (self.visit)(Step::Gone(self.path.as_bstr(), old))? == Go::Past
        {
            return Ok(());
        }
        self.depth += 1;
        self.directory(old, new)?;
        self.depth -= 1;
        if new.is_some() {
            (self.visit)(Step::Leave)?;
        }
        Ok(())
    }
}

/// The entries that have the next name.
#[expect(clippy::type_complexity, reason = "one entry of each side")]
fn next_name<'b>(
    [left, right]: &mut [Entries<'b>; 2],
) -> Result<Option<(Option<EntryRef<'b>>, Option<EntryRef<'b>>)>, Error> {
    let order = match (&left.next()?, &right.next()?) {
        (None, None) => return Ok(None),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(one), Some(two)) => entries::order(one, two),
    };
    let one = if order.is_le() { left.take() } else { None };
    let two = if order.is_ge() { right.take() } else { None };
    Ok(Some((one, two)))
}

fn id(entry: EntryRef<'_>) -> ObjectId {
    entry.oid.to_owned()
}

fn side(entry: EntryRef<'_>) -> Side {
    Side {
        id: entry.oid.to_owned(),
        mode: index_mode(entry.mode.value()),
    }
}

/// The mode that the index records for the mode of a tree entry.
pub(crate) fn index_mode(tree_mode: u16) -> u32 {
    match u32::from(tree_mode) & mode::TYPE {
        mode::SYMLINK => mode::SYMLINK,
        mode::GITLINK => mode::GITLINK,
        _ if tree_mode & 0o100 != 0 => mode::EXECUTABLE,
        _ => mode::FILE,
    }
}
