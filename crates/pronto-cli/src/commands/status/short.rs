//! The short format and the porcelain format, version 1.

use super::{ColourSlot, StatusFormat, StatusView, conflict_letters};
use crate::CliError;
use bstr::BString;
use pronto::status::{ChangeKind, Divergence, Entry};
use std::io::Write;

pub(super) fn print(view: &StatusView, out: &mut impl Write) -> Result<(), CliError> {
    if view.settings.branch {
        branch(view, out)?;
    }
    for entry in &view.report.entries {
        if entry.stages.is_some() {
            let letters = conflict_letters(entry.stage_mask());
            view.look
                .write(out, ColourSlot::Unmerged, letters.as_bytes())?;
            out.write_all(b" ")?;
            path(view, &entry.path, out)?;
        } else {
            changed(view, entry, out)?;
        }
    }
    for (paths, sign) in [(&view.report.untracked, "??"), (&view.report.ignored, "!!")] {
        for one in paths {
            view.look
                .write(out, ColourSlot::Untracked, sign.as_bytes())?;
            out.write_all(b" ")?;
            path(view, one, out)?;
        }
    }
    Ok(())
}

fn changed(view: &StatusView, entry: &Entry, out: &mut impl Write) -> Result<(), CliError> {
    let mut letter = |slot, letter: Option<u8>| match letter {
        Some(letter) => view.look.write(out, slot, &[letter]),
        None => out.write_all(b" "),
    };
    letter(ColourSlot::Updated, entry.index.map(ChangeKind::letter))?;
    letter(ColourSlot::Changed, worktree_letter(view, entry))?;
    out.write_all(b" ")?;
    match &entry.origin {
        Some(origin) if view.null => {
            path(view, &entry.path, out)?;
            path(view, &origin.path, out)
        }
        Some(origin) => {
            out.write_all(&view.path(&origin.path, true))?;
            out.write_all(b" -> ")?;
            path(view, &entry.path, out)
        }
        None => path(view, &entry.path, out),
    }
}

/// Returns the letter of the worktree column. In the short format, the letter of a submodule shows
/// the kind of its change.
fn worktree_letter(view: &StatusView, entry: &Entry) -> Option<u8> {
    let submodule = entry.submodule;
    if view.settings.format != StatusFormat::Short || submodule.is_clean() {
        return entry.worktree.map(ChangeKind::letter);
    }
    Some(if submodule.new_commits {
        b'M'
    } else if submodule.modified {
        b'm'
    } else {
        b'?'
    })
}

fn path(view: &StatusView, path: &BString, out: &mut impl Write) -> Result<(), CliError> {
    if view.null {
        out.write_all(path)?;
        out.write_all(b"\0")?;
    } else {
        out.write_all(&view.path(path, true))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn branch(view: &StatusView, out: &mut impl Write) -> Result<(), CliError> {
    let look = &view.look;
    look.write(out, ColourSlot::Header, b"## ")?;
    if view.is_initial() {
        look.write(out, ColourSlot::Header, b"No commits yet on ")?;
    }
    match view.branch() {
        Some(branch) => {
            look.write(out, ColourSlot::LocalBranch, branch)?;
            if let Some(upstream) = &view.upstream {
                look.write(out, ColourSlot::Header, b"...")?;
                look.write(out, ColourSlot::RemoteBranch, &upstream.short_name)?;
                divergence(view, upstream.divergence, out)?;
            }
        }
        None => look.write(out, ColourSlot::NoBranch, b"HEAD (no branch)")?,
    }
    out.write_all(if view.null { b"\0" } else { b"\n" })?;
    Ok(())
}

fn divergence(
    view: &StatusView,
    divergence: Option<Divergence>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let look = &view.look;
    if divergence == Some(Divergence::Same) {
        return Ok(());
    }
    look.write(out, ColourSlot::Header, b" [")?;
    match divergence {
        None => look.write(out, ColourSlot::Header, b"gone")?,
        Some(Divergence::Counted { ahead, behind }) => {
            if ahead > 0 || behind == 0 {
                look.write(out, ColourSlot::Header, b"ahead ")?;
                look.write(out, ColourSlot::LocalBranch, ahead.to_string().as_bytes())?;
            }
            if behind > 0 {
                let comma: &[u8] = if ahead > 0 { b", behind " } else { b"behind " };
                look.write(out, ColourSlot::Header, comma)?;
                look.write(out, ColourSlot::RemoteBranch, behind.to_string().as_bytes())?;
            }
        }
        Some(_) => look.write(out, ColourSlot::Header, b"different")?,
    }
    look.write(out, ColourSlot::Header, b"]")?;
    Ok(())
}
