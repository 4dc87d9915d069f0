//! Line differences between two texts, as Git computes them: Myers' algorithm in linear space, with
//! Git's heuristics for expensive inputs. Groups of changes slide to where the other side has
//! changes, too. Users see the boundaries of hunks in diffs and conflicts, so the result must equal
//! Git's.
//!
//! Cost: time in proportion to the lines and differences, with a limit on the search for one split;
//! memory of a few words for each line.

mod compact;
mod divide;

use std::collections::HashMap;
use std::ops::Range;

/// A range of lines of the first text and the range of the second text that replaces it. One of
/// them may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The range of lines of the first text.
    pub before: Range<usize>,
    /// The range of lines of the second text.
    pub after: Range<usize>,
}

/// Splits a text into lines, which include their line feeds.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns the changes from `before` to `after`, in order.
pub fn changes(before: &[&[u8]], after: &[&[u8]]) -> Vec<LineChange> {
    let mut numbers = HashMap::with_capacity(before.len() + after.len());
    let mut number = |lines: &[&[u8]]| -> Vec<u32> {
        let mut of = |line| {
            let next = numbers.len() as u32;
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(|line| of(line.to_vec())).collect()
    };
    let (before, after) = (number(before), number(after));
    let count = numbers.len();
    let (mut before, mut after) = (
        NumberedText::new(before, count),
        NumberedText::new(after, count),
    );
    mark(&mut before, &mut after);
    compact::compact(&mut before, &after);
    compact::compact(&mut after, &before);
    script(&before, &after)
}

/// One of the two texts. Each line is a number, and equal lines have equal numbers.
struct NumberedText {
    lines: Vec<u32>,
    /// The number of occurrences of each line number.
    counts: Vec<u32>,
    changed: Vec<bool>,
}

impl NumberedText {
    fn new(lines: Vec<u32>, numbers: usize) -> Self {
        let mut counts = vec![0; numbers];
        lines.iter().for_each(|&line| counts[line as usize] += 1);
        let changed = vec![false; lines.len()];
        NumberedText {
            lines,
            counts,
            changed,
        }
    }

    fn is_changed(&self, at: usize) -> bool {
        self.changed.get(at).copied().unwrap_or(false)
    }
}

/// The lines of a side that take part in the comparison: their positions and their numbers.
struct ComparedLines {
    places: Vec<usize>,
    lines: Vec<u32>,
}

/// Marks the changed lines of both sides.
fn mark(before: &mut NumberedText, after: &mut NumberedText) {
    let same = |(one, other): &(&u32, &u32)| one == other;
    let (one, other) = (&before.lines, &after.lines);
    let start = one.iter().zip(other).take_while(same).count();
    let most = one.len().min(other.len()) - start;
    let from_end = one.iter().rev().zip(other.iter().rev()).take(most);
    let end = from_end.take_while(same).count();
    let (one_end, other_end) = (one.len() - end, other.len() - end);
    let kept_before = keep(before, &after.counts, start..one_end);
    let kept_after = keep(after, &before.counts, start..other_end);
    divide::mark(&kept_before, before, &kept_after, after);
}

/// The maximum threshold of occurrences on the other side from which a line counts as frequent.
const MOST_COPIES: usize = 1024;
/// The number of lines that are examined before and after a frequent line.
const WINDOW: usize = 100;
/// A frequent line is discarded if frequent lines are fewer than one in this many of the
/// discardable lines around it.
const RUN: usize = 4;

/// The significance of a line for the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// The other side does not contain the line, so the line is changed.
    Nothing,
    /// The other side contains the line.
    Something,
    /// The other side contains the line very often, so a match has little significance.
    Little,
}

/// Marks the lines of `range` that the other side does not contain, and frequent lines among them.
/// Returns the remaining lines, which are to be compared.
fn keep(side: &mut NumberedText, others: &[u32], range: Range<usize>) -> ComparedLines {
    let limit = rough_root(side.lines.len()).min(MOST_COPIES);
    let worth = |line: &u32| match others[*line as usize] as usize {
        0 => Worth::Nothing,
        count if count >= limit => Worth::Little,
        _ => Worth::Something,
    };
    let worths: Vec<Worth> = side.lines[range.clone()].iter().map(worth).collect();
    let mut kept = ComparedLines {
        places: Vec::with_capacity(worths.len()),
        lines: Vec::with_capacity(worths.len()),
    };
    for (at, worth) in worths.iter().enumerate() {
        let stays = match worth {
            Worth::Nothing => false,
            Worth::Something => true,
            Worth::Little => !is_among_changed(&worths, at),
        };
        let place = range.start + at;
        if stays {
            kept.places.push(place);
            kept.lines.push(side.lines[place]);
        } else {
            side.changed[place] = true;
        }
    }
    kept
}

/// Returns whether the frequent line at `at` is within a run of lines of which most are missing on
/// the other side.
fn is_among_changed(worths: &[Worth], at: usize) -> bool {
    /// Counts the missing lines and the frequent lines up to the first other line.
    fn run<'a>(worths: impl Iterator<Item = &'a Worth>) -> (usize, usize) {
        let run = worths.take_while(|worth| **worth != Worth::Something);
        run.fold((0, 1), |(lacking, frequent), worth| match worth {
            Worth::Nothing => (lacking + 1, frequent),
            _ => (lacking, frequent + 1),
        })
    }
    let start = at.saturating_sub(WINDOW);
    let end = (at + WINDOW + 1).min(worths.len());
    let (lacking_before, frequent_before) = run(worths[start..at].iter().rev());
    if lacking_before == 0 {
        return false;
    }
    let (lacking_after, frequent_after) = run(worths[at + 1..end].iter());
    if lacking_after == 0 {
        return false;
    }
    let frequent = frequent_before + frequent_after;
    let lacking = lacking_before + lacking_after;
    frequent * RUN < frequent + lacking
}

/// Returns an approximation of the square root of `number`, as Git computes it: a power of two.
fn rough_root(number: usize) -> usize {
    let (mut root, mut rest) = (1, number);
    while rest > 0 {
        root <<= 1;
        rest >>= 2;
    }
    root
}

/// Returns the marked lines as changes, in order.
fn script(before: &NumberedText, after: &NumberedText) -> Vec<LineChange> {
    let mut changes = Vec::new();
    let (mut one, mut other) = (0, 0);
    while one < before.lines.len() || other < after.lines.len() {
        let (from, to) = (one, other);
        while before.is_changed(one) {
            one += 1;
        }
        while after.is_changed(other) {
            other += 1;
        }
        if (from, to) == (one, other) {
            (one, other) = (one + 1, other + 1);
        } else {
            changes.push(LineChange {
                before: from..one,
                after: to..other,
            });
        }
    }
    changes
}
