//! Decides the result for one path, by the tables of git-read-tree(1) and trivial-merge.

use pronto_index::EntryRef;

use super::super::{Side, is_entry};

/// A rule for merging trees and the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
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
pub(super) enum Slot {
    Nothing,
    /// One tree has a file and another a directory at this path.
    OtherKind,
    File(Side),
}

impl Slot {
    fn side(self) -> Option<Side> {
        match self {
            Slot::File(side) => Some(side),
            Slot::Nothing | Slot::OtherKind => None,
        }
    }
}

/// The result for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The path has no entry.
    Nothing,
    /// The entry is kept.
    Keep,
    /// The path gets this entry.
    Become(Side),
    /// The entry is removed.
    Go,
    /// The path has no entry, and no untracked file may exist.
    Free,
    /// The path is in conflict: merge base, ours, theirs.
    Conflict([Option<Side>; 3]),
    /// The merge is refused.
    Refuse,
}

/// Determines the result for one path. `current` is its first entry in the index.
pub(super) fn decide(
    rule: Rule,
    reset: bool,
    current: Option<&EntryRef<'_>>,
    slots: &[Slot],
) -> Verdict {
    let slot = |at: usize| slots.get(at).copied().unwrap_or(Slot::Nothing);
    match rule {
        Rule::One => match (slot(0).side(), current) {
            (Some(side), _) => Verdict::Become(side),
            (None, Some(_)) => Verdict::Go,
            (None, None) => Verdict::Nothing,
        },
        Rule::Two { initial } => {
            let (old, new) = (slot(0).side(), slot(1).side());
            match current {
                Some(current) => two_with_entry(current, reset, old, new),
                None => two_without_entry(initial, old, new),
            }
        }
        Rule::Three { aggressive } => three(current, aggressive, [slot(0), slot(1), slot(2)]),
    }
}

fn is(current: &EntryRef<'_>, side: Option<Side>) -> bool {
    current.stage() == 0 && side.is_some_and(|side| is_entry(current, side))
}

fn become_or_go(side: Option<Side>) -> Verdict {
    side.map_or(Verdict::Go, Verdict::Become)
}

fn two_with_entry(
    current: &EntryRef<'_>,
    reset: bool,
    old: Option<Side>,
    new: Option<Side>,
) -> Verdict {
    if current.stage() != 0 {
        return match old == new || reset {
            true => become_or_go(new),
            false => Verdict::Refuse,
        };
    }
    if old == new || (new.is_some() && is(current, new)) {
        return Verdict::Keep;
    }
    match is(current, old) {
        true => become_or_go(new),
        false => Verdict::Refuse,
    }
}

fn two_without_entry(initial: bool, old: Option<Side>, new: Option<Side>) -> Verdict {
    match (old, new) {
        (None, None) => Verdict::Nothing,
        (Some(_), None) => Verdict::Free,
        // The removal of the path is staged.
        (Some(old), Some(new)) if !initial => match old == new {
            true => Verdict::Nothing,
            false => Verdict::Refuse,
        },
        (_, Some(new)) => Verdict::Become(new),
    }
}

fn three(current: Option<&EntryRef<'_>>, aggressive: bool, slots: [Slot; 3]) -> Verdict {
    let [base, ours, theirs] = slots.map(Slot::side);
    let is_base = |side| slots[0] != Slot::OtherKind && base == side;
    // The sides that did not change the path, if the sides differ.
    let (ours_stayed, theirs_stayed) = match ours == theirs {
        true => (false, false),
        false => (is_base(ours), is_base(theirs)),
    };
    let differs = |side| current.is_some_and(|current| !is(current, side));
    if let Some(new) = theirs
        && slots[1] != Slot::OtherKind
        && ours_stayed
        && !theirs_stayed
    {
        // Only their side changed the path. The index may have the change already.
        return match differs(ours) && differs(theirs) {
            true => Verdict::Refuse,
            false => Verdict::Become(new),
        };
    }
    if differs(ours) {
        return Verdict::Refuse;
    }
    if let Some(own) = ours {
        let ours_alone = slots[2] != Slot::OtherKind && theirs_stayed && !ours_stayed;
        if ours == theirs || ours_alone {
            return Verdict::Become(own);
        }
    }
    if ours.is_none() && theirs.is_none() && base.is_none() {
        return Verdict::Nothing;
    }
    let is_removal = match (ours, theirs) {
        (None, None) => true,
        (None, Some(_)) => theirs_stayed,
        (Some(_), None) => ours_stayed,
        (Some(_), Some(_)) => false,
    };
    if aggressive && is_removal {
        return match (current, ours) {
            (Some(_), _) => Verdict::Go,
            (None, Some(_)) => Verdict::Free,
            (None, None) => Verdict::Nothing,
        };
    }
    let base = base.filter(|_| !ours_stayed || !theirs_stayed);
    Verdict::Conflict([base, ours, theirs])
}
