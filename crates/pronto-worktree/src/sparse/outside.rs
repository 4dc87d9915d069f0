//! Directories that are completely outside of a sparse checkout.

use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Cover, EntryRef, Flags, mode};

use super::Sparse;

/// The uppermost directories (without a slash at the end) of which nothing is to be in the
/// worktree by a cone, and of which no entry of `entries` says otherwise; none if there are
/// conflicts or the patterns are no cone.
pub fn outside(entries: &[EntryRef<'_>], sparse: &Sparse) -> Vec<BString> {
    let mut found = Vec::new();
    if sparse.is_cone() && entries.iter().all(|entry| entry.stage() == 0) {
        below(entries, 0..entries.len(), 0, sparse, &mut found);
    }
    found
}

fn below(
    entries: &[EntryRef<'_>],
    range: Range<usize>,
    prefix_len: usize,
    sparse: &Sparse,
    found: &mut Vec<BString>,
) {
    let mut at = range.start;
    while at < range.end {
        let path: &BStr = entries[at].path;
        let rest = path.get(prefix_len..).unwrap_or_default();
        let Some(slash) = rest.find_byte(b'/') else {
            at += 1;
            continue;
        };
        let end = prefix_len + slash;
        let rest = &entries[at..range.end];
        let count = rest.partition_point(|entry| entry.path.starts_with(&path[..=end]));
        let directory = path[..end].as_bstr();
        match sparse.cover(directory) {
            Cover::Whole => {}
            Cover::Nothing if rest[..count].iter().all(is_absent) => {
                found.push(directory.to_owned());
            }
            _ => below(entries, at..at + count, end + 1, sparse, found),
        }
        at += count.max(1);
    }
}

fn is_absent(entry: &EntryRef<'_>) -> bool {
    entry.flags.contains(Flags::SKIP_WORKTREE) && entry.mode & mode::TYPE != mode::GITLINK
}
