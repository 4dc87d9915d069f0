//! Computes the trees of an index (`git write-tree`). Directories with a valid cached tree are skipped.

use std::fmt;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, Flags, Index, mode};

use crate::names::{IndexedName, is_sparse};
use crate::objects::check_depth;
use crate::{Error, ErrorKind};

/// The largest number of faults that are reported.
const MOST_FAULTS: usize = 10;

/// The access to objects for writing trees.
pub struct Workshop<'a> {
    /// A callback that returns whether an object exists.
    pub contains: &'a mut dyn FnMut(&oid) -> Result<bool, Error>,
    /// A callback that writes a tree with this content, and returns its id.
    pub write: &'a mut dyn FnMut(&[u8]) -> Result<ObjectId, Error>,
    /// Do not require that the objects of entries exist (`--missing-ok`).
    pub missing_ok: bool,
}

/// The reason for which an index cannot be written as a tree. [`Display`](fmt::Display) writes Git's
/// message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeFault {
    /// An entry is in conflict.
    Unmerged {
        /// The path of the entry.
        path: BString,
        /// The object id of the entry.
        id: ObjectId,
    },
    /// A file has the same path as a directory.
    FileAndDirectory {
        /// The path of the file.
        file: BString,
        /// A path in the directory.
        path: BString,
    },
    /// There are further faults that are not listed.
    More,
}

impl fmt::Display for TreeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeFault::Unmerged { path, id } => write!(f, "{path}: unmerged ({id})"),
            TreeFault::FileAndDirectory { file, path } => {
                write!(f, "You have both {file} and {path}")
            }
            TreeFault::More => f.write_str("..."),
        }
    }
}

