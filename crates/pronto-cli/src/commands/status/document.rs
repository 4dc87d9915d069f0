//! The fields of the JSON document of `status`.

use bstr::ByteSlice as _;
use pronto::status::{
    ChangeKind, DifferenceSide, Divergence, Entry, OperationInProgress, Problem, TrackedUpstream,
};

use super::{StatusView, conflict_letters};
use crate::commands::shared::head_document;
use crate::json::{Json, JsonField};

/// Returns the fields of the document. Paths are relative to the top of the worktree.
pub(super) fn fields(view: &StatusView) -> Vec<JsonField> {
    let report = &view.report;
    let (conflicts, changes): (Vec<&Entry>, _) = report
        .entries
        .iter()
        .partition(|entry| entry.stages.is_some());
    let mut fields = vec![
        ("head", head_document(&report.head)),
        ("upstream", view.upstream.as_ref().map(upstream).into()),
        ("operations", operations(&report.state)),
        ("changes", changes.into_iter().map(change).collect()),
        ("conflicts", conflicts.into_iter().map(conflict).collect()),
        ("untracked", Json::of_names(&report.untracked)),
        ("ignored", Json::of_names(&report.ignored)),
        ("problems", report.problems.iter().map(problem).collect()),
    ];
    if view.settings.show_stash {
        fields.push(("stash_entries", view.stash_count.unwrap_or(0).into()));
    }
    fields
}

fn upstream(upstream: &TrackedUpstream) -> Json {
    let (ahead, behind) = match upstream.divergence {
        Some(Divergence::Same) => (Some(0), Some(0)),
        Some(Divergence::Counted { ahead, behind }) => (Some(ahead), Some(behind)),
        _ => (None, None),
    };
    Json::Object(vec![
        ("ref", Json::from(&upstream.name)),
        ("is_gone", upstream.divergence.is_none().into()),
        ("ahead", ahead.into()),
        ("behind", behind.into()),
    ])
}

/// Returns the names of the operations in progress.
fn operations(state: &OperationInProgress) -> Json {
    let all = [
        ("merge", state.merge),
        ("am", state.am),
        ("rebase", state.rebase.is_some()),
        ("cherry_pick", state.cherry_pick.is_some()),
        ("revert", state.revert.is_some()),
        ("bisect", state.bisect),
    ];
    let present = all.into_iter().filter(|(_, is_present)| *is_present);
    present.map(|(name, _)| Json::from(name)).collect()
}

fn change(entry: &Entry) -> Json {
    let origin = entry.origin.as_ref().map(|origin| {
        Json::Object(vec![
            ("path", Json::from(&origin.path)),
            ("kind", kind(origin.kind)),
            ("similarity_percent", u64::from(origin.percent).into()),
        ])
    });
    let in_head = match entry.index {
        Some(_) => entry.in_head,
        None => entry.in_index,
    };
    let file_mode = match entry.worktree {
        Some(_) => entry.file_mode,
        None => entry.in_index.map_or(0, |side| side.mode),
    };
    Json::Object(vec![
        ("path", Json::from(&entry.path)),
        ("index", entry.index.map(kind).into()),
        ("worktree", entry.worktree.map(kind).into()),
        ("origin", origin.into()),
        ("in_head", in_head.map(side).into()),
        ("in_index", entry.in_index.map(side).into()),
        ("file_mode", mode(file_mode)),
        ("submodule", submodule(entry)),
    ])
}

fn conflict(entry: &Entry) -> Json {
    let stages = entry.stages.unwrap_or_default();
    Json::Object(vec![
        ("path", Json::from(&entry.path)),
        ("letters", conflict_letters(entry.stage_mask()).into()),
        ("base", stages.base.map(side).into()),
        ("ours", stages.ours.map(side).into()),
        ("theirs", stages.theirs.map(side).into()),
        ("file_mode", mode(entry.file_mode)),
        ("submodule", submodule(entry)),
    ])
}

/// Returns the changes of a submodule, or null for a submodule without changes and for a file.
fn submodule(entry: &Entry) -> Json {
    let state = entry.submodule;
    if state.is_clean() {
        return Json::Null;
    }
    Json::Object(vec![
        ("new_commits", state.new_commits.into()),
        ("modified", state.modified.into()),
        ("untracked", state.untracked.into()),
    ])
}

fn problem(problem: &Problem) -> Json {
    let reason = pronto_io::error::reason(&problem.error);
    Json::Object(vec![
        ("path", Json::from(problem.path.as_bstr())),
        ("message", reason.into()),
    ])
}

fn kind(kind: ChangeKind) -> Json {
    Json::from(match kind {
        ChangeKind::Added => "added",
        ChangeKind::Copied => "copied",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Modified => "modified",
        ChangeKind::Renamed => "renamed",
        ChangeKind::TypeChanged => "type_changed",
        ChangeKind::Unmerged => "unmerged",
    })
}

fn side(side: DifferenceSide) -> Json {
    Json::Object(vec![("mode", mode(side.mode)), ("id", side.id.into())])
}

/// Returns a mode as octal digits, or null for a missing file.
fn mode(mode: u32) -> Json {
    match mode {
        0 => Json::Null,
        mode => format!("{mode:06o}").into(),
    }
}
