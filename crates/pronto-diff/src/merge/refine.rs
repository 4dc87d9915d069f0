//! Refines conflicts: removes the lines that both sides have in common, and joins conflicts that
//! are close to each other.

use super::{Hunk, HunkSide, MergeTexts};
use crate::lines::changes;

/// The maximum number of lines between two conflicts that are joined.
const FEW_LINES: usize = 3;

/// Splits each conflict at the lines that both sides have in common, and joins close conflicts.
pub(super) fn refine(hunks: &mut Vec<Hunk>, texts: &MergeTexts<'_>, over_punctuation: bool) {
    let mut refined = Vec::with_capacity(hunks.len());
    for hunk in hunks.drain(..) {
        if hunk.taken != HunkSide::Neither || hunk.ours.is_empty() || hunk.theirs.is_empty() {
            refined.push(hunk);
            continue;
        }
        let (ours, theirs) = (
            &texts.ours[hunk.ours.clone()],
            &texts.theirs[hunk.theirs.clone()],
        );
        let differing = changes(ours, theirs);
        if differing.is_empty() {
            refined.push(Hunk {
                taken: HunkSide::Alike,
                ..hunk
            });
            continue;
        }
        refined.extend(differing.into_iter().map(|change| Hunk {
            taken: HunkSide::Neither,
            base: hunk.base.clone(),
            ours: hunk.ours.start + change.before.start..hunk.ours.start + change.before.end,
            theirs: hunk.theirs.start + change.after.start..hunk.theirs.start + change.after.end,
        }));
    }
    for hunk in refined {
        match hunks.last_mut() {
            Some(last) if are_near(last, &hunk, texts, over_punctuation) => {
                last.ours.end = hunk.ours.end;
                last.theirs.end = hunk.theirs.end;
            }
            _ => hunks.push(hunk),
        }
    }
}

fn are_near(one: &Hunk, other: &Hunk, texts: &MergeTexts<'_>, over_punctuation: bool) -> bool {
    if one.taken != HunkSide::Neither || other.taken != HunkSide::Neither {
        return false;
    }
    let between = texts.ours.get(one.ours.end..other.ours.start);
    let between = between.unwrap_or_default();
    let says_something = |line: &&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    between.len() <= FEW_LINES || (over_punctuation && !between.iter().any(says_something))
}

/// Removes the lines that both sides begin or end with from conflicts (`zdiff3`).
pub(super) fn take_out_common_ends(hunks: &mut [Hunk], texts: &MergeTexts<'_>) {
    let conflicts = hunks
        .iter_mut()
        .filter(|hunk| hunk.taken == HunkSide::Neither);
    for hunk in conflicts {
        let (ours, theirs) = (&mut hunk.ours, &mut hunk.theirs);
        while ours.start < ours.end
            && theirs.start < theirs.end
            && texts.ours[ours.start] == texts.theirs[theirs.start]
        {
            ours.start += 1;
            theirs.start += 1;
        }
        while ours.start < ours.end
            && theirs.start < theirs.end
            && texts.ours[ours.end - 1] == texts.theirs[theirs.end - 1]
        {
            ours.end -= 1;
            theirs.end -= 1;
        }
    }
}