/// Returns the reasons for which `index` cannot be written as a tree: entries in conflict, or otherwise
/// files with the path of a directory. The list is empty if the index can be written.
pub fn faults(index: &Index) -> Vec<TreeFault> {
    let unmerged = index.iter().filter(|entry| entry.stage() != 0);
    let mut faults: Vec<TreeFault> = unmerged
        .map(|entry| TreeFault::Unmerged {
            path: entry.path.to_owned(),
            id: entry.id.to_owned(),
        })
        .take(MOST_FAULTS + 1)
        .collect();
    if faults.is_empty() {
        let pairs = (1..index.len()).map(|at| (index.path(at - 1), index.path(at)));
        let is_in = |(file, path): &(&BStr, &BStr)| {
            let rest = path.strip_prefix(file.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        let both = pairs.filter(is_in);
        faults = both
            .map(|(file, path)| TreeFault::FileAndDirectory {
                file: file.to_owned(),
                path: path.to_owned(),
            })
            .take(MOST_FAULTS + 1)
            .collect();
    }
    if let Some(last) = faults.get_mut(MOST_FAULTS) {
        *last = TreeFault::More;
    }
    faults
}

/// Returns whether every directory of `index` has a valid cached tree that exists as an object.
///
/// # Errors
/// Fails if `contains` fails.
pub fn are_known(
    index: &Index,
    cached: Option<&CachedTree>,
    contains: &mut dyn FnMut(&oid) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let Some(cached) = cached else {
        return Ok(false);
    };
    if cached.root().entry_count() != Some(index.len()) {
        return Ok(false);
    }
    let mut todo = vec![cached.root()];
    while let Some(directory) = todo.pop() {
        match directory.id() {
            Some(id) if contains(id)? => todo.extend(directory.children()),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Writes the trees of `index`, which must have no [`faults`]. Returns the id of the root tree and the
/// new cached trees. Intent-to-add entries are not written, and their directories get no cached tree.
///
/// # Errors
/// Fails with [`ErrorKind::MissingObject`] and Git's message if the object of an entry does not exist,
/// or if a callback of the workshop fails.
pub fn make(
    index: &Index,
    cached: Option<&CachedTree>,
    workshop: &mut Workshop<'_>,
) -> Result<(ObjectId, CachedTree), Error> {
    let mut maker = TreeWriter {
        index,
        workshop,
        builder: CachedTree::builder(index.kind().null()),
        spare: Vec::new(),
    };
    let cached = cached.map(CachedTree::root);
    let made = maker.run(0..index.len(), cached)?;
    Ok((made.id, maker.builder.finish()))
}

struct TreeWriter<'a, 'w> {
    index: &'a Index,
    workshop: &'a mut Workshop<'w>,
    builder: CachedTreeBuilder,
    /// Reusable buffers for the content of trees.
    spare: Vec<Vec<u8>>,
}

/// A directory whose tree is being written. Levels are on an explicit stack, because nested paths could
/// overflow the stack of a thread.
struct TreeBuild<'a> {
    /// The name in the parent directory.
    name: &'a [u8],
    /// The entries that are not in the tree yet.
    entries: Range<usize>,
    prefix_len: usize,
    cached: Option<CachedDirectory<'a>>,
    content: Vec<u8>,
    /// Whether an entry so far is intent-to-add.
    has_intent_to_add: bool,
}

/// A directory whose tree was written.
struct FinishedTree {
    id: ObjectId,
    /// Whether an entry below is intent-to-add.
    has_intent_to_add: bool,
}

impl<'a> TreeWriter<'a, '_> {
    fn run(
        &mut self,
        entries: Range<usize>,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<FinishedTree, Error> {
        if let Some(made) = self.known(&entries, 0, cached)? {
            return Ok(made);
        }
        let mut level = self.level(b"", entries, 0, cached);
        let mut outer = Vec::new();
        loop {
            if level.entries.is_empty() {
                let (name, made) = (level.name, self.write(level)?);
                let Some(above) = outer.pop() else {
                    return Ok(made);
                };
                level = above;
                self.leave(name, &made, &mut level);
                continue;
            }
            let (start, end) = (level.entries.start, level.entries.end);
            let name = IndexedName::at(self.index, start, end, level.prefix_len);
            level.entries.start = name.entries.end;
            if !name.is_directory {
                level.has_intent_to_add |= self.file(&name, &mut level.content)?;
            } else if let Some(below) = self.below(name, &mut level)? {
                outer.push(std::mem::replace(&mut level, below));
                check_depth(outer.len()).map_err(|error| error.map_kind(|_| ErrorKind::Index))?;
            }
        }
    }

    /// Writes the tree of the current directory of the builder.
    fn write(&mut self, level: TreeBuild<'_>) -> Result<FinishedTree, Error> {
        let id = (self.workshop.write)(&level.content)?;
        self.builder.set_id(id);
        self.spare.push(level.content);
        Ok(FinishedTree {
            id,
            has_intent_to_add: level.has_intent_to_add,
        })
    }

    /// Returns the tree of the current directory of the builder, if the tree need not be written.
    fn known(
        &mut self,
        entries: &Range<usize>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'_>>,
    ) -> Result<Option<FinishedTree>, Error> {
        let made = |id: &oid| {
            Some(FinishedTree {
                id: id.to_owned(),
                has_intent_to_add: false,
            })
        };
        if let Some(cached) = cached
            && let Some(id) = cached.id()
            && cached.entry_count() == Some(entries.len())
            && (self.workshop.contains)(id)?
        {
            self.builder.set_id(id.to_owned());
            self.builder.copy(cached);
            return Ok(made(id));
        }
        if prefix_len > 0 && is_sparse(self.index, entries, prefix_len) {
            let entry = self.index.entry(entries.start);
            self.builder.set_id(entry.id.to_owned());
            self.builder.add_entries(1);
            return Ok(made(entry.id));
        }
        Ok(None)
    }

    fn level(
        &mut self,
        name: &'a [u8],
        entries: Range<usize>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'a>>,
    ) -> TreeBuild<'a> {
        let mut content = self.spare.pop().unwrap_or_default();
        content.clear();
        TreeBuild {
            name,
            entries,
            prefix_len,
            cached,
            content,
            has_intent_to_add: false,
        }
    }

    /// Enters a subdirectory of `above`. Returns the level if its tree must be written.
    fn below(
        &mut self,
        name: IndexedName<'a>,
        above: &mut TreeBuild<'a>,
    ) -> Result<Option<TreeBuild<'a>>, Error> {
        let cached = above
            .cached
            .and_then(|cached| cached.child(name.name.as_bstr()));
        self.builder
            .enter(name.name.as_bstr(), self.index.kind().null());
        let prefix_len = above.prefix_len + name.name.len() + 1;
        match self.known(&name.entries, prefix_len, cached)? {
            Some(made) => {
                self.leave(name.name, &made, above);
                Ok(None)
            }
            None => Ok(Some(self.level(
                name.name,
                name.entries,
                prefix_len,
                cached,
            ))),
        }
    }

    /// Leaves the subdirectory `name` of `above`, whose tree was written.
    fn leave(&mut self, name: &[u8], made: &FinishedTree, above: &mut TreeBuild<'_>) {
        self.builder.leave();
        above.has_intent_to_add |= made.has_intent_to_add;
        if !(made.has_intent_to_add && made.id.is_empty_tree()) {
            push(&mut above.content, mode::TREE, name, &made.id);
        }
    }

    fn file(&mut self, name: &IndexedName<'_>, content: &mut Vec<u8>) -> Result<bool, Error> {
        let entry = self.index.entry(name.entries.start);
        let needs_object = !self.workshop.missing_ok && entry.mode != mode::GITLINK;
        if entry.id.is_null() || (needs_object && !(self.workshop.contains)(entry.id)?) {
            let (mode, id, path) = (entry.mode, entry.id, entry.path);
            let message = format!("invalid object {mode:06o} {id} for '{path}'");
            return Err(Error::new(ErrorKind::MissingObject, message));
        }
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            self.builder.spoil();
            return Ok(true);
        }
        self.builder.add_entries(1);
        push(content, entry.mode, name.name, entry.id);
        Ok(false)
    }
}

fn push(content: &mut Vec<u8>, mode: u32, name: &[u8], id: &oid) {
    content.extend_from_slice(format!("{mode:o} ").as_bytes());
    content.extend_from_slice(name);
    content.push(0);
    content.extend_from_slice(id.as_bytes());
}
