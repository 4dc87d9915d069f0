//! Computes the trees of an index. Directories with a cached tree are not entered.

use std::fmt;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, Flags, Index, mode};

use crate::names::{Name, is_sparse};
use crate::objects::check_depth;
use crate::{Error, ErrorKind};

/// The number of faults that are reported.
const MOST_FAULTS: usize = 10;

/// The object access of making trees.
pub struct Workshop<'a> {
    /// Whether the object is there.
    pub contains: &'a mut dyn FnMut(&oid) -> Result<bool, Error>,
    /// Adds a tree of this content, and returns its id.
    pub write: &'a mut dyn FnMut(&[u8]) -> Result<ObjectId, Error>,
    /// Objects of entries need not be there.
    pub missing_ok: bool,
}

/// Why an index makes no trees. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An entry in conflict.
    Unmerged {
        /// Its path.
        path: BString,
        /// Its object.
        id: ObjectId,
    },
    /// A file where a directory is.
    FileAndDirectory {
        /// The path of the file.
        file: BString,
        /// A path in the directory.
        path: BString,
    },
    /// There are more, which are not listed.
    More,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unmerged { path, id } => write!(f, "{path}: unmerged ({id})"),
            Fault::FileAndDirectory { file, path } => write!(f, "You have both {file} and {path}"),
            Fault::More => f.write_str("..."),
        }
    }
}

/// Why `index` makes no trees: entries in conflict, or else files where directories are. Empty if
/// it does.
pub fn faults(index: &Index) -> Vec<Fault> {
    let unmerged = index.iter().filter(|entry| entry.stage() != 0);
    let mut faults: Vec<Fault> = unmerged
        .map(|entry| Fault::Unmerged {
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
            .map(|(file, path)| Fault::FileAndDirectory {
                file: file.to_owned(),
                path: path.to_owned(),
            })
            .take(MOST_FAULTS + 1)
            .collect();
    }
    if let Some(last) = faults.get_mut(MOST_FAULTS) {
        *last = Fault::More;
    }
    faults
}

/// Returns whether every directory of `index` has a cached tree that exists.
///
/// # Errors
/// Those of `contains`.
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

/// Makes the trees of `index`, which has no [`faults`], and gives the cached trees that it has by
/// that, and the uppermost tree. Entries that are only announced are in no tree, and no cached
/// tree is known of their directories.
///
/// # Errors
/// [`ErrorKind::MissingObject`] in Git's words for an entry whose object is not there; those of
/// the workshop.
pub fn make(
    index: &Index,
    cached: Option<&CachedTree>,
    workshop: &mut Workshop<'_>,
) -> Result<(ObjectId, CachedTree), Error> {
    let mut maker = Maker {
        index,
        workshop,
        builder: CachedTree::builder(index.kind().null()),
        spare: Vec::new(),
    };
    let cached = cached.map(CachedTree::root);
    let made = maker.run(0..index.len(), cached)?;
    Ok((made.id, maker.builder.finish()))
}

struct Maker<'a, 'w> {
    index: &'a Index,
    workshop: &'a mut Workshop<'w>,
    builder: CachedTreeBuilder,
    /// Buffers for the content of trees.
    spare: Vec<Vec<u8>>,
}

/// A directory whose tree is being made. They are on a stack on the heap, because paths are nested
/// deeper than the stacks of threads permit.
struct Level<'a> {
    /// The name in the directory above.
    name: &'a [u8],
    /// The entries that are not in the tree yet.
    entries: Range<usize>,
    prefix_len: usize,
    cached: Option<CachedDirectory<'a>>,
    content: Vec<u8>,
    /// Whether an entry so far is only announced.
    announces: bool,
}

/// A directory whose tree is made.
struct Made {
    id: ObjectId,
    /// Whether an entry below is only announced.
    announces: bool,
}

impl<'a> Maker<'a, '_> {
    fn run(
        &mut self,
        entries: Range<usize>,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<Made, Error> {
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
            let name = Name::at(self.index, start, end, level.prefix_len);
            level.entries.start = name.entries.end;
            if !name.is_directory {
                level.announces |= self.file(&name, &mut level.content)?;
            } else if let Some(below) = self.below(name, &mut level)? {
                outer.push(std::mem::replace(&mut level, below));
                check_depth(outer.len()).map_err(|error| error.map_kind(|_| ErrorKind::Index))?;
            }
        }
    }

    /// Writes the tree of the directory that the builder is in.
    fn write(&mut self, level: Level<'_>) -> Result<Made, Error> {
        let id = (self.workshop.write)(&level.content)?;
        self.builder.set_id(id);
        self.spare.push(level.content);
        Ok(Made {
            id,
            announces: level.announces,
        })
    }

    /// The tree of the directory that the builder is in, if it need not be made.
    fn known(
        &mut self,
        entries: &Range<usize>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'_>>,
    ) -> Result<Option<Made>, Error> {
        let made = |id: &oid| {
            Some(Made {
                id: id.to_owned(),
                announces: false,
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
    ) -> Level<'a> {
        let mut content = self.spare.pop().unwrap_or_default();
        content.clear();
        Level {
            name,
            entries,
            prefix_len,
            cached,
            content,
            announces: false,
        }
    }

    /// Enters a directory of `above`. Returns it if its tree is to be made.
    fn below(&mut self, name: Name<'a>, above: &mut Level<'a>) -> Result<Option<Level<'a>>, Error> {
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

    /// Leaves the directory `name` of `above`, whose tree is made.
    fn leave(&mut self, name: &[u8], made: &Made, above: &mut Level<'_>) {
        self.builder.leave();
        above.announces |= made.announces;
        if !(made.announces && made.id.is_empty_tree()) {
            push(&mut above.content, mode::TREE, name, &made.id);
        }
    }

    fn file(&mut self, name: &Name<'_>, content: &mut Vec<u8>) -> Result<bool, Error> {
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
