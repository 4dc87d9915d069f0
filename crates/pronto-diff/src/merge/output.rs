//! Writes the merged text.

use std::ops::Range;

use super::{ConflictStyle, Favor, Hunk, HunkSide, MergeTexts, MergedText, Options};

pub(super) fn write(hunks: &[Hunk], texts: &MergeTexts<'_>, options: &Options) -> MergedText {
    let mut out = MergeOutput {
        texts,
        options,
        merged: MergedText::default(),
    };
    // Lines outside of hunks are copied from our side.
    let mut done = 0;
    for hunk in hunks {
        let (take_ours, take_theirs) = match (hunk.taken, options.favor) {
            (HunkSide::Alike, _) => continue,
            (HunkSide::Ours, _) | (HunkSide::Neither, Favor::Ours) => (true, false),
            (HunkSide::Theirs, _) | (HunkSide::Neither, Favor::Theirs) => (false, true),
            (HunkSide::Neither, Favor::Union) => (true, true),
            (HunkSide::Neither, Favor::Markers) => {
                out.add(&texts.ours, done..hunk.ours.start, None);
                out.conflict(hunk);
                done = hunk.ours.end;
                continue;
            }
        };
        out.add(&texts.ours, done..hunk.ours.start, None);
        if take_ours {
            let end = take_theirs.then(|| line_end(hunk, texts));
            out.add(&texts.ours, hunk.ours.clone(), end);
        }
        if take_theirs {
            out.add(&texts.theirs, hunk.theirs.clone(), None);
        }
        done = hunk.ours.end;
    }
    out.add(&texts.ours, done..texts.ours.len(), None);
    out.merged
}

struct MergeOutput<'a> {
    texts: &'a MergeTexts<'a>,
    options: &'a Options,
    merged: MergedText,
}

impl MergeOutput<'_> {
    /// Appends lines. If the last line has no line ending, `end` is added.
    fn add(&mut self, lines: &[&[u8]], range: Range<usize>, end: Option<&[u8]>) {
        let lines = lines.get(range).unwrap_or_default();
        let text = &mut self.merged.text;
        lines.iter().for_each(|line| text.extend_from_slice(line));
        if let (Some(end), Some(last)) = (end, lines.last())
            && !last.ends_with(b"\n")
        {
            text.extend_from_slice(end);
        }
    }

    fn conflict(&mut self, hunk: &Hunk) {
        self.merged.conflicts += 1;
        let texts = self.texts;
        let end = line_end(hunk, texts);
        self.marker(b'<', Some(0), end);
        self.add(&texts.ours, hunk.ours.clone(), Some(end));
        if self.options.style != ConflictStyle::Merge {
            self.marker(b'|', Some(1), end);
            self.add(&texts.base, hunk.base.clone(), Some(end));
        }
        self.marker(b'=', None, end);
        self.add(&texts.theirs, hunk.theirs.clone(), Some(end));
        self.marker(b'>', Some(2), end);
    }

    fn marker(&mut self, mark: u8, name: Option<usize>, end: &[u8]) {
        let text = &mut self.merged.text;
        text.extend(std::iter::repeat_n(mark, self.options.marker_len));
        let name = name.and_then(|at| self.options.names[at].as_ref());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            text.push(b' ');
            text.extend_from_slice(name);
        }
        text.extend_from_slice(end);
    }
}

/// Returns the line ending for conflict markers of the hunk: CRLF if the line before the hunk (or
/// the first line) on both sides, and the first line of the merge base, end in CRLF as far as they
/// exist; otherwise LF.
fn line_end(hunk: &Hunk, texts: &MergeTexts<'_>) -> &'static [u8] {
    let says = [
        ends_in_crlf(&texts.ours, hunk.ours.start.saturating_sub(1)),
        ends_in_crlf(&texts.theirs, hunk.theirs.start.saturating_sub(1)),
        ends_in_crlf(&texts.base, 0),
    ];
    // The first LF decides. Without an LF, the merge base decides.
    let is_crlf = !says.contains(&Some(false)) && says[2] == Some(true);
    if is_crlf { b"\r\n" } else { b"\n" }
}

/// Returns whether the line at `at` ends in CRLF. A last line without a line ending is like the
/// line before it. Returns `None` if there is no line with a line ending.
fn ends_in_crlf(lines: &[&[u8]], at: usize) -> Option<bool> {
    let line = lines.get(at)?;
    if line.ends_with(b"\n") {
        return Some(line.ends_with(b"\r\n"));
    }
    let before = lines.get(at.checked_sub(1)?)?;
    Some(before.ends_with(b"\r\n"))
}
