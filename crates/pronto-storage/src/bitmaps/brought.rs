//! The objects that a commit introduces: trees and blobs that no parent has at the same path.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bstr::ByteSlice as _;
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::pool::{self, Workers};
use pronto_object::{TreeEntries, TreeEntry};
use pronto_pack::bitmap::name_hash;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};

use super::commits::{BitmapCommitNumber, Ordered};
use super::{BitmapContext, BitmapObjects};

/// The number of parents with which a commit is compared. More parents would save little.
const COMPARED: usize = 2;

/// The introduced objects of all commits, as bits.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    parts: Vec<WorkerBits>,
    /// For each commit, the number of its part and the range in that part.
    places: Vec<(u32, std::ops::Range<usize>)>,
}

/// The results of one worker.
#[derive(Debug, Default)]
struct WorkerBits {
    commits: Vec<(BitmapCommitNumber, std::ops::Range<usize>)>,
    bits: Vec<u32>,
    /// The name hash of each bit in `bits`.
    hashes: Vec<u32>,
}

impl Brought {
    /// Returns the bits of the objects that `commit` introduces.
    pub(super) fn of(&self, commit: BitmapCommitNumber) -> &[u32] {
        let (part, range) = &self.places[commit as usize];
        &self.parts[*part as usize].bits[range.clone()]
    }

    /// Calls `found` with the bit and the name hash of each introduced object. Commits precede their
    /// parents.
    pub(super) fn for_each_name_hash(&self, mut found: impl FnMut(u32, u32)) {
        for (part, range) in &self.places {
            let part = &self.parts[*part as usize];
            let hashes = &part.hashes[range.clone()];
            let pairs = part.bits[range.clone()].iter().zip(hashes);
            pairs.for_each(|(bit, hash)| found(*bit, *hash));
        }
    }
}

/// Compares all commits with their parents, on all processors.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if an object is not in `objects`, [`ErrorKind::Object`] if a tree
/// cannot be read, or [`ErrorKind::Interrupted`].
pub(super) fn brought(
    work: &BitmapContext<'_>,
    objects: &BitmapObjects<'_>,
    history: &Ordered,
) -> Result<Brought> {
    let parts: Mutex<Vec<WorkerBits>> = Mutex::default();
    let failed: Mutex<Option<Error>> = Mutex::default();
    let count = history.commits.len();
    pool::run(
        Workers::Exactly(pool::cores().min(1 + count / 256)),
        count,
        || TreeComparison::new(work, objects),
        |comparison, numbers| {
            for number in numbers {
                if let Err(error) = comparison.commit(history, number as BitmapCommitNumber) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        },
        |comparison| {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.push(comparison.part);
        },
    );
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut all = Brought {
        parts: parts.into_inner().unwrap_or_else(PoisonError::into_inner),
        places: vec![(0, 0..0); count],
    };
    for (number, part) in all.parts.iter_mut().enumerate() {
        for (commit, range) in std::mem::take(&mut part.commits) {
            all.places[commit as usize] = (number as u32, range);
        }
    }
    Ok(all)
}

/// A tree of a commit, and the trees at the same path in its parents.
struct ComparedTree {
    tree: ObjectId,
    /// The hash of the path of the tree.
    path: u32,
    others: [Option<ObjectId>; COMPARED],
}

struct TreeComparison<'a> {
    work: &'a BitmapContext<'a>,
    objects: &'a BitmapObjects<'a>,
    part: WorkerBits,
    places: Vec<ComparedTree>,
    /// The trees that were visited for this commit. A tree at several paths is visited once: all its
    /// entries are introduced, or in a parent.
    seen: HashSet<u32>,
    content: Vec<u8>,
    others: [Vec<u8>; COMPARED],
}

impl<'a> TreeComparison<'a> {
    fn new(work: &'a BitmapContext<'a>, objects: &'a BitmapObjects<'a>) -> Self {
        TreeComparison {
            work,
            objects,
            part: WorkerBits::default(),
            places: Vec::new(),
            seen: HashSet::new(),
            content: Vec::new(),
            others: Default::default(),
        }
    }

    fn commit(&mut self, history: &Ordered, number: BitmapCommitNumber) -> Result<()> {
        self.work.check()?;
        let start = self.part.bits.len();
        let tree = history.commits[number as usize].tree;
        let parents = history.parents(number).iter();
        let mut parents = parents.map(|parent| history.commits[*parent as usize].tree);
        if !parents.clone().any(|parent| parent == tree) {
            let others = std::array::from_fn(|_| parents.next());
            self.seen.clear();
            self.bring(&tree, 0)?;
            self.places.push(ComparedTree {
                tree,
                path: 0,
                others,
            });
            while let Some(place) = self.places.pop() {
                self.compare(&place)?;
            }
        }
        let range = start..self.part.bits.len();
        self.part.commits.push((number, range));
        Ok(())
    }

    /// Records that the commit introduces `id`. Returns the bit of the object.
    fn bring(&mut self, id: &oid, hash: u32) -> Result<u32> {
        let bit = self.objects.bit(id)?;
        self.part.bits.push(bit);
        self.part.hashes.push(hash);
        Ok(bit)
    }

