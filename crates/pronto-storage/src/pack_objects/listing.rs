//! Lists trees, blobs and tags like `git rev-list --objects`: each object once, with the first path at
//! which it is found.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_object::TreeEntries;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::linked::LinkedWalk;
use super::{ObjectSelection, Select};

/// An object of a listing that was requested by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject {
    /// The id of the object: a tag, a tree or a blob.
    pub id: ObjectId,
    /// The name of a tag, or the path of another object.
    pub name: BString,
}

/// The starting points of a listing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectListing<'a> {
    /// The objects with which the listing starts, in this order.
    pub named: &'a [NamedObject],
    /// The trees of the commits, in this order.
    pub trees: &'a [ObjectId],
    /// The objects that are excluded, with all objects reachable from trees among them. Missing objects
    /// are ignored.
    pub excluded: &'a [ObjectId],
}

/// A callback that gets each object and its path.
type VisitObject<'a, E> = &'a mut dyn FnMut(&oid, &BStr) -> Result<(), E>;

/// Calls `visit` with each object of `listing` and the first path at which it is found. A tree precedes
/// its entries, and entries are in the order of the tree.
///
/// Costs reading each tree once, and 33 bytes for each object. If a listing covers at least a quarter
/// of the commits of the largest pack, all trees of that pack are inflated on all processors, common
/// entries of trees are skipped, and the cost is one bit for each object of the pack. `visit` is called
/// in the calling thread; several listings may run at once.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if an object is missing or malformed, with
/// [`ErrorKind::Interrupted`], or if `visit` fails.
pub fn list<E: From<Error>>(
    repository: &Repository,
    listing: &ObjectListing<'_>,
    visit: &mut dyn FnMut(&oid, &BStr) -> Result<(), E>,
    watch: &Watch<'_>,
) -> Result<(), E> {
    let select = Select::default();
    let meter = watch.progress().begin("Enumerating objects", None);
    let mut walk = ObjectSelection::new(repository, &select, watch, meter)?;
    for id in listing.excluded {
        match walk.kind_of(id)? {
            Some(ObjectKind::Tree) => walk.hide_tree(*id)?,
            _ => _ = walk.hidden.insert(*id),
        }
    }
    let store = walk.store.clone();
    let links = match walk.hidden.is_empty() {
        true => store.tree_links(listing.trees.len(), watch.interrupt()),
        false => Ok(None),
    };
    match links.map_err(from_odb)? {
        Some(pack) => walk.list_linked(LinkedWalk::new(&store, &pack), listing, visit)?,
        None => Lister::new(&mut walk).list(listing, visit)?,
    }
    walk.meter.finish();
    Ok(())
}

/// A tree whose entries are being visited.
struct VisitedTreeEntries {
    id: ObjectId,
    content: Vec<u8>,
    /// The number of bytes of the content that were parsed.
    done: usize,
    path_len: usize,
}

impl ObjectSelection<'_> {
    fn kind_of(&self, id: &oid) -> Result<Option<ObjectKind>> {
        let header = self.store.header(id).map_err(from_odb)?;
        Ok(header.map(|header| header.kind))
    }

    /// Returns the type of an object that must exist.
    fn existing_kind(&self, id: &oid) -> Result<ObjectKind> {
        let gone = || Error::new(ErrorKind::MissingObject, format!("bad object {id}"));
        self.kind_of(id)?.ok_or_else(gone)
    }

    fn list_linked<E: From<Error>>(
        &mut self,
        mut walk: LinkedWalk<'_>,
        listing: &ObjectListing<'_>,
        visit: VisitObject<'_, E>,
    ) -> Result<(), E> {
        for named in listing.named {
            let name = named.name.as_bstr();
            match self.existing_kind(&named.id)? {
                ObjectKind::Tree => self.list_linked_tree(&mut walk, &named.id, name, visit)?,
                _ if walk.mark(&named.id)? => visit(&named.id, name)?,
                _ => {}
            }
        }
        for tree in listing.trees {
            self.check()?;
            self.list_linked_tree(&mut walk, tree, "".into(), visit)?;
        }
        Ok(())
    }

    fn list_linked_tree<E: From<Error>>(
        &mut self,
        walk: &mut LinkedWalk<'_>,
        tree: &oid,
        path: &BStr,
        visit: VisitObject<'_, E>,
    ) -> Result<(), E> {
        let store = self.store.clone();
        walk.tree(tree, path, |met| {
            self.meter.add(1);
            if !met.is_stored {
                must_exist(&store, &met.id)?;
            }
            visit(&met.id, met.path)
        })
    }
}

/// The result of recording an object.
enum RecordOutcome {
    New,
    /// The object was recorded before, or is excluded.
    Known,
    /// The object was recorded before with another type.
    OfAnotherType,
}

