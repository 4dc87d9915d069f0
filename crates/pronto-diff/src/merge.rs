//! Three-way merge of texts, line by line. The result is the same as Git's, byte for byte, with the
//! same hunks in the same positions.

mod output;
mod refine;

use std::ops::Range;

use bstr::BString;

use crate::lines::{LineChange, changes, lines};

/// The default length of conflict markers (`DEFAULT_CONFLICT_MARKER_SIZE`).
pub const MARKER_LEN: usize = 7;

/// The conflict style (`merge.conflictStyle`, `--conflict`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictStyle {
    /// `merge`: show the lines of both sides.
    #[default]
    Merge,
    /// `diff3`: show the lines of both sides, and those of the merge base between them.
    Diff3,
    /// `zdiff3`: like `diff3`, but lines that both sides begin or end with are outside of the
    /// conflict.
    ZealousDiff3,
}

/// The side that wins in conflicting hunks (`--ours`, `--theirs` and `--union` of `git
/// merge-file`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Favor {
    /// Leave the hunk with conflict markers.
    #[default]
    Markers,
    /// Take our side (`--ours`).
    Ours,
    /// Take their side (`--theirs`).
    Theirs,
    /// Take both sides, ours first (`--union`).
    Union,
}

/// The options of a merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The conflict style (`merge.conflictStyle`, `--conflict`).
    pub style: ConflictStyle,
    /// The side that wins in conflicting hunks (`--ours`, `--theirs` and `--union` of `git
    /// merge-file`).
    pub favor: Favor,
    /// The number of characters in a conflict marker (`--marker-size`, attribute
    /// `conflict-marker-size`).
    pub marker_len: usize,
    /// Join conflicts if the lines between them contain no letters and digits (`git merge-file`).
    /// Otherwise join conflicts with up to three lines between them (`XDL_MERGE_ZEALOUS_ALNUM` and
    /// `XDL_MERGE_ZEALOUS`).
    pub joins_over_punctuation: bool,
    /// The labels of our side, the merge base and their side in conflict markers (`-L`).
    pub names: [Option<BString>; 3],
}

impl Default for Options {
    fn default() -> Self {
        Options {
            style: ConflictStyle::default(),
            favor: Favor::default(),
            marker_len: MARKER_LEN,
            joins_over_punctuation: false,
            names: [const { None }; 3],
        }
    }
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedText {
    /// The merged text, with conflict markers.
    pub text: Vec<u8>,
    /// The number of conflicts in the text.
    pub conflicts: usize,
}

/// Merges two texts with their merge base. Needs memory of a few words for each line, in addition
/// to the result.
pub fn merge(ours: &[u8], base: &[u8], theirs: &[u8], options: &Options) -> MergedText {
    let texts = MergeTexts {
        base: lines(base),
        ours: lines(ours),
        theirs: lines(theirs),
    };
    let our_changes = changes(&texts.base, &texts.ours);
    let their_changes = changes(&texts.base, &texts.theirs);
    let as_it_is = |text: &[u8]| MergedText {
        text: text.to_vec(),
        conflicts: 0,
    };
    if our_changes.is_empty() {
        return as_it_is(theirs);
    }
    if their_changes.is_empty() {
        return as_it_is(ours);
    }
    let mut hunks = combine(&our_changes, &their_changes, &texts);
    match options.style {
        ConflictStyle::Merge => refine::refine(&mut hunks, &texts, options.joins_over_punctuation),
        ConflictStyle::Diff3 => {}
        ConflictStyle::ZealousDiff3 => refine::take_out_common_ends(&mut hunks, &texts),
    }
    output::write(&hunks, &texts, options)
}

/// The lines of the three texts.
struct MergeTexts<'a> {
    base: Vec<&'a [u8]>,
    ours: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
}

/// The side from which the lines of a hunk are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HunkSide {
    /// Neither: the changes conflict.
    Neither,
    Ours,
    Theirs,
    /// The changes of both sides are equal, as the refinement has found.
    Alike,
}

/// A range of all three texts in which at least one side has changed.
#[derive(Clone, Debug)]
struct Hunk {
    taken: HunkSide,
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// Combines the changes of both sides, in order. Changes that overlap or touch are a conflict.
/// Equal changes are left out.
fn combine(ours: &[LineChange], theirs: &[LineChange], texts: &MergeTexts<'_>) -> Vec<Hunk> {
    let mut hunks = Hunks(Vec::new());
    let (mut our, mut their) = (ours.iter().peekable(), theirs.iter().peekable());
    // The distance from a line of the merge base to the same line in each text, after the last
    // change.
    let (mut our_shift, mut their_shift) = (0_isize, 0_isize);
    let shifted = |range: &Range<usize>, by: isize| {
        let shift = |at: usize| at.saturating_add_signed(by);
        shift(range.start)..shift(range.end)
    };
    let shift_after = |change: &LineChange| change.after.end as isize - change.before.end as isize;
    loop {
        match (our.peek().copied(), their.peek().copied()) {
            (None, None) => break,
            (Some(one), other) if other.is_none_or(|it| one.before.end < it.before.start) => {
                let theirs = shifted(&one.before, their_shift);
                hunks.add(
                    HunkSide::Ours,
                    one.before.clone(),
                    one.after.clone(),
                    theirs,
                );
                our_shift = shift_after(one);
                our.next();
            }
            (one, Some(other)) if one.is_none_or(|it| other.before.end < it.before.start) => {
                let ours = shifted(&other.before, our_shift);
                hunks.add(
                    HunkSide::Theirs,
                    other.before.clone(),
                    ours,
                    other.after.clone(),
                );
                their_shift = shift_after(other);
                their.next();
            }
            (Some(one), Some(other)) => {
                let is_same = one.before == other.before
                    && texts.ours[one.after.clone()] == texts.theirs[other.after.clone()];
                if !is_same {
                    hunks.add_conflict(one, other);
                }
                let (our_end, their_end) = (one.before.end, other.before.end);
                if our_end >= their_end {
                    their_shift = shift_after(other);
                    their.next();
                }
                if their_end >= our_end {
                    our_shift = shift_after(one);
                    our.next();
                }
            }
            _ => break,
        }
    }
    hunks.0
}

struct Hunks(Vec<Hunk>);

impl Hunks {
    /// Adds a hunk, or joins it with the last hunk if they touch.
    fn add(
        &mut self,
        taken: HunkSide,
        base: Range<usize>,
        ours: Range<usize>,
        theirs: Range<usize>,
    ) {
        if let Some(last) = self.0.last_mut()
            && (ours.start <= last.ours.end || theirs.start <= last.theirs.end)
        {
            if taken != last.taken {
                last.taken = HunkSide::Neither;
            }
            last.base.end = base.end;
            last.ours.end = ours.end;
            last.theirs.end = theirs.end;
            return;
        }
        self.0.push(Hunk {
            taken,
            base,
            ours,
            theirs,
        });
    }

    /// Adds two overlapping changes as a conflict. Each range is extended to the other change.
    fn add_conflict(&mut self, one: &LineChange, other: &LineChange) {
        let start = one.before.start.min(other.before.start);
        let end = one.before.end.max(other.before.end);
        let widened = |change: &LineChange| {
            let before = change.before.start - start;
            let after = end - change.before.end;
            change.after.start.saturating_sub(before)..change.after.end + after
        };
        self.add(HunkSide::Neither, start..end, widened(one), widened(other));
    }
}

#[cfg(test)]
mod tests;
