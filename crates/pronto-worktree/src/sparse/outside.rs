//! Directories that are completely outside of the sparse-checkout patterns.

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Cover, EntryRef, Flags, mode};

use super::Sparse;

/// Returns the topmost directories (without a slash at the end) that a cone excludes completely and in
/// which all of `entries` have the skip-worktree bit. Returns none if there are conflicts or the
/// patterns are not in cone mode.
pub fn outside(entries: &[EntryRef<'_>], sparse: &Sparse) -> Vec<BString> {
    let mut found = Vec::new();
    if sparse.is_cone() && entries.iter().all(|entry| entry.stage() == 0) {
        search(entries, sparse, &mut found);
    }
    found
}

/// A directory that the search has entered.
struct SparseDirectory {
    /// The position after its last entry.
    end: usize,
    /// The length of its path with a slash.
    prefix_len: usize,
}

fn search(entries: &[EntryRef<'_>], sparse: &Sparse, found: &mut Vec<BString>) {
    let mut levels = vec![SparseDirectory {
        end: entries.len(),
        prefix_len: 0,
    }];
    let mut at = 0;
    while let Some(level) = levels.last() {
        if at >= level.end {
            levels.pop();
            continue;
        }
        let path: &BStr = entries[at].path;
        let rest = path.get(level.prefix_len..).unwrap_or_default();
        let Some(slash) = rest.find_byte(b'/') else {
            at += 1;
            continue;
        };
        let end = level.prefix_len + slash;
        let rest = &entries[at..level.end];
        let count = rest.partition_point(|entry| entry.path.starts_with(&path[..=end]));
        let directory = path[..end].as_bstr();
        match sparse.cover(directory) {
            Cover::Whole => {}
            Cover::Nothing if rest[..count].iter().all(is_absent) => {
                found.push(directory.to_owned());
            }
            _ => {
                levels.push(SparseDirectory {
                    end: at + count,
                    prefix_len: end + 1,
                });
                continue;
            }
        }
        at += count.max(1);
    }
}

fn is_absent(entry: &EntryRef<'_>) -> bool {
    entry.flags.contains(Flags::SKIP_WORKTREE) && entry.mode & mode::TYPE != mode::GITLINK
}
