//! Merges three texts line by line with the same result as Git: the same hunks, in the same places,
//! byte for byte.

mod output;
mod refine;

use std::ops::Range;

use bstr::BString;

use crate::lines::{Change, changes, lines};

/// The default length of conflict markers.
pub const MARKER_LEN: usize = 7;

/// The style of a conflict (`merge.conflictStyle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `merge`: the lines of both sides.
    #[default]
    Merge,
    /// `diff3`: the lines of both sides, with those of the common ancestor between them.
    Diff3,
    /// `zdiff3`: like `diff3`, with the lines that both sides begin or end with outside of the conflict.
    ZealousDiff3,
}

/// The resolution of conflicting hunks (`--ours`, `--theirs` and `--union` of `merge-file`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Favor {
    /// Leave them with conflict markers.
    #[default]
    Markers,
    /// Take our side.
    Ours,
    /// Take their side.
    Theirs,
    /// Take both sides, ours first.
    Union,
}

/// Options of a merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The style of a conflict (`merge.conflictStyle`).
    pub style: Style,
    /// The resolution of conflicting hunks (`--ours`, `--theirs` and `--union` of `merge-file`).
    pub favor: Favor,
    /// The number of characters in a conflict marker (`--marker-size`, the attribute `conflict-marker-size`).
    pub marker_len: usize,
    /// Conflicts with nothing but lines without letters and digits between them become one, too
    /// (`git merge-file`); else those with up to three lines between them.
    pub joins_over_punctuation: bool,
    /// The labels of our side, the common ancestor and their side (`-L`).
    pub names: [Option<BString>; 3],
}

impl Default for Options {
    fn default() -> Self {
        Options {
            style: Style::default(),
            favor: Favor::default(),
            marker_len: MARKER_LEN,
            joins_over_punctuation: false,
            names: [const { None }; 3],
        }
    }
}

/// A merged text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The text, conflicts marked.
    pub text: Vec<u8>,
    /// The number of conflicts in the result.
    pub conflicts: usize,
}

/// Merges two texts with their common ancestor, line by line. Takes a few words of memory for each line beside the result.
pub fn merge(ours: &[u8], base: &[u8], theirs: &[u8], options: &Options) -> Merged {
    let texts = Texts {
        base: lines(base),
        ours: lines(ours),
        theirs: lines(theirs),
    };
    let our_changes = changes(&texts.base, &texts.ours);
    let their_changes = changes(&texts.base, &texts.theirs);
    let as_it_is = |text: &[u8]| Merged {
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
        Style::Merge => refine::refine(&mut hunks, &texts, options.joins_over_punctuation),
        Style::Diff3 => {}
        Style::ZealousDiff3 => refine::take_out_common_ends(&mut hunks, &texts),
    }
    output::write(&hunks, &texts, options)
}

/// The three texts.
struct Texts<'a> {
    base: Vec<&'a [u8]>,
    ours: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
}

/// Whose lines a hunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Both sides conflict.
    Neither,
    Ours,
    Theirs,
    /// Both are the same, which only a closer look has shown.
    Alike,
}

/// A part of all three texts where something has changed.
#[derive(Clone, Debug)]
struct Hunk {
    taken: Taken,
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// The changes of both sides in order. Those that touch become a conflict, unless both are the
/// same, which are left out.
fn combine(ours: &[Change], theirs: &[Change], texts: &Texts<'_>) -> Vec<Hunk> {
    let mut hunks = Hunks(Vec::new());
    let (mut our, mut their) = (ours.iter().peekable(), theirs.iter().peekable());
    // Where the line of the common text at `at` is in a text whose last change was `change`.
    let (mut our_shift, mut their_shift) = (0_isize, 0_isize);
    let shifted = |range: &Range<usize>, by: isize| {
        let shift = |at: usize| at.saturating_add_signed(by);
        shift(range.start)..shift(range.end)
    };
    let shift_after = |change: &Change| change.after.end as isize - change.before.end as isize;
    loop {
        match (our.peek().copied(), their.peek().copied()) {
            (None, None) => break,
            (Some(one), other) if other.is_none_or(|it| one.before.end < it.before.start) => {
                let theirs = shifted(&one.before, their_shift);
                hunks.add(Taken::Ours, one.before.clone(), one.after.clone(), theirs);
                our_shift = shift_after(one);
                our.next();
            }
            (one, Some(other)) if one.is_none_or(|it| other.before.end < it.before.start) => {
                let ours = shifted(&other.before, our_shift);
                hunks.add(
                    Taken::Theirs,
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
    /// Adds a hunk, or makes it part of the last one if they touch on a side.
    fn add(&mut self, taken: Taken, base: Range<usize>, ours: Range<usize>, theirs: Range<usize>) {
        if let Some(last) = self.0.last_mut()
            && (ours.start <= last.ours.end || theirs.start <= last.theirs.end)
        {
            if taken != last.taken {
                last.taken = Taken::Neither;
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

    /// Adds two changes that overlap, each widened to what the other one changes.
    fn add_conflict(&mut self, one: &Change, other: &Change) {
        let start = one.before.start.min(other.before.start);
        let end = one.before.end.max(other.before.end);
        let widened = |change: &Change| {
            let before = change.before.start - start;
            let after = end - change.before.end;
            change.after.start.saturating_sub(before)..change.after.end + after
        };
        self.add(Taken::Neither, start..end, widened(one), widened(other));
    }
}

#[cfg(test)]
mod tests;
