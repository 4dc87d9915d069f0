//! Selects trees and blobs of commits if most objects of a pack are selected. The links of all trees of
//! the pack are computed beforehand, and the walk uses row numbers.
//!
//! Objects of this pack have the row numbers of its index; all other objects follow in the order in
//! which they are visited. If the delta base of a tree was visited before, only the entries that differ
//! from the base are examined.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_object::TreeEntries;
use pronto_odb::{LinkedPack, Store};
use pronto_pack::bitmap::name_hash;
use pronto_pack::pack::{LinkTarget, TreeEntryKind};
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};

/// A tree or blob that the walk visits for the first time.
pub(super) struct LinkedObject<'a> {
    pub(super) id: ObjectId,
    /// The hash of its path.
    pub(super) name_hash: u32,
    pub(super) path: &'a BStr,
    /// Whether the object is known to exist.
    pub(super) is_stored: bool,
}

/// A walk over trees.
pub(super) struct LinkedWalk<'a> {
    store: &'a Store,
    pack: &'a LinkedPack,
    outside: HashMap<ObjectId, u32>,
    outside_ids: Vec<ObjectId>,
    /// The visited objects, one bit for each number.
    seen: NumberSet,
    /// The trees whose entries were all visited.
    done: NumberSet,
    items: Vec<UnvisitedEntry<'a>>,
    frames: Vec<VisitedTree>,
    path: BString,
    buffer: Vec<u8>,
}

/// An entry that was not visited before its tree was opened.
struct UnvisitedEntry<'a> {
    number: u32,
    is_tree: bool,
    name: LinkName<'a>,
}

enum LinkName<'a> {
    Known(&'a [u8]),
    Own(Box<[u8]>),
}

/// A tree whose entries are being visited.
struct VisitedTree {
    number: u32,
    /// The range of its entries in the items: the start, the next one and the end.
    start: usize,
    next: usize,
    end: usize,
    path_len: usize,
    path_hash: u32,
}

/// A growing set of numbers.
#[derive(Default)]
struct NumberSet(Vec<u64>);

impl NumberSet {
    fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    fn insert(&mut self, number: u32) -> bool {
        let place = number as usize / 64;
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        let (word, bit) = (&mut self.0[place], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

impl<'a> LinkedWalk<'a> {
    pub(super) fn new(store: &'a Store, pack: &'a LinkedPack) -> Self {
        LinkedWalk {
            store,
            pack,
            outside: HashMap::new(),
            outside_ids: Vec::new(),
            seen: NumberSet::default(),
            done: NumberSet::default(),
            items: Vec::new(),
            frames: Vec::new(),
            path: BString::default(),
            buffer: Vec::new(),
        }
    }

    /// Records `id`. Returns whether it is new.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
    pub(super) fn mark(&mut self, id: &oid) -> Result<bool> {
        let number = self.number(id)?;
        Ok(self.seen.insert(number))
    }

    /// Calls `visit` with the tree `root`, which is at `path`, and all objects below it that were not
    /// visited before. A tree precedes its entries.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tree is missing or malformed, or if `visit` fails.
    pub(super) fn tree<E: From<Error>>(
        &mut self,
        root: &oid,
        path: &BStr,
        mut visit: impl FnMut(&LinkedObject<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let number = self.number(root)?;
        if !self.seen.insert(number) {
            return Ok(());
        }
        self.path = path.to_owned();
        let name = name_hash(0, path);
        visit(&LinkedObject {
            id: root.to_owned(),
            name_hash: name,
            path,
            is_stored: true,
        })?;
        self.open(
            number,
            name_hash(name, if path.is_empty() { b"" } else { b"/" }),
        )?;
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                let (number, start) = (frame.number, frame.start);
                self.done.insert(number);
                self.items.truncate(start);
                self.frames.pop();
                continue;
            }
            let (place, hash) = (frame.next, frame.path_hash);
            frame.next += 1;
            self.path.truncate(frame.path_len);
            let item = &self.items[place];
            let (number, is_tree) = (item.number, item.is_tree);
            if !self.seen.insert(number) {
                continue;
            }
            let name = match &item.name {
                LinkName::Known(name) => name,
                LinkName::Own(name) => &name[..],
            };
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let hash = name_hash(hash, name);
            visit(&LinkedObject {
                id: self.id(number)?,
                name_hash: hash,
                path: self.path.as_bstr(),
                is_stored: is_tree || number < self.pack.len(),
            })?;
            if is_tree {
                self.open(number, name_hash(hash, b"/"))?;
            }
        }
        Ok(())
    }

    /// Lists the entries of a tree that were not visited before.
    fn open(&mut self, number: u32, path_hash: u32) -> Result<()> {
        let start = self.items.len();
        let pack = self.pack;
        let (done, mut outside) = (&self.done, Vec::new());
        let (seen, items) = (&self.seen, &mut self.items);
        let is_known = pack.links().each_new(
            number,
            |row| seen.contains(row),
            |base| done.contains(base),
            |child, to, name| {
                let number = match to {
                    LinkTarget::Row(row) => row,
                    LinkTarget::Outside(id) => {
                        outside.push((items.len(), *id));
                        0
                    }
                };
                items.push(UnvisitedEntry {
                    number,
                    is_tree: child == TreeEntryKind::Tree,
                    name: LinkName::Known(name),
                });
            },
        );
        for (place, id) in outside {
            self.items[place].number = self.number(&id)?;
        }
        if !is_known {
            self.read(number)?;
        }
        self.frames.push(VisitedTree {
            number,
            start,
            next: start,
            end: self.items.len(),
            path_len: self.path.len(),
            path_hash,
        });
        Ok(())
    }

    /// Lists the new entries of a tree without precomputed links.
    fn read(&mut self, number: u32) -> Result<()> {
        let id = self.id(number)?;
        let mut content = std::mem::take(&mut self.buffer);
        let found = self.store.find(&id, &mut content).map_err(from_odb)?;
        if found != Some(ObjectKind::Tree) {
            let message = format!("bad tree object {id}");
            return Err(Error::new(ErrorKind::Object, message));
        }
        for entry in TreeEntries::new(&content, id.kind().len_in_bytes()) {
            let Ok(id) = ObjectId::try_from(entry.id) else {
                continue;
            };
            if entry.is_submodule() {
                continue;
            }
            let number = self.number(&id)?;
            if !self.seen.contains(number) {
                self.items.push(UnvisitedEntry {
                    number,
                    is_tree: entry.is_directory(),
                    name: LinkName::Own(entry.name.into()),
                });
            }
        }
        self.buffer = content;
        Ok(())
    }

    fn number(&mut self, id: &oid) -> Result<u32> {
        if let Some(row) = self.pack.row(id).map_err(from_odb)? {
            return Ok(row);
        }
        if let Some(number) = self.outside.get(id) {
            return Ok(*number);
        }
        let number = self.pack.len() as usize + self.outside_ids.len();
        let number = u32::try_from(number)
            .map_err(|_| Error::new(ErrorKind::Object, "too many objects for one walk"))?;
        self.outside.insert(id.to_owned(), number);
        self.outside_ids.push(id.to_owned());
        Ok(number)
    }

    fn id(&self, number: u32) -> Result<ObjectId> {
        match number.checked_sub(self.pack.len()) {
            None => self.pack.id(number).map_err(from_odb),
            Some(place) => Ok(self.outside_ids[place as usize]),
        }
    }
}