    fn compare(&mut self, place: &ComparedTree) -> Result<()> {
        let mut content = std::mem::take(&mut self.content);
        let mut others = std::mem::take(&mut self.others);
        self.read(&place.tree, &mut content)?;
        for (id, other) in place.others.iter().zip(&mut others) {
            other.clear();
            if let Some(id) = id {
                self.read(id, other)?;
            }
        }
        let mut entries = ComparedEntries {
            rest: &content,
            others: others.each_ref().map(Vec::as_slice),
            id_len: place.tree.kind().len_in_bytes(),
        };
        while let Some((entry, counterparts)) = entries.next_new() {
            if entry.is_submodule() {
                continue;
            }
            let id = ObjectId::from_bytes_or_panic(entry.id);
            let hash = name_hash(place.path, entry.name);
            let bit = self.bring(&id, hash)?;
            if entry.is_directory() && self.seen.insert(bit) {
                self.places.push(ComparedTree {
                    tree: id,
                    path: name_hash(hash, b"/"),
                    others: counterparts,
                });
            }
        }
        let is_whole = entries.rest.is_empty();
        (self.content, self.others) = (content, others);
        match is_whole {
            true => Ok(()),
            false => {
                let message = format!("malformed tree {}", place.tree);
                Err(Error::new(ErrorKind::Corrupt, message))
            }
        }
    }

    fn read(&self, id: &oid, out: &mut Vec<u8>) -> Result<()> {
        match self.work.store.find(id, out).map_err(from_odb)? {
            Some(ObjectKind::Tree) => Ok(()),
            _ => {
                let message = format!("unable to read tree ({id})");
                Err(Error::new(ErrorKind::Object, message))
            }
        }
    }
}

/// The entries of a tree, and the entries of the trees at the same path in the parents.
struct ComparedEntries<'a> {
    rest: &'a [u8],
    others: [&'a [u8]; COMPARED],
    id_len: usize,
}

/// Returns whether `entry` precedes `other` in a tree. Directories are ordered as if their names ended
/// with a slash.
fn is_before(entry: &TreeEntry<'_>, other: &TreeEntry<'_>) -> bool {
    let common = entry.name.len().min(other.name.len());
    let next = |entry: &TreeEntry<'_>| {
        let ending = if entry.is_directory() { b'/' } else { 0 };
        entry.name.get(common).copied().unwrap_or(ending)
    };
    match entry.name[..common].cmp(&other.name[..common]) {
        Ordering::Equal => next(entry) < next(other),
        order => order.is_lt(),
    }
}

impl<'a> ComparedEntries<'a> {
    /// Returns the next entry that no parent has under this name, and the directories of this name in
    /// the parents. Returns `None` at the end, or if the rest is malformed.
    fn next_new(&mut self) -> Option<(TreeEntry<'a>, [Option<ObjectId>; COMPARED])> {
        loop {
            self.skip_same();
            let entry = TreeEntries::new(self.rest, self.id_len).next()?;
            self.rest = &self.rest[entry.size_bytes()..];
            let mut is_new = true;
            let mut counterparts = [None; COMPARED];
            for (other, counterpart) in self.others.iter_mut().zip(&mut counterparts) {
                let Some(found) = take(other, &entry, self.id_len) else {
                    continue;
                };
                is_new &= found.id != entry.id || found.is_submodule() != entry.is_submodule();
                if found.is_directory() {
                    *counterpart = Some(ObjectId::from_bytes_or_panic(found.id));
                }
            }
            if is_new {
                return Some((entry, counterparts));
            }
        }
    }

    /// Skips the entries that are identical to those of the first parent, which are almost all.
    fn skip_same(&mut self) {
        let [first, others @ ..] = &mut self.others;
        let common = common_len(self.rest, first);
        let mut len = 0;
        while let Some(end) = self.rest[len..common].find_byte(0) {
            let next = len + end + 1 + self.id_len;
            if next > common {
                break;
            }
            len = next;
        }
        let (same, rest) = self.rest.split_at(len);
        (self.rest, *first) = (rest, &first[len..]);
        for other in others {
            // Otherwise the entries are compared one by one if there is a new entry to look up.
            *other = other.strip_prefix(same).unwrap_or(other);
        }
    }
}

/// Returns the length of the common prefix in bytes.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 64;
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let same = steps.take_while(|(one, other)| one == other).count() * STEP;
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// Advances `other` past the position of `entry`. Returns the entry there, if it has the same name.
fn take<'a>(other: &mut &'a [u8], entry: &TreeEntry<'_>, id_len: usize) -> Option<TreeEntry<'a>> {
    loop {
        let found = TreeEntries::new(other, id_len).next()?;
        let is_same = found.name == entry.name && found.is_directory() == entry.is_directory();
        if !is_same && !is_before(&found, entry) {
            return None;
        }
        *other = &other[found.size_bytes()..];
        if is_same {
            return Some(found);
        }
    }
}
