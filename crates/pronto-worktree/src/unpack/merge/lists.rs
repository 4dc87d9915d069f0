//! Iterates over the entries of several trees side by side.

use super::super::TreeFile;
use super::rules::TreeSide;
use crate::tree_list::ListedTreeEntry;

/// Removes and returns the entry with this name from each list in which it is the next.
pub(super) fn take<'l>(
    lists: &'l [Vec<ListedTreeEntry>],
    cursors: &mut [usize],
    name: &[u8],
    is_directory: bool,
) -> Vec<Option<&'l ListedTreeEntry>> {
    let lists = lists.iter().zip(cursors);
    lists
        .map(|(list, at)| {
            let next = list.get(*at);
            let found =
                next.filter(|next| next.name == name && next.is_directory() == is_directory);
            *at += usize::from(found.is_some());
            found
        })
        .collect()
}

/// Returns the entries of each tree at the name of a file.
pub(super) fn slots(
    lists: &[Vec<ListedTreeEntry>],
    cursors: &[usize],
    found: &[Option<&ListedTreeEntry>],
    name: &[u8],
) -> Vec<TreeSide> {
    let has_directory = |list: &[ListedTreeEntry], from: usize| {
        let later = list[from..]
            .iter()
            .take_while(|entry| entry.name.starts_with(name));
        later
            .into_iter()
            .any(|entry| entry.name == name && entry.is_directory())
    };
    let lists = lists.iter().zip(cursors).zip(found);
    lists
        .map(|((list, from), found)| match found {
            Some(entry) => TreeSide::File(TreeFile {
                id: entry.side.id,
                mode: entry.side.mode,
            }),
            None if has_directory(list, *from) => TreeSide::OtherKind,
            None => TreeSide::Nothing,
        })
        .collect()
}

/// Returns whether each tree has a file with the name of the current directory.
pub(super) fn files<'l>(
    lists: &'l [Vec<ListedTreeEntry>],
    cursors: &'l [usize],
    name: &'l [u8],
) -> impl Iterator<Item = bool> {
    lists.iter().zip(cursors).map(move |(list, at)| {
        let mut earlier = list[..*at]
            .iter()
            .rev()
            .take_while(|entry| entry.name.starts_with(name));
        earlier.any(|entry| entry.name == name && !entry.is_directory())
    })
}
