//! Slides groups of changed lines. A group moves down as far as possible, or to the last position
//! at which the other side has changes, too. Groups that touch are joined.

use super::NumberedText;

/// A group of changed lines, which may be empty, between two unchanged lines.
#[derive(Clone, Copy)]
struct ChangedLines {
    start: usize,
    end: usize,
}

impl ChangedLines {
    fn first(side: &NumberedText) -> Self {
        ChangedLines::from(side, 0)
    }

    fn from(side: &NumberedText, start: usize) -> Self {
        let mut end = start;
        while side.is_changed(end) {
            end += 1;
        }
        ChangedLines { start, end }
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn next(self, side: &NumberedText) -> Option<Self> {
        (self.end < side.lines.len()).then(|| ChangedLines::from(side, self.end + 1))
    }

    fn previous(self, side: &NumberedText) -> Option<Self> {
        let end = self.start.checked_sub(1)?;
        let mut start = end;
        while start > 0 && side.is_changed(start - 1) {
            start -= 1;
        }
        Some(ChangedLines { start, end })
    }

    /// Moves the group down by one line. Returns `false` if the lines do not permit the move.
    fn slide_down(&mut self, side: &mut NumberedText) -> bool {
        let fits = self.end < side.lines.len() && side.lines[self.start] == side.lines[self.end];
        if fits {
            side.changed[self.start] = false;
            side.changed[self.end] = true;
            self.start += 1;
            self.end = ChangedLines::from(side, self.end).end;
        }
        fits
    }

    fn slide_up(&mut self, side: &mut NumberedText) -> bool {
        let fits = self.start > 0 && side.lines[self.start - 1] == side.lines[self.end - 1];
        if fits {
            self.start -= 1;
            self.end -= 1;
            side.changed[self.start] = true;
            side.changed[self.end] = false;
            while self.start > 0 && side.is_changed(self.start - 1) {
                self.start -= 1;
            }
        }
        fits
    }
}

/// Slides the groups of `side`. Both sides have the same unchanged lines between groups, so they
/// have the same number of groups. Each move of a group passes one group of the other side.
pub(super) fn compact(side: &mut NumberedText, other: &NumberedText) {
    let (mut group, mut across) = (ChangedLines::first(side), ChangedLines::first(other));
    loop {
        if !group.is_empty() {
            settle(side, &mut group, other, &mut across);
        }
        let (Some(next), Some(next_across)) = (group.next(side), across.next(other)) else {
            return;
        };
        (group, across) = (next, next_across);
    }
}

fn settle(
    side: &mut NumberedText,
    group: &mut ChangedLines,
    other: &NumberedText,
    across: &mut ChangedLines,
) {
    let back = |across: &mut ChangedLines| {
        if let Some(previous) = across.previous(other) {
            *across = previous;
        }
    };
    let (highest, matched) = loop {
        let size = group.end - group.start;
        while group.slide_up(side) {
            back(across);
        }
        let highest = group.end;
        let mut matched = !across.is_empty();
        while group.slide_down(side) {
            if let Some(next) = across.next(other) {
                *across = next;
            }
            matched |= !across.is_empty();
        }
        if group.end - group.start == size {
            break (highest, matched);
        }
    };
    if group.end != highest && matched {
        while across.is_empty() && group.slide_up(side) {
            back(across);
        }
    }
}
