//! The porcelain format of `status`, version 2.

use super::{StatusView, conflict_letters};
use crate::CliError;
use bstr::BString;
use pronto::status::{ChangeKind, DifferenceSide, Divergence, Entry};
use pronto_hash::{Kind, ObjectId};
use std::io::Write;

const GITLINK: u32 = 0o160_000;

pub(super) fn print(view: &StatusView, out: &mut impl Write) -> Result<(), CliError> {
    let end = if view.null { '\0' } else { '\n' };
    if view.settings.branch {
        branch(view, end, out)?;
    }
    if let Some(count) = view.stash_count.filter(|&count| count > 0) {
        write!(out, "# stash {count}{end}")?;
    }
    let null = view
        .report
        .head
        .id()
        .map_or_else(|| view.null_id(), |id| id.kind().null());
    let hex = null.to_string();
    for entry in view
        .report
        .entries
        .iter()
        .filter(|entry| entry.stages.is_none())
    {
        changed(view, entry, &hex, out)?;
    }
    for entry in &view.report.entries {
        if let Some(stages) = &entry.stages {
            let letters = conflict_letters(entry.stage_mask());
            write!(out, "u {letters} {}", submodule(entry))?;
            for stage in stages.in_order() {
                write!(out, " {:06o}", stage.map_or(0, |side| side.mode))?;
            }
            write!(out, " {:06o}", entry.file_mode)?;
            for stage in stages.in_order() {
                write!(out, " {}", stage.map_or(null, |side| side.id))?;
            }
            write!(out, " {}{end}", path(view, &entry.path))?;
        }
    }
    for (paths, sign) in [(&view.report.untracked, '?'), (&view.report.ignored, '!')] {
        for one in paths {
            write!(out, "{sign} ")?;
            out.write_all(&path(view, one))?;
            write!(out, "{end}")?;
        }
    }
    Ok(())
}

fn branch(view: &StatusView, end: char, out: &mut impl Write) -> Result<(), CliError> {
    match view.report.head.id() {
        Some(id) => write!(out, "# branch.oid {id}{end}")?,
        None => write!(out, "# branch.oid (initial){end}")?,
    }
    match view.branch() {
        Some(branch) => write!(out, "# branch.head {branch}{end}")?,
        None => write!(out, "# branch.head (detached){end}")?,
    }
    if let Some(upstream) = &view.upstream {
        write!(out, "# branch.upstream {}{end}", upstream.short_name)?;
        match upstream.divergence {
            None => {}
            Some(Divergence::Same) => write!(out, "# branch.ab +0 -0{end}")?,
            Some(Divergence::Counted { ahead, behind }) => {
                write!(out, "# branch.ab +{ahead} -{behind}{end}")?;
            }
            Some(_) => write!(out, "# branch.ab +? -?{end}")?,
        }
    }
    Ok(())
}

fn changed(
    view: &StatusView,
    entry: &Entry,
    null: &str,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut in_head = entry.in_head;
    let mut file_mode = entry.file_mode;
    if entry.index.is_none() {
        in_head = entry.in_index;
    }
    if entry.worktree.is_none() {
        file_mode = entry.in_index.map_or(0, |side| side.mode);
    }
    let letter = |kind: Option<ChangeKind>| kind.map_or('.', |kind| char::from(kind.letter()));
    let mode = |side: Option<DifferenceSide>| side.map_or(0, |side| side.mode);
    let id = |side: Option<DifferenceSide>| {
        side.map_or_else(|| null.to_owned(), |side| side.id.to_string())
    };
    let kind = if entry.origin.is_some() { 2 } else { 1 };
    write!(
        out,
        "{kind} {}{} {} {:06o} {:06o} {file_mode:06o} {} {} ",
        letter(entry.index),
        letter(entry.worktree),
        submodule(entry),
        mode(in_head),
        mode(entry.in_index),
        id(in_head),
        id(entry.in_index),
    )?;
    if let Some(origin) = &entry.origin {
        write!(
            out,
            "{}{} ",
            char::from(origin.kind.letter()),
            origin.percent
        )?;
    }
    out.write_all(&path(view, &entry.path))?;
    if let Some(origin) = &entry.origin {
        out.write_all(if view.null { b"\0" } else { b"\t" })?;
        out.write_all(&path(view, &origin.path))?;
    }
    out.write_all(if view.null { b"\0" } else { b"\n" })?;
    Ok(())
}

fn submodule(entry: &Entry) -> String {
    let modes = [entry.in_head, entry.in_index].map(|side| side.map_or(0, |side| side.mode));
    if !modes.contains(&GITLINK) && entry.file_mode != GITLINK {
        return "N...".to_owned();
    }
    let mark = |is_set, letter| if is_set { letter } else { '.' };
    let state = entry.submodule;
    [
        'S',
        mark(state.new_commits, 'C'),
        mark(state.modified, 'M'),
        mark(state.untracked, 'U'),
    ]
    .iter()
    .collect()
}

fn path(view: &StatusView, path: &BString) -> BString {
    if view.null {
        path.clone()
    } else {
        view.path(path, false)
    }
}

impl StatusView {
    /// Returns the null id of the repository's object format.
    fn null_id(&self) -> ObjectId {
        let ids = self
            .report
            .entries
            .iter()
            .filter_map(|entry| entry.in_index);
        ids.map(|side| side.id.kind().null())
            .next()
            .unwrap_or(ObjectId::null(Kind::Sha1))
    }
}
