//! Formats operations in progress for the long format.

use super::super::{ColourSlot, StatusView};
use super::StatusWriter;
use bstr::BString;
use pronto::Repository;
use pronto::status::{PickInProgress, RebaseInProgress, SparseCheckout};
use std::io::{self, Write};

/// The number of done and of remaining rebase commands that are shown.
const SHOWN_COMMANDS: usize = 2;

pub(super) fn print<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    repository: &Repository,
) -> io::Result<()> {
    let view: &StatusView = lines.view;
    let state = &view.report.state;
    if state.merge {
        if let Some(rebase) = state.rebase.as_ref().filter(|rebase| rebase.interactive) {
            commands(lines, rebase, repository)?;
            lines.out.write_all(b"\n")?;
        }
        merge(lines)?;
    } else if state.am {
        am(lines)?;
    } else if let Some(rebase) = &state.rebase {
        show_rebase(lines, rebase, repository)?;
    } else if let Some(operation) = &state.cherry_pick {
        replay(lines, operation, &CHERRY_PICK)?;
    } else if let Some(operation) = &state.revert {
        replay(lines, operation, &REVERT)?;
    }
    if state.bisect {
        match &state.bisecting_from {
            Some(from) => lines.line(
                ColourSlot::Header,
                &format!("You are currently bisecting, started from branch '{from}'."),
            )?,
            None => lines.line(ColourSlot::Header, "You are currently bisecting.")?,
        }
        lines.hint("  (use \"git bisect reset\" to get back to the original branch)")?;
        lines.empty()?;
    }
    if let Some(sparse) = state.sparse_checkout {
        let text = match sparse {
            SparseCheckout::Percent(percentage) => {
                format!("You are in a sparse checkout with {percentage}% of tracked files present.")
            }
            SparseCheckout::Uncounted => "You are in a sparse checkout.".to_owned(),
        };
        lines.line(ColourSlot::Header, &text)?;
        lines.empty()?;
    }
    Ok(())
}

fn merge<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    if lines.view.report.has_conflicts() {
        lines.line(ColourSlot::Header, "You have unmerged paths.")?;
        lines.hint("  (fix conflicts and run \"git commit\")")?;
        lines.hint("  (use \"git merge --abort\" to abort the merge)")?;
    } else {
        lines.line(
            ColourSlot::Header,
            "All conflicts fixed but you are still merging.",
        )?;
        lines.hint("  (use \"git commit\" to conclude merge)")?;
    }
    lines.empty()
}

fn am<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    let is_empty = lines.view.report.state.am_empty_patch;
    lines.line(
        ColourSlot::Header,
        "You are in the middle of an am session.",
    )?;
    if is_empty {
        lines.line(ColourSlot::Header, "The current patch is empty.")?;
    } else {
        lines.hint("  (fix conflicts and then run \"git am --continue\")")?;
    }
    lines.hint("  (use \"git am --skip\" to skip this patch)")?;
    if is_empty {
        lines.hint("  (use \"git am --allow-empty\" to record this patch as an empty commit)")?;
    }
    lines.hint("  (use \"git am --abort\" to restore the original branch)")?;
    lines.empty()
}

/// The names of a command that reapplies commits (cherry-pick or revert).
struct Replay {
    name: &'static str,
    /// The present participle.
    doing: &'static str,
    command: &'static str,
}

const CHERRY_PICK: Replay = Replay {
    name: "Cherry-pick",
    doing: "cherry-picking",
    command: "cherry-pick",
};

const REVERT: Replay = Replay {
    name: "Revert",
    doing: "reverting",
    command: "revert",
};

fn replay<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    operation: &PickInProgress,
    replay: &Replay,
) -> io::Result<()> {
    let Replay {
        name,
        doing,
        command,
    } = replay;
    match &operation.commit {
        Some(commit) => {
            lines.line(
                ColourSlot::Header,
                &format!("You are currently {doing} commit {commit}."),
            )?;
        }
        None => lines.line(
            ColourSlot::Header,
            &format!("{name} currently in progress."),
        )?,
    }
    let what = if lines.view.report.has_conflicts() {
        format!("  (fix conflicts and run \"git {command} --continue\")")
    } else if operation.commit.is_none() {
        format!("  (run \"git {command} --continue\" to continue)")
    } else {
        format!("  (all conflicts fixed: run \"git {command} --continue\")")
    };
    lines.hint(&what)?;
    lines.hint(&format!(
        "  (use \"git {command} --skip\" to skip this patch)"
    ))?;
    lines.hint(&format!(
        "  (use \"git {command} --abort\" to cancel the {command} operation)"
    ))?;
    lines.empty()
}

