//! `GIT_TRACE`: the command, and the processes that it starts.

use crate::clock;
use crate::quote;
use crate::record::{Event, TraceRecord};

/// The column at which the message starts.
const MESSAGE_COLUMN: usize = 40;

pub(crate) fn line(record: &TraceRecord<'_>, is_brief: bool) -> Option<String> {
    let message = match &record.event {
        Event::CommandName {
            name, arguments, ..
        } => {
            let mut words = vec!["git", name];
            words.extend(arguments.iter().map(String::as_str));
            format!("built-in: {}", quote::arguments(&words))
        }
        Event::Exec { arguments } => format!("exec: {}", quote::arguments(arguments)),
        Event::ChildStart { arguments, .. } => {
            format!("run_command: {}", quote::arguments(arguments))
        }
        Event::Alias { alias, arguments } => {
            format!(
                "alias expansion: {alias} => {}",
                quote::arguments(arguments)
            )
        }
        _ => return None,
    };
    let place = place(record.file, record.line, is_brief);
    Some(format!("{place}trace: {message}"))
}

/// Formats the time and the source position before a message, or an empty string if `is_brief`.
pub(crate) fn place(file: &str, line: u32, is_brief: bool) -> String {
    if is_brief {
        return String::new();
    }
    let place = format!("{} {file}:{line} ", clock::local_time());
    format!("{place:MESSAGE_COLUMN$}")
}
