//! `GIT_TRACE2_EVENT`: one JSON object in each line.
//!
//! The format is that of api-trace2, "The Event Format Target", version 4.

use crate::clock;
use crate::json::JsonObject;
use crate::record::{Event, Region, TraceRecord};

const FORMAT_VERSION: &str = "4";

/// Formats the event, or returns `None` if its region is nested deeper than `nesting_limit`.
pub(crate) fn line(
    record: &TraceRecord<'_>,
    is_brief: bool,
    nesting_limit: usize,
) -> Option<String> {
    let event = &record.event;
    let is_nested = matches!(
        event,
        Event::RegionEnter { .. } | Event::RegionLeave { .. } | Event::Data { .. }
    );
    if is_nested && record.nesting > nesting_limit {
        return None;
    }
    let mut object = JsonObject::new();
    object.text("event", event.name());
    object.text("sid", record.sid);
    object.text("thread", record.thread);
    if !is_brief || matches!(event, Event::Version | Event::AtExit { .. }) {
        object.text("time", &clock::utc_time());
    }
    if !is_brief {
        object.text("file", record.file);
        object.number("line", record.line.into());
    }
    if record.has_repository && event.is_of_repository() {
        object.number("repo", 1);
    }
    fields(record, &mut object);
    Some(object.finish())
}

fn fields(record: &TraceRecord<'_>, object: &mut JsonObject) {
    match &record.event {
        Event::Version => {
            object.text("evt", FORMAT_VERSION);
            object.text("exe", record.version);
        }
        Event::Start { arguments } => {
            object.seconds("t_abs", record.absolute);
            object.array("argv", arguments);
        }
        Event::Ancestry { names } => object.array("ancestry", names),
        Event::CommandName {
            name, hierarchy, ..
        } => {
            object.text("name", name);
            object.text("hierarchy", hierarchy);
        }
        Event::CommandMode { mode } => object.text("name", mode),
        Event::Repository { worktree } => object.text("worktree", worktree),
        Event::Parameter { parameter } => {
            object.text("scope", parameter.scope);
            object.text("param", &parameter.name);
            if let Some(value) = &parameter.value {
                object.text("value", value);
            }
        }
        Event::Alias { alias, arguments } => {
            object.text("alias", alias);
            object.array("argv", arguments);
        }
        Event::Error { message } => {
            object.text("msg", message);
            object.text("fmt", message);
        }
        Event::Exec { arguments } => {
            object.number("exec_id", 0);
            object.array("argv", arguments);
        }
        Event::Exit { code } | Event::AtExit { code } => {
            object.seconds("t_abs", record.absolute);
            object.number("code", (*code).into());
        }
        Event::Signal { number } => {
            object.seconds("t_abs", record.absolute);
            object.number("signo", (*number).into());
        }
        Event::ThreadStart => {}
        Event::ThreadExit { lasted } => object.seconds("t_rel", *lasted),
        _ => nested_fields(record, object),
    }
}

fn nested_fields(record: &TraceRecord<'_>, object: &mut JsonObject) {
    let nesting = i64::try_from(record.nesting).unwrap_or(i64::MAX);
    match &record.event {
        Event::ChildStart {
            id,
            class,
            directory,
            arguments,
        } => {
            object.number("child_id", id.cast_signed());
            object.text("child_class", class);
            if let Some(directory) = directory {
                object.text("cd", directory);
            }
            object.boolean("use_shell", false);
            object.array("argv", arguments);
        }
        Event::ChildExit {
            id,
            process,
            code,
            lasted,
        } => {
            object.number("child_id", id.cast_signed());
            object.number("pid", (*process).into());
            object.number("code", (*code).into());
            object.seconds("t_rel", *lasted);
        }
        Event::RegionEnter { region } => {
            object.number("nesting", nesting);
            self::region(region, object);
        }
        Event::RegionLeave { region, lasted } => {
            object.seconds("t_rel", *lasted);
            object.number("nesting", nesting);
            self::region(region, object);
        }
        Event::Data {
            category,
            key,
            value,
            is_json,
            within,
        } => {
            object.seconds("t_abs", record.absolute);
            object.seconds("t_rel", *within);
            object.number("nesting", nesting);
            object.text("category", category);
            object.text("key", key);
            match is_json {
                true => object.verbatim("value", value),
                false => object.text("value", value),
            }
        }
        _ => {}
    }
}

fn region(region: &Region, object: &mut JsonObject) {
    object.text("category", &region.category);
    object.text("label", region.label);
    if !region.detail.is_empty() {
        object.text("msg", &region.detail);
    }
}
