//! `GIT_TRACE`: which command runs, and which processes it starts.

use crate::clock;
use crate::quote;
use crate::record::{Event, Record};

/// Where the message starts.
pub(crate) const MESSAGE_COLUMN: usize = 40;

pub(crate) fn line(record: &Record<'_>) -> Option<String> {
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
    let place = format!("{} {}:{} ", clock::local_time(), record.file, record.line);
    Some(format!("{place:MESSAGE_COLUMN$}trace: {message}"))
}
