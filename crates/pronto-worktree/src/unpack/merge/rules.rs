//! Decides the result for one path, by the tables of git-read-tree(1) and trivial-merge.

use pronto_index::EntryRef;

use super::super::{TreeFile, is_entry};

/// A rule for merging trees and the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeRule {
    /// The index becomes equal to the single tree (one-tree merge).
    One,
    /// From the first tree to the second, with staged changes kept (two-tree merge).
    Two {
        /// Whether there is no index file yet, so that no path was removed from it.
        initial: bool,
    },
    /// Our side (the second tree) and theirs (the third), with their merge base (the first).
    Three {
        /// Also resolve removals and identical additions (`--aggressive`).
        aggressive: bool,
    },
}

/// The entry of a tree at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeSide {
    Nothing,
    /// One tree has a file and another a directory at this path.
    OtherKind,
    File(TreeFile),
}

impl TreeSide {
    fn side(self) -> Option<TreeFile> {
        match self {
            TreeSide::File(side) => Some(side),
            TreeSide::Nothing | TreeSide::OtherKind => None,
        }
    }
}

/// The result for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeResult {
    /// The path has no entry.
    Nothing,
    /// The entry is kept.
    Keep,
    /// The path gets this entry.
    Become(TreeFile),
    /// The entry is removed.
    Go,
    /// The path has no entry, and no untracked file may exist.
    Free,
    /// The path is in conflict: merge base, ours, theirs.
    Conflict([Option<TreeFile>; 3]),
    /// The merge is refused.
    Refuse,
}

/// Determines the result for one path. `current` is its first entry in the index.
pub(super) fn decide(
    rule: MergeRule,
    reset: bool,
    current: Option<&EntryRef<'_>>,
    slots: &[TreeSide],
) -> MergeResult {
    let slot = |at: usize| slots.get(at).copied().unwrap_or(TreeSide::Nothing);
    match rule {
        MergeRule::One => match (slot(0).side(), current) {
            (Some(side), _) => MergeResult::Become(side),
            (None, Some(_)) => MergeResult::Go,
            (None, None) => MergeResult::Nothing,
        },
        MergeRule::Two { initial } => {
            let (old, new) = (slot(0).side(), slot(1).side());
            match current {
                Some(current) => two_with_entry(current, reset, old, new),
                None => two_without_entry(initial, old, new),
            }
        }
        MergeRule::Three { aggressive } => three(current, aggressive, [slot(0), slot(1), slot(2)]),
    }
}

fn is(current: &EntryRef<'_>, side: Option<TreeFile>) -> bool {
    current.stage() == 0 && side.is_some_and(|side| is_entry(current, side))
}

fn become_or_go(side: Option<TreeFile>) -> MergeResult {
    side.map_or(MergeResult::Go, MergeResult::Become)
}

fn two_with_entry(
    current: &EntryRef<'_>,
    reset: bool,
    old: Option<TreeFile>,
    new: Option<TreeFile>,
) -> MergeResult {
    if current.stage() != 0 {
        return match old == new || reset {
            true => become_or_go(new),
            false => MergeResult::Refuse,
        };
    }
    if old == new || (new.is_some() && is(current, new)) {
        return MergeResult::Keep;
    }
    match is(current, old) {
        true => become_or_go(new),
        false => MergeResult::Refuse,
    }
}

fn two_without_entry(initial: bool, old: Option<TreeFile>, new: Option<TreeFile>) -> MergeResult {
    match (old, new) {
        (None, None) => MergeResult::Nothing,
        (Some(_), None) => MergeResult::Free,
        // The removal of the path is staged.
        (Some(old), Some(new)) if !initial => match old == new {
            true => MergeResult::Nothing,
            false => MergeResult::Refuse,
        },
        (_, Some(new)) => MergeResult::Become(new),
    }
}

fn three(current: Option<&EntryRef<'_>>, aggressive: bool, slots: [TreeSide; 3]) -> MergeResult {
    let [base, ours, theirs] = slots.map(TreeSide::side);
    let is_base = |side| slots[0] != TreeSide::OtherKind && base == side;
    // The sides that did not change the path, if the sides differ.
    let (ours_stayed, theirs_stayed) = match ours == theirs {
        true => (false, false),
        false => (is_base(ours), is_base(theirs)),
    };
    let differs = |side| current.is_some_and(|current| !is(current, side));
    if let Some(new) = theirs
        && slots[1] != TreeSide::OtherKind
        && ours_stayed
        && !theirs_stayed
    {
        // Only their side changed the path. The index may have the change already.
        return match differs(ours) && differs(theirs) {
            true => MergeResult::Refuse,
            false => MergeResult::Become(new),
        };
    }
    if differs(ours) {
        return MergeResult::Refuse;
    }
    if let Some(own) = ours {
        let ours_alone = slots[2] != TreeSide::OtherKind && theirs_stayed && !ours_stayed;
        if ours == theirs || ours_alone {
            return MergeResult::Become(own);
        }
    }
    if ours.is_none() && theirs.is_none() && base.is_none() {
        return MergeResult::Nothing;
    }
    let is_removal = match (ours, theirs) {
        (None, None) => true,
        (None, Some(_)) => theirs_stayed,
        (Some(_), None) => ours_stayed,
        (Some(_), Some(_)) => false,
    };
    if aggressive && is_removal {
        return match (current, ours) {
            (Some(_), _) => MergeResult::Go,
            (None, Some(_)) => MergeResult::Free,
            (None, None) => MergeResult::Nothing,
        };
    }
    let base = base.filter(|_| !ours_stayed || !theirs_stayed);
    MergeResult::Conflict([base, ours, theirs])
}
