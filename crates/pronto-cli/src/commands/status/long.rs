//! The long format of `status`.

mod progress;
mod tracking;

use super::lines::StatusWriter;
use super::{ColourSlot, Differences, StatusView, Untracked};
use crate::CliError;
use crate::terminal::columns::ColumnFrame;
use bstr::{BString, ByteSlice};
use pronto::Repository;
use pronto::status::ChangeKind;
use pronto::status::{Entry, Ignored};
use std::io::{self, Write};
use std::time::Duration;

/// The duration of the search for untracked files from which on advice is printed.
const SLOW: Duration = Duration::from_secs(2);

pub(super) fn print(
    view: &StatusView,
    repository: &Repository,
    differences: Option<&Differences>,
    elapsed: Duration,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut lines = StatusWriter { view, out };
    branch(&mut lines)?;
    if !view.is_initial() {
        tracking::print(&mut lines)?;
    }
    progress::print(&mut lines, repository)?;
    if view.is_initial() {
        lines.empty()?;
        lines.line(ColourSlot::Header, "No commits yet")?;
        lines.empty()?;
    }
    staged(&mut lines)?;
    conflicts(&mut lines)?;
    changed(&mut lines)?;
    untracked(&mut lines, elapsed)?;
    if let Some(differences) = differences {
        differences.print(&mut lines)?;
    }
    summary(&mut lines)?;
    if let Some(count) = view.stash_count.filter(|&count| count > 0) {
        let entries = if count == 1 { "entry" } else { "entries" };
        lines.line(
            ColourSlot::Plain,
            &format!("Your stash currently has {count} {entries}"),
        )?;
    }
    Ok(())
}

fn branch<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    let view = lines.view;
    let state = &view.report.state;
    let mut slot = ColourSlot::Header;
    let (on_what, name): (&str, BString) = if view.is_detached() {
        slot = ColourSlot::NoBranch;
        match (&state.rebase, &state.detached_from) {
            (Some(rebase), _) => {
                let onto = rebase.onto.clone().unwrap_or_default();
                match rebase.interactive {
                    true => ("interactive rebase in progress; onto ", onto),
                    false => ("rebase in progress; onto ", onto),
                }
            }
            (None, Some(from)) if state.is_detached_there => ("HEAD detached at ", from.clone()),
            (None, Some(from)) => ("HEAD detached from ", from.clone()),
            (None, None) => ("Not currently on any branch.", BString::default()),
        }
    } else {
        (
            "On branch ",
            view.branch().map(ToOwned::to_owned).unwrap_or_default(),
        )
    };
    lines.start(ColourSlot::Header, b"")?;
    lines.more(slot, on_what.as_bytes())?;
    lines.more(ColourSlot::OnBranch, &name)?;
    lines.out.write_all(b"\n")
}

/// Writes the hint about unstaging a file.
fn unstage_hint<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    let state = &lines.view.report.state;
    if state.merge || state.has_picked_commit {
        return Ok(());
    }
    if lines.view.is_initial() {
        lines.hint("  (use \"git rm --cached <file>...\" to unstage)")
    } else {
        lines.hint("  (use \"git restore --staged <file>...\" to unstage)")
    }
}

fn staged<W: Write>(lines: &mut StatusWriter<'_, W>) -> Result<(), CliError> {
    let view = lines.view;
    let mut entries = view
        .report
        .entries
        .iter()
        .filter(|entry| entry.stages.is_none() && entry.index.is_some())
        .peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    lines.line(ColourSlot::Header, "Changes to be committed:")?;
    unstage_hint(lines)?;
    for entry in entries {
        let origin = entry.origin.as_ref();
        let origin = origin.filter(|origin| Some(origin.kind) == entry.index);
        let change = ChangedPath {
            slot: ColourSlot::Updated,
            kind: entry.index,
            path: &entry.path,
            origin: origin.map(|origin| &origin.path),
            submodule: String::new(),
        };
        change.print(lines)?;
    }
    lines.empty()?;
    Ok(())
}

