//! The untracked names in an untracked cache, without a walk.

use super::Untracked;
use crate::names::{IndexedName, NameSortKey, compare};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, TrailerDigester};
use pronto_index::{Index, NamesDigest, UntrackedCache, UntrackedDirectory, mode};
use std::ops::Range;

/// Returns the untracked names in `cache`, sorted. Returns `None` unless the whole cache is valid and
/// lists the files that `untracked` requests. The cost is linear in the directories and names.
pub fn recorded(cache: &UntrackedCache<'_>, untracked: Untracked) -> Option<Vec<BString>> {
    let is_all = cache.flags == UntrackedCache::ALL;
    // Without names of directories both kinds of caches have the same content.
    let has_directories = |directory: &UntrackedDirectory<'_>| {
        let mut names = directory.untracked.iter();
        directory.check_only || names.any(|name| name.ends_with(b"/"))
    };
    let serves = |directory: &UntrackedDirectory<'_>| match untracked {
        Untracked::No => false,
        Untracked::Normal => !is_all,
        Untracked::All => is_all || !has_directories(directory),
    };
    let mut all = (0..cache.len()).map(|at| cache.directory(at));
    if cache.is_empty() || !all.all(|directory| directory.is_valid && serves(directory)) {
        return None;
    }
    let mut names = Vec::new();
    each_recorded(cache, 0, &mut BString::default(), &mut |path| {
        names.push(path.to_owned());
    });
    debug_assert!(names.is_sorted(), "each directory is sorted");
    Some(names)
}

/// Calls `each` with the untracked names of the directory at `node`, whose path is `path`, and of all
/// directories below, in order.
pub(super) fn each_recorded(
    cache: &UntrackedCache<'_>,
    node: usize,
    path: &mut BString,
    each: &mut dyn FnMut(&BStr),
) {
    let level = |node, outer_len| RecordedDirectory {
        names: names(cache, node).into_iter(),
        outer_len,
    };
    let mut levels = vec![level(node, path.len())];
    while let Some(current) = levels.last_mut() {
        let Some(recorded) = current.names.next() else {
            path.truncate(current.outer_len);
            levels.pop();
            continue;
        };
        let len = path.len();
        path.extend_from_slice(recorded.name);
        if recorded.is_directory {
            path.push(b'/');
        }
        match recorded.child {
            Some(child) if !cache.directory(child).check_only => {
                levels.push(level(child, len));
                continue;
            }
            Some(child) => {
                let mut below = child..cache.end(child);
                if below.any(|at| !cache.directory(at).untracked.is_empty()) {
                    each(path.as_bstr());
                }
            }
            None => each(path.as_bstr()),
        }
        path.truncate(len);
    }
}

/// A directory of a cache whose names are listed.
struct RecordedDirectory<'a> {
    names: std::vec::IntoIter<RecordedName<'a>>,
    /// The length of the path of the parent directory.
    outer_len: usize,
}

/// Returns the names in the directory at `node`, in order.
fn names<'a>(cache: &'a UntrackedCache<'_>, node: usize) -> Vec<RecordedName<'a>> {
    let children = cache.children(node).map(|child| RecordedName {
        name: cache.directory(child).name.as_ref(),
        is_directory: true,
        child: Some(child),
    });
    // Subdirectories with their own data in the cache are listed by these data.
    let names = cache.directory(node).untracked.iter().map(RecordedName::of);
    let names = names.filter(|it| !it.is_directory || cache.child(node, it.name).is_none());
    let mut all: Vec<RecordedName<'a>> = children.chain(names).collect();
    all.sort_unstable_by(|one, other| compare(one.sort_key(), other.sort_key()));
    all
}

/// A name in a directory of a cache.
struct RecordedName<'a> {
    /// The name without a slash.
    name: &'a BStr,
    is_directory: bool,
    /// The position in the cache, if the name is a directory with its own data.
    child: Option<usize>,
}

impl<'a> RecordedName<'a> {
    fn sort_key(&self) -> NameSortKey<'a> {
        NameSortKey {
            name: self.name,
            is_directory: self.is_directory,
        }
    }

    /// Creates the value for an untracked name, which ends with a slash if it is a directory.
    fn of(name: &'a BStr) -> Self {
        let bare = name.strip_suffix(b"/");
        RecordedName {
            name: bare.map_or(name, ByteSlice::as_bstr),
            is_directory: bare.is_some(),
            child: None,
        }
    }
}

/// Returns a digest of the tracked names of each directory of `cache`, with the content of tracked
/// ignore files. While the digest is unchanged, changes of the index do not affect the untracked files
/// of the directory. Directories without tracked files have a digest of zeros. The cost is linear in
/// the entries.
pub fn tracked_names(index: &Index, cache: &UntrackedCache<'_>) -> Vec<NamesDigest> {
    let mut digests = vec![NamesDigest::default(); cache.len()];
    if !cache.is_empty() {
        let mut digesting = Digesting {
            index,
            cache,
            digests: &mut digests,
            buffer: Vec::new(),
        };
        let mut todo = vec![Tracked {
            node: 0,
            entries: 0..index.len(),
            prefix_len: 0,
        }];
        while let Some(directory) = todo.pop() {
            digesting.directory(directory, &mut todo);
        }
    }
    digests
}

struct Digesting<'a> {
    index: &'a Index,
    cache: &'a UntrackedCache<'a>,
    digests: &'a mut [NamesDigest],
    buffer: Vec<u8>,
}

/// A directory with tracked files.
struct Tracked {
    /// The position in the cache.
    node: usize,
    /// The range of its index entries.
    entries: Range<usize>,
    /// The length of its path with a slash.
    prefix_len: usize,
}

impl Digesting<'_> {
    /// Computes the digest of the names in a directory, and adds its subdirectories to `todo`.
    fn directory(&mut self, directory: Tracked, todo: &mut Vec<Tracked>) {
        let Tracked {
            node,
            entries,
            prefix_len,
        } = directory;
        let names = IndexedName::all(self.index, entries, prefix_len);
        self.buffer.clear();
        for name in &names {
            let entry = self.index.entry(name.entries.start);
            let is_link = entry.mode & mode::TYPE == mode::GITLINK;
            self.buffer.push(match (name.is_directory, is_link) {
                (true, _) => b'd',
                (false, true) => b'l',
                (false, false) => b'f',
            });
            self.buffer.extend_from_slice(name.name);
            self.buffer.push(0);
            if name.name == b".gitignore" {
                self.buffer.extend_from_slice(entry.id.as_bytes());
            }
        }
        let mut digester = TrailerDigester::new(Kind::Sha1);
        digester.update(&self.buffer);
        let id = digester.finish();
        self.digests[node] = id.as_slice().first_chunk().copied().unwrap_or_default();
        for name in names.into_iter().filter(|name| name.is_directory) {
            let prefix_len = prefix_len + name.name.len() + 1;
            if let Some(child) = self.cache.child(node, name.name.as_bstr()) {
                todo.push(Tracked {
                    node: child,
                    entries: name.entries,
                    prefix_len,
                });
            }
        }
    }
}
