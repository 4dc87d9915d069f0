//! Walks two trees side by side, over what differs.

use std::cmp::Ordering;

use bstr::{BStr, BString, ByteSlice};
use gix_object::TreeRefIter;
use gix_object::tree::{EntryRef, name_order};
use pronto_hash::ObjectId;

use super::{TreeId, index_mode};
use crate::hostile::Protect;
use crate::{Error, ErrorKind, Objects, objects};

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

/// What happens on the walk.
pub(crate) enum Step<'a> {
    /// A path differs.
    Change(Change<'a>),
    /// A directory of the new tree begins.
    Enter(Subtree<'a>),
    /// A directory is the same in both trees: it is passed over.
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

/// Whether a directory is gone into. Only looked at after [`Step::Enter`] and [`Step::Gone`]; one
/// that is not gone into is not left either.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Past,
}

type Visitor<'a> = dyn FnMut(Step<'_>) -> Result<Go, Error> + 'a;

/// Tells `visit` the paths that differ between the trees `old` and `new`, in the order of the
/// index. A tree that is not given is empty.
///
/// # Errors
/// When a tree is missing or corrupt, or the new one has a name that must never be written; those
/// of `visit`.
pub fn diff(
    objects: &dyn Objects,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    visit: &mut dyn FnMut(Change<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if old == new {
        return Ok(());
    }
    walk(objects, None, (old, new), &mut |step| {
        if let Step::Change(change) = step {
            visit(change)?;
        }
        Ok(Go::On)
    })
}

/// Like [`diff`], with all that happens on the way. With `protect` the names of the new tree are
/// checked.
pub(crate) fn walk(
    objects: &dyn Objects,
    protect: Option<Protect>,
    (old, new): (TreeId, TreeId),
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

    fn directory(&mut self, old: TreeId, new: TreeId) -> Result<(), Error> {
        objects::check_depth(self.depth).map_err(|error| error.at_path(self.path.to_string()))?;
        let (old_bytes, new_bytes) = (self.read(old)?, self.read(new)?);
        let mut left = Entries::new(&old_bytes, old);
        let mut right = Entries::new(&new_bytes, new);
        loop {
            let order = match (&left.next()?, &right.next()?) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(two)) => name_order(
                    one.filename,
                    one.mode.is_tree(),
                    two.filename,
                    two.mode.is_tree(),
                ),
            };
            let one = if order.is_le() { left.take() } else { None };
            let two = if order.is_ge() { right.take() } else { None };
            self.entry(one, two)?;
        }
        self.spare.push(old_bytes);
        self.spare.push(new_bytes);
        Ok(())
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
        if let (Some(new), Some(protect)) = (new, self.protect) {
            let path = &self.path;
            protect.check(new.filename, new.mode.is_link(), &|| path.to_string())?;
        }
        if any.mode.is_tree() {
            self.subtree(old.map(id), new.map(id))?;
        } else {
            let change = Change {
                path: self.path.as_bstr(),
                old: old.map(side),
                new: new.map(side),
            };
            let same = change.old == change.new;
            (self.visit)(if same {
                Step::Unchanged
            } else {
                Step::Change(change)
            })?;
        }
        self.path.truncate(before);
        Ok(())
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

fn id(entry: EntryRef<'_>) -> ObjectId {
    entry.oid.to_owned()
}

fn side(entry: EntryRef<'_>) -> Side {
    Side {
        id: entry.oid.to_owned(),
        mode: index_mode(entry.mode.value()),
    }
}

/// The entries of one tree, with a look at the next.
struct Entries<'a> {
    iter: TreeRefIter<'a>,
    tree: TreeId,
    peeked: Option<EntryRef<'a>>,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8], tree: TreeId) -> Self {
        let kind = tree.map_or(pronto_hash::Kind::Sha1, |id| id.kind());
        Entries {
            iter: TreeRefIter::from_bytes(bytes, kind),
            tree,
            peeked: None,
        }
    }

    fn next(&mut self) -> Result<Option<EntryRef<'a>>, Error> {
        if self.peeked.is_none() {
            self.peeked = self.iter.next().transpose().map_err(|error| {
                let broken = Error::new(ErrorKind::CorruptObject, "corrupt tree");
                let broken = broken.because(error.to_string());
                match self.tree {
                    Some(id) => broken.on_object(id),
                    None => broken,
                }
            })?;
        }
        Ok(self.peeked)
    }

    fn take(&mut self) -> Option<EntryRef<'a>> {
        self.peeked.take()
    }
}