/// A listing that reads the trees one after another.
struct Lister<'l, 'a> {
    walk: &'l mut ObjectSelection<'a>,
    /// The trees that were listed.
    trees: HashSet<ObjectId>,
    /// The other objects that were listed.
    others: HashSet<ObjectId>,
}

impl<'l, 'a> Lister<'l, 'a> {
    fn new(walk: &'l mut ObjectSelection<'a>) -> Self {
        Lister {
            walk,
            trees: HashSet::new(),
            others: HashSet::new(),
        }
    }

    fn list<E: From<Error>>(
        &mut self,
        listing: &ObjectListing<'_>,
        visit: VisitObject<'_, E>,
    ) -> Result<(), E> {
        for named in listing.named {
            match self.walk.existing_kind(&named.id)? {
                ObjectKind::Tree => self.list_tree(&named.id, named.name.clone(), visit)?,
                _ if self.is_new(&named.id, false)? => visit(&named.id, named.name.as_bstr())?,
                _ => {}
            }
        }
        for tree in listing.trees {
            self.walk.check()?;
            self.list_tree(tree, BString::default(), visit)?;
        }
        Ok(())
    }

    /// Records `id` as listed.
    fn record(&mut self, id: &oid, is_tree: bool) -> RecordOutcome {
        if self.walk.hidden.contains(id) {
            return RecordOutcome::Known;
        }
        let (same, other) = match is_tree {
            true => (&mut self.trees, &self.others),
            false => (&mut self.others, &self.trees),
        };
        if other.contains(id) {
            return RecordOutcome::OfAnotherType;
        }
        match same.insert(id.to_owned()) {
            true => {
                self.walk.meter.add(1);
                RecordOutcome::New
            }
            false => RecordOutcome::Known,
        }
    }

    /// Records `id`. Returns whether it is new.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the object was listed with another type.
    fn is_new(&mut self, id: &oid, is_tree: bool) -> Result<bool> {
        match self.record(id, is_tree) {
            RecordOutcome::New => Ok(true),
            RecordOutcome::Known => Ok(false),
            RecordOutcome::OfAnotherType => {
                let (kind, wanted) = match is_tree {
                    true => ("blob", "tree"),
                    false => ("tree", "blob"),
                };
                let message = format!("object {id} is a {kind}, not a {wanted}");
                Err(Error::new(ErrorKind::Object, message))
            }
        }
    }

    fn list_tree<E: From<Error>>(
        &mut self,
        root: &oid,
        mut path: BString,
        visit: VisitObject<'_, E>,
    ) -> Result<(), E> {
        if !self.is_new(root, true)? {
            return Ok(());
        }
        let mut open = vec![self.open(root, path.len())?];
        visit(root, path.as_bstr())?;
        while let Some(tree) = open.last_mut() {
            path.truncate(tree.path_len);
            let rest = &tree.content[tree.done..];
            let Some(entry) = TreeEntries::new(rest, root.kind().len_in_bytes()).next() else {
                self.walk.buffer = open.pop().map(|tree| tree.content).unwrap_or_default();
                continue;
            };
            tree.done += entry.size_bytes();
            let is_tree = entry.is_directory();
            let Ok(id) = ObjectId::try_from(entry.id) else {
                continue;
            };
            if entry.is_submodule() {
                continue;
            }
            match self.record(&id, is_tree) {
                RecordOutcome::New => {}
                RecordOutcome::Known => continue,
                RecordOutcome::OfAnotherType => {
                    let (name, tree) = (entry.name.as_bstr(), tree.id);
                    let wanted = if is_tree { "tree" } else { "blob" };
                    let message = format!(
                        "entry '{name}' in tree {tree} has {wanted} mode, but is not a {wanted}"
                    );
                    return Err(Error::new(ErrorKind::Object, message).into());
                }
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name);
            if is_tree {
                open.push(self.open(&id, path.len())?);
            } else {
                must_exist(&self.walk.store, &id)?;
            }
            visit(&id, path.as_bstr())?;
        }
        Ok(())
    }

    fn open(&mut self, id: &oid, path_len: usize) -> Result<VisitedTreeEntries> {
        Ok(VisitedTreeEntries {
            id: id.to_owned(),
            content: self.walk.read_tree(id)?,
            done: 0,
            path_len,
        })
    }
}

/// Checks that an object to be listed exists.
fn must_exist(store: &pronto_odb::Store, id: &oid) -> Result<()> {
    let is_here = store.contains(id).map_err(from_odb)?;
    // In a partial clone, reading fetches the missing object.
    if is_here || store.header(id).map_err(from_odb)?.is_some() {
        return Ok(());
    }
    let message = format!("missing blob object '{id}'");
    Err(Error::new(ErrorKind::MissingObject, message))
}