fn changed<W: Write>(lines: &mut StatusWriter<'_, W>) -> Result<(), CliError> {
    let view = lines.view;
    let is_changed = |entry: &&Entry| entry.stages.is_none() && entry.worktree.is_some();
    let entries: Vec<&Entry> = view.report.entries.iter().filter(is_changed).collect();
    if entries.is_empty() {
        return Ok(());
    }
    lines.line(ColourSlot::Header, "Changes not staged for commit:")?;
    let add = match entries
        .iter()
        .any(|entry| entry.worktree == Some(ChangeKind::Deleted))
    {
        true => "  (use \"git add/rm <file>...\" to update what will be committed)",
        false => "  (use \"git add <file>...\" to update what will be committed)",
    };
    lines.hint(add)?;
    lines.hint("  (use \"git restore <file>...\" to discard changes in working directory)")?;
    if entries
        .iter()
        .any(|entry| entry.submodule.modified || entry.submodule.untracked)
    {
        lines.hint("  (commit or discard the untracked or modified content in submodules)")?;
    }
    for entry in entries {
        let origin = entry.origin.as_ref();
        let origin = origin.filter(|origin| Some(origin.kind) == entry.worktree);
        let state = entry.submodule;
        let parts = [
            (state.new_commits, "new commits"),
            (state.modified, "modified content"),
            (state.untracked, "untracked content"),
        ];
        let parts: Vec<&str> = parts
            .iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, text)| *text)
            .collect();
        let submodule = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        let change = ChangedPath {
            slot: ColourSlot::Changed,
            kind: entry.worktree,
            path: &entry.path,
            origin: origin.map(|origin| &origin.path),
            submodule,
        };
        change.print(lines)?;
    }
    lines.empty()?;
    Ok(())
}

/// A staged or unstaged change of a path.
struct ChangedPath<'a> {
    slot: ColourSlot,
    kind: Option<ChangeKind>,
    path: &'a BString,
    /// The path before a rename, or the source of a copy.
    origin: Option<&'a BString>,
    /// The changes of a submodule, in parentheses after a space; empty for other paths.
    submodule: String,
}

impl ChangedPath<'_> {
    fn print<W: Write>(&self, lines: &mut StatusWriter<'_, W>) -> Result<(), CliError> {
        let what = match self.kind {
            Some(ChangeKind::Added) => "new file:",
            Some(ChangeKind::Copied) => "copied:",
            Some(ChangeKind::Deleted) => "deleted:",
            Some(ChangeKind::Renamed) => "renamed:",
            Some(ChangeKind::TypeChanged) => "typechange:",
            _ => "modified:",
        };
        let view = lines.view;
        let mut text = format!("{what:12}").into_bytes();
        if let Some(origin) = self.origin {
            text.extend_from_slice(&view.path(origin, false));
            text.extend_from_slice(b" -> ");
        }
        text.extend_from_slice(&view.path(self.path, false));
        lines.start(ColourSlot::Header, b"\t")?;
        lines.more(self.slot, &text)?;
        if !self.submodule.is_empty() {
            lines.more(ColourSlot::Header, self.submodule.as_bytes())?;
        }
        lines.out.write_all(b"\n")?;
        Ok(())
    }
}

fn conflicts<W: Write>(lines: &mut StatusWriter<'_, W>) -> Result<(), CliError> {
    let view = lines.view;
    let entries: Vec<&Entry> = view
        .report
        .entries
        .iter()
        .filter(|entry| entry.stages.is_some())
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    lines.line(ColourSlot::Header, "Unmerged paths:")?;
    unstage_hint(lines)?;
    let has = |masks: &[u8]| {
        entries
            .iter()
            .any(|entry| masks.contains(&entry.stage_mask()))
    };
    let (both_deleted, one_deleted, other) = (has(&[1]), has(&[3, 5]), has(&[2, 4, 6, 7]));
    lines.hint(match (both_deleted, one_deleted, other) {
        (false, false, _) => "  (use \"git add <file>...\" to mark resolution)",
        (true, false, false) => "  (use \"git rm <file>...\" to mark resolution)",
        _ => "  (use \"git add/rm <file>...\" as appropriate to mark resolution)",
    })?;
    for entry in entries {
        let how = match entry.stage_mask() {
            1 => "both deleted:",
            2 => "added by us:",
            3 => "deleted by them:",
            4 => "added by them:",
            5 => "deleted by us:",
            6 => "both added:",
            _ => "both modified:",
        };
        let mut text = format!("{how:17}").into_bytes();
        text.extend_from_slice(&view.path(&entry.path, false));
        lines.start(ColourSlot::Header, b"\t")?;
        // The colour includes the end of the line.
        text.push(b'\n');
        colored_with_end(lines, &text)?;
    }
    lines.empty()?;
    Ok(())
}

