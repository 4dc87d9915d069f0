//! `GIT_TRACE2`: one line for each step of the process, without regions and data.
//!
//! The format is that of api-trace2, "The Normal Format Target".

use crate::clock;
use crate::quote;
use crate::record::{Event, TraceRecord};

/// The column at which the message starts, after the time and the source position.
const MESSAGE_COLUMN: usize = 50;

pub(crate) fn line(record: &TraceRecord<'_>, is_brief: bool) -> Option<String> {
    let message = message(record)?;
    if is_brief {
        return Some(message);
    }
    let place = format!("{} {}:{} ", clock::local_time(), record.file, record.line);
    Some(format!("{place:MESSAGE_COLUMN$}{message}"))
}

fn message(record: &TraceRecord<'_>) -> Option<String> {
    let elapsed = || clock::seconds(record.absolute);
    Some(match &record.event {
        Event::Version => format!("version {}", record.version),
        Event::Start { arguments } => format!("start {}", quote::arguments(arguments)),
        Event::Ancestry { names } => format!("cmd_ancestry {}", names.join(" <- ")),
        Event::CommandName {
            name, hierarchy, ..
        } => format!("cmd_name {name} ({hierarchy})"),
        Event::CommandMode { mode } => format!("cmd_mode {mode}"),
        Event::Repository { worktree } => {
            let mut text = "worktree ".to_owned();
            quote::pretty(worktree, &mut text);
            text
        }
        Event::Parameter { parameter } => {
            let (scope, name) = (parameter.scope, &parameter.name);
            match &parameter.value {
                Some(value) => format!("def_param scope:{scope} {name}={value}"),
                None => format!("def_param scope:{scope} {name}"),
            }
        }
        Event::Alias { alias, arguments } => {
            format!("alias {alias} -> {}", quote::arguments(arguments))
        }
        Event::Error { message } => format!("error {message}"),
        Event::Exec { arguments } => format!("exec[0] {}", quote::arguments(arguments)),
        Event::Exit { code } => format!("exit elapsed:{} code:{code}", elapsed()),
        Event::AtExit { code } => format!("atexit elapsed:{} code:{code}", elapsed()),
        Event::Signal { number } => format!("signal elapsed:{} code:{number}", elapsed()),
        Event::ChildStart {
            id,
            directory,
            arguments,
            ..
        } => {
            let mut text = format!("child_start[{id}]");
            if let Some(directory) = directory {
                text.push_str(" cd ");
                quote::pretty(directory, &mut text);
                text.push(';');
            }
            text.push(' ');
            text.push_str(&quote::arguments(arguments));
            text
        }
        Event::ChildExit {
            id,
            process,
            code,
            lasted,
        } => {
            let lasted = clock::seconds(*lasted);
            format!("child_exit[{id}] pid:{process} code:{code} elapsed:{lasted}")
        }
        Event::ThreadStart
        | Event::ThreadExit { .. }
        | Event::RegionEnter { .. }
        | Event::RegionLeave { .. }
        | Event::Data { .. } => return None,
    })
}
