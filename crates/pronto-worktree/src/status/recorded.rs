//! The untracked names that a cache holds, without a walk.

use super::Untracked;
use crate::names::{Name, compare};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, TrailerDigester};
use pronto_index::{Index, NamesDigest, UntrackedCache, UntrackedDirectory, mode};
use std::ops::Range;

/// Returns the untracked names that `cache` holds, sorted. `None` unless everything in it is valid
/// and it lists what `untracked` asks for. Linear in the directories and names.
pub fn recorded(cache: &UntrackedCache<'_>, untracked: Untracked) -> Option<Vec<BString>> {
    let is_all = cache.flags == UntrackedCache::ALL;
    // Without names of directories both kinds of caches hold the same.
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

/// Calls `each` with the untracked names of the directory at `node`, whose path is `path`, and of
/// all below it, in order.
pub(super) fn each_recorded(
    cache: &UntrackedCache<'_>,
    node: usize,
    path: &mut BString,
    each: &mut dyn FnMut(&BStr),
) {
    let len = path.len();
    let children = cache.children(node).map(|child| Recorded {
        name: cache.directory(child).name.as_ref(),
        is_directory: true,
        child: Some(child),
    });
    // Directories are judged by what is known of them, if it is.
    let names = cache.directory(node).untracked.iter().map(Recorded::of);
    let names = names.filter(|it| !it.is_directory || cache.child(node, it.name).is_none());
    let mut all: Vec<Recorded<'_>> = children.chain(names).collect();
    all.sort_unstable_by(|one, other| {
        compare(
            (one.name, one.is_directory),
            (other.name, other.is_directory),
        )
    });
    for recorded in all {
        path.extend_from_slice(recorded.name);
        if recorded.is_directory {
            path.push(b'/');
        }
        match recorded.child {
            Some(child) if !cache.directory(child).check_only => {
                each_recorded(cache, child, path, each);
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

/// A name in a directory of a cache.
struct Recorded<'a> {
    /// The name without a slash.
    name: &'a BStr,
    is_directory: bool,
    /// Its position in the cache, if it is a known directory.
    child: Option<usize>,
}

impl<'a> Recorded<'a> {
    /// An untracked name, which ends with a slash if it is a directory.
    fn of(name: &'a BStr) -> Self {
        let bare = name.strip_suffix(b"/");
        Recorded {
            name: bare.map_or(name, ByteSlice::as_bstr),
            is_directory: bare.is_some(),
            child: None,
        }
    }
}

/// Returns a digest of the tracked names of each directory of `cache`, with the content of tracked
/// ignore files. While a digest stays the same, a change of the index does not change what is
/// untracked in that directory. Zeros stand for directories without tracked files. Linear in the
/// entries.
pub fn tracked_names(index: &Index, cache: &UntrackedCache<'_>) -> Vec<NamesDigest> {
    let mut digests = vec![NamesDigest::default(); cache.len()];
    if !cache.is_empty() {
        let mut digesting = Digesting {
            index,
            cache,
            digests: &mut digests,
            buffer: Vec::new(),
        };
        digesting.directory(0, 0..index.len(), 0);
    }
    digests
}

struct Digesting<'a> {
    index: &'a Index,
    cache: &'a UntrackedCache<'a>,
    digests: &'a mut [NamesDigest],
    buffer: Vec<u8>,
}

impl Digesting<'_> {
    /// Digests the names in the directory of `entries`, whose path takes `prefix_len` bytes of
    /// theirs and which is at `node` of the cache, and in those below it.
    fn directory(&mut self, node: usize, entries: Range<usize>, prefix_len: usize) {
        let names = Name::all(self.index, entries, prefix_len);
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
                self.directory(child, name.entries, prefix_len);
            }
        }
    }
}
