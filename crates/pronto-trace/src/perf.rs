//! `GIT_TRACE2_PERF`: columns with durations.
//!
//! The format is that of api-trace2, "The Performance Format Target".

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::clock;
use crate::quote;
use crate::record::{Event, Region, TraceRecord};

const PLACE_WIDTH: usize = 28;

pub(crate) fn line(record: &TraceRecord<'_>, is_brief: bool) -> String {
    let event = &record.event;
    let mut text = String::new();
    if !is_brief {
        let place = format!("{}:{}", record.file, record.line);
        let place = match place.len().checked_sub(PLACE_WIDTH) {
            Some(excess) if excess > 0 => {
                let end = place.get(excess + 3..).unwrap_or_default();
                format!("...{end}")
            }
            _ => place,
        };
        text = format!("{} {place:PLACE_WIDTH$} | ", clock::local_time());
    }
    let repository = if record.has_repository && event.is_of_repository() {
        "r1"
    } else {
        ""
    };
    let (absolute, relative) = times(record);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "d{} | {:24} | {:12} | {repository:3} | {absolute:>9} | {relative:>9} | {:12.12} | ",
        record.depth,
        record.thread,
        event.name(),
        category(event),
    );
    let indent = record.nesting.saturating_sub(1) * 2;
    text.extend(std::iter::repeat_n('.', indent));
    text.push_str(&payload(record));
    text
}

fn category<'a>(event: &'a Event<'_>) -> Cow<'a, str> {
    let category: &str = match event {
        Event::RegionEnter { region } | Event::RegionLeave { region, .. } => &region.category,
        Event::Data { category, .. } => category,
        Event::Parameter { parameter } => return format!("scope:{}", parameter.scope).into(),
        _ => "",
    };
    category.into()
}

/// Formats the time since the start of the process, and the time since the start of the region or
/// child process, if the event has them.
fn times(record: &TraceRecord<'_>) -> (String, String) {
    let relative = match &record.event {
        Event::Version
        | Event::Ancestry { .. }
        | Event::CommandName { .. }
        | Event::CommandMode { .. }
        | Event::Repository { .. }
        | Event::Parameter { .. }
        | Event::Alias { .. }
        | Event::Error { .. } => return (String::new(), String::new()),
        Event::ChildExit { lasted, .. }
        | Event::ThreadExit { lasted }
        | Event::RegionLeave { lasted, .. }
        | Event::Data { within: lasted, .. } => Some(*lasted),
        _ => None,
    };
    let relative = relative.map(clock::seconds).unwrap_or_default();
    (clock::seconds(record.absolute), relative)
}

fn payload(record: &TraceRecord<'_>) -> String {
    match &record.event {
        Event::Version => record.version.to_owned(),
        Event::Start { arguments } => quote::arguments(arguments),
        Event::Ancestry { names } => format!("ancestry:[{}]", quote::arguments(names)),
        Event::CommandName {
            name, hierarchy, ..
        } => format!("{name} ({hierarchy})"),
        Event::CommandMode { mode } => (*mode).to_owned(),
        Event::Repository { worktree } => {
            let mut text = "worktree:".to_owned();
            quote::pretty(worktree, &mut text);
            text
        }
        Event::Parameter { parameter } => match &parameter.value {
            Some(value) => format!("{}:{value}", parameter.name),
            None => parameter.name.clone(),
        },
        Event::Alias { alias, arguments } => {
            format!("alias:{alias} argv:[{}]", quote::arguments(arguments))
        }
        Event::Error { message } => (*message).to_owned(),
        Event::Exec { arguments } => format!("id:0 argv:[{}]", quote::arguments(arguments)),
        Event::Exit { code } | Event::AtExit { code } => format!("code:{code}"),
        Event::Signal { number } => format!("signo:{number}"),
        Event::ChildStart {
            id,
            class,
            directory,
            arguments,
        } => {
            let mut text = format!("[ch{id}] class:{class}");
            if let Some(directory) = directory {
                text.push_str(" cd:");
                quote::pretty(directory, &mut text);
            }
            text + &format!(" argv:[{}]", quote::arguments(arguments))
        }
        Event::ChildExit {
            id, process, code, ..
        } => {
            format!("[ch{id}] pid:{process} code:{code}")
        }
        Event::ThreadStart | Event::ThreadExit { .. } => String::new(),
        Event::RegionEnter { region } | Event::RegionLeave { region, .. } => label(region),
        Event::Data { key, value, .. } => format!("{key}:{value}"),
    }
}

fn label(region: &Region) -> String {
    if region.detail.is_empty() {
        format!("label:{}", region.label)
    } else {
        format!("label:{} {}", region.label, region.detail)
    }
}