/// Writes the last done and the next remaining commands of a rebase.
fn commands<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    rebase: &RebaseInProgress,
    repository: &Repository,
) -> io::Result<()> {
    let Some(left) = &rebase.left else {
        lines.line(ColourSlot::Header, "git-rebase-todo is missing.")?;
        return done(lines, rebase, &[], repository);
    };
    done(lines, rebase, left, repository)
}

fn done<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    rebase: &RebaseInProgress,
    left: &[BString],
    repository: &Repository,
) -> io::Result<()> {
    let count = rebase.done.len();
    match count {
        0 => lines.line(ColourSlot::Header, "No commands done.")?,
        1 => lines.line(ColourSlot::Header, "Last command done (1 command done):")?,
        _ => {
            lines.line(
                ColourSlot::Header,
                &format!("Last commands done ({count} commands done):"),
            )?;
        }
    }
    for command in &rebase.done[count.saturating_sub(SHOWN_COMMANDS)..] {
        lines.line(ColourSlot::Header, &format!("   {command}"))?;
    }
    if count > SHOWN_COMMANDS {
        let file = repository.display_path(&repository.git_path("rebase-merge/done"));
        lines.hint(&format!("  (see more in file {})", file.display()))?;
    }
    match left.len() {
        0 => return lines.line(ColourSlot::Header, "No commands remaining."),
        1 => lines.line(
            ColourSlot::Header,
            "Next command to do (1 remaining command):",
        )?,
        count => {
            let text = format!("Next commands to do ({count} remaining commands):");
            lines.line(ColourSlot::Header, &text)?;
        }
    }
    for command in left.iter().take(SHOWN_COMMANDS) {
        lines.line(ColourSlot::Header, &format!("   {command}"))?;
    }
    lines.hint("  (use \"git rebase --edit-todo\" to view and edit)")
}

fn show_rebase<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    rebase: &RebaseInProgress,
    repository: &Repository,
) -> io::Result<()> {
    if rebase.interactive {
        commands(lines, rebase, repository)?;
    }
    let onto = rebase.onto.clone().unwrap_or_default();
    let sentence = |doing: &str, without: &str| match &rebase.branch {
        Some(branch) => format!("You are currently {doing} branch '{branch}' on '{onto}'."),
        None => format!("You are currently {without}."),
    };
    if lines.view.report.has_conflicts() {
        lines.line(ColourSlot::Header, &sentence("rebasing", "rebasing"))?;
        lines.hint("  (fix conflicts and then run \"git rebase --continue\")")?;
        lines.hint("  (use \"git rebase --skip\" to skip this patch)")?;
        lines.hint("  (use \"git rebase --abort\" to check out the original branch)")?;
    } else if !rebase.interactive || rebase.has_message {
        lines.line(ColourSlot::Header, &sentence("rebasing", "rebasing"))?;
        lines.hint("  (all conflicts fixed: run \"git rebase --continue\")")?;
    } else if rebase.splitting && lines.view.report.is_worktree_dirty() {
        let text = sentence(
            "splitting a commit while rebasing",
            "splitting a commit during a rebase",
        );
        lines.line(ColourSlot::Header, &text)?;
        lines.hint("  (Once your working directory is clean, run \"git rebase --continue\")")?;
    } else {
        let text = sentence(
            "editing a commit while rebasing",
            "editing a commit during a rebase",
        );
        lines.line(ColourSlot::Header, &text)?;
        lines.hint("  (use \"git commit --amend\" to amend the current commit)")?;
        lines.hint("  (use \"git rebase --continue\" once you are satisfied with your changes)")?;
    }
    lines.empty()
}
