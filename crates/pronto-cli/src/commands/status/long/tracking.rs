//! Formats the relation to the upstream for the long format.

use super::super::ColourSlot;
use super::StatusWriter;
use pronto::status::Divergence;
use std::io::{self, Write};

pub(super) fn print<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    let Some(upstream) = &lines.view.upstream else {
        return Ok(());
    };
    let name = &upstream.short_name;
    let commits = |count: usize| if count == 1 { "commit" } else { "commits" };
    let (text, hint) = match upstream.divergence {
        None => (
            format!("Your branch is based on '{name}', but the upstream is gone."),
            "  (use \"git branch --unset-upstream\" to fixup)",
        ),
        Some(Divergence::Same) => (format!("Your branch is up to date with '{name}'."), ""),
        Some(Divergence::Different) => (
            format!("Your branch and '{name}' refer to different commits."),
            "  (use \"git status --ahead-behind\" for details)",
        ),
        Some(Divergence::Counted { ahead, behind: 0 }) => (
            format!(
                "Your branch is ahead of '{name}' by {ahead} {}.",
                commits(ahead)
            ),
            "  (use \"git push\" to publish your local commits)",
        ),
        Some(Divergence::Counted { ahead: 0, behind }) => (
            format!(
                "Your branch is behind '{name}' by {behind} {}, and can be fast-forwarded.",
                commits(behind)
            ),
            "  (use \"git pull\" to update your local branch)",
        ),
        Some(Divergence::Counted { ahead, behind }) => (
            format!(
                "Your branch and '{name}' have diverged,\n\
                 and have {ahead} and {behind} different commits each, respectively."
            ),
            "  (use \"git pull\" if you want to integrate the remote branch with yours)",
        ),
    };
    for line in text.lines() {
        lines.line(ColourSlot::Header, line)?;
    }
    if !hint.is_empty() {
        lines.hint(hint)?;
    }
    if lines.view.settings.comment_prefix {
        lines.empty()
    } else {
        lines.out.write_all(b"\n")
    }
}