fn colored_with_end<W: Write>(lines: &mut StatusWriter<'_, W>, text: &[u8]) -> io::Result<()> {
    lines.more(
        ColourSlot::Unmerged,
        text.strip_suffix(b"\n").unwrap_or(text),
    )?;
    lines.out.write_all(b"\n")
}

fn untracked<W: Write>(lines: &mut StatusWriter<'_, W>, elapsed: Duration) -> Result<(), CliError> {
    let view = lines.view;
    if view.settings.untracked == Untracked::No {
        if view.report.is_committable() {
            let hint = match view.settings.hints {
                true => " (use -u option to show untracked files)",
                false => "",
            };
            lines.line(
                ColourSlot::Plain,
                &format!("Untracked files not listed{hint}"),
            )?;
        }
        return Ok(());
    }
    others(lines, &view.report.untracked, "Untracked files", "add")?;
    if view.settings.ignored != Ignored::No {
        others(lines, &view.report.ignored, "Ignored files", "add -f")?;
    }
    if view.settings.advise_untracked && elapsed > SLOW {
        let seconds = elapsed.as_secs_f64();
        lines.line(ColourSlot::Plain, "")?;
        lines.line(
            ColourSlot::Plain,
            &format!("It took {seconds:.2} seconds to enumerate untracked files."),
        )?;
        lines.line(
            ColourSlot::Plain,
            "See 'git help status' for information on how to improve this.",
        )?;
        lines.line(ColourSlot::Plain, "")?;
    }
    Ok(())
}

fn others<W: Write>(
    lines: &mut StatusWriter<'_, W>,
    paths: &[BString],
    what: &str,
    how: &str,
) -> Result<(), CliError> {
    if paths.is_empty() {
        return Ok(());
    }
    lines.line(ColourSlot::Header, &format!("{what}:"))?;
    lines.hint(&format!(
        "  (use \"git {how} <file>...\" to include in what will be committed)"
    ))?;
    let view = lines.view;
    let shown: Vec<BString> = paths.iter().map(|path| view.path(path, false)).collect();
    if let Some((columns, width)) = view.settings.columns {
        let sign = if view.settings.comment_prefix {
            "#"
        } else {
            ""
        };
        let colors = [ColourSlot::Header, ColourSlot::Untracked].map(|slot| view.look.color(slot));
        let frame = ColumnFrame {
            indent: format!("{}{sign}\t{}", colors[0], colors[1]),
            end: view.look.line_end(),
            width,
        };
        columns.print(&shown, &frame, lines.out)?;
        lines.line_after_others()?;
        return Ok(());
    }
    for path in shown {
        lines.start(ColourSlot::Header, b"\t")?;
        lines.more(ColourSlot::Untracked, path.as_bytes())?;
        lines.out.write_all(b"\n")?;
    }
    lines.line_after_others()?;
    Ok(())
}

fn summary<W: Write>(lines: &mut StatusWriter<'_, W>) -> io::Result<()> {
    let view = lines.view;
    let report = &view.report;
    if report.is_committable() {
        return Ok(());
    }
    let hints = view.settings.hints;
    let hint = |text| if hints { text } else { "" };
    let (text, hint) = if report.is_worktree_dirty() {
        (
            "no changes added to commit",
            hint(" (use \"git add\" and/or \"git commit -a\")"),
        )
    } else if !report.untracked.is_empty() {
        (
            "nothing added to commit but untracked files present",
            hint(" (use \"git add\" to track)"),
        )
    } else if view.is_initial() {
        (
            "nothing to commit",
            hint(" (create/copy files and use \"git add\" to track)"),
        )
    } else if view.settings.untracked == Untracked::No {
        (
            "nothing to commit",
            hint(" (use -u to show untracked files)"),
        )
    } else {
        ("nothing to commit, working tree clean", "")
    };
    writeln!(lines.out, "{text}{hint}")
}
