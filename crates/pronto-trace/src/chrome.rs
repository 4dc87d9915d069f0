//! Writes a trace for chrome://tracing and Perfetto.
//!
//! The format is "Trace Event Format", in its array form. The closing bracket may be missing, so
//! the trace of an interrupted process can be opened, too.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::json::JsonObject;
use crate::record::{Event, TraceRecord};

/// The trace file.
#[derive(Debug)]
pub(crate) struct Chrome(Mutex<ChromeOutput>);

#[derive(Debug)]
struct ChromeOutput {
    out: BufWriter<File>,
    threads: HashMap<String, i64>,
}

impl Chrome {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(b"[\n")?;
        Ok(Chrome(Mutex::new(ChromeOutput {
            out,
            threads: HashMap::new(),
        })))
    }

    pub(crate) fn write(&self, record: &TraceRecord<'_>) {
        let mut state = self.lock();
        let next = i64::try_from(state.threads.len()).unwrap_or(i64::MAX) + 1;
        let known = state.threads.get(record.thread).copied();
        let thread = known.unwrap_or(next);
        if known.is_none() {
            state.threads.insert(record.thread.to_owned(), thread);
            let mut arguments = JsonObject::new();
            arguments.text("name", record.thread);
            let mut object = JsonObject::new();
            object.text("name", "thread_name");
            head(&mut object, "M", thread, Duration::ZERO);
            object.verbatim("args", &arguments.finish());
            state.line(&object.finish());
        }
        if let Some(line) = line(record, thread) {
            state.line(&line);
        }
        if matches!(record.event, Event::AtExit { .. } | Event::Signal { .. }) {
            // A failure to write the trace does not stop the command.
            let _ = state
                .out
                .write_all(b"{}]\n")
                .and_then(|()| state.out.flush());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ChromeOutput> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChromeOutput {
    fn line(&mut self, object: &str) {
        // A failure to write the trace does not stop the command.
        let _ = writeln!(self.out, "{object},");
    }
}

/// Adds the fields that every event has.
fn head(object: &mut JsonObject, phase: &str, thread: i64, at: Duration) {
    object.text("ph", phase);
    object.number("pid", std::process::id().into());
    object.number("tid", thread);
    object.number("ts", i64::try_from(at.as_micros()).unwrap_or(i64::MAX));
}

fn line(record: &TraceRecord<'_>, thread: i64) -> Option<String> {
    let mut object = JsonObject::new();
    let mut arguments = JsonObject::new();
    let at = record.absolute;
    match &record.event {
        Event::Start { arguments: given } => {
            object.text("name", "process_name");
            head(&mut object, "M", thread, Duration::ZERO);
            arguments.text("name", &given.join(" "));
        }
        Event::RegionEnter { region } => {
            object.text("name", region.label);
            object.text("cat", &region.category);
            head(&mut object, "B", thread, at);
            arguments.text("detail", &region.detail);
        }
        Event::RegionLeave { region, .. } => {
            object.text("name", region.label);
            object.text("cat", &region.category);
            head(&mut object, "E", thread, at);
        }
        Event::Data {
            category,
            key,
            value,
            ..
        } => {
            object.text("name", &format!("{key}: {value}"));
            object.text("cat", category);
            head(&mut object, "i", thread, at);
            object.text("s", "t");
            arguments.text(key, value);
        }
        Event::ChildStart {
            id,
            class,
            arguments: given,
            ..
        } => {
            object.text("name", given.first().map_or("child", String::as_str));
            object.text("cat", class);
            object.number("id", id.cast_signed());
            head(&mut object, "b", thread, at);
            arguments.array("argv", given);
        }
        Event::ChildExit { id, code, .. } => {
            object.text("name", "child");
            object.text("cat", "child");
            object.number("id", id.cast_signed());
            head(&mut object, "e", thread, at);
            arguments.number("code", (*code).into());
        }
        _ => return None,
    }
    object.verbatim("args", &arguments.finish());
    Some(object.finish())
}
