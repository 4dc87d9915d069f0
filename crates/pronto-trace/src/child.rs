//! Receives the events of child processes from the libraries.

use std::sync::Arc;
use std::time::Duration;

use tracing::field::{Field, Visit};

use crate::record::Event;
use crate::thread;
use crate::traces::Traces;

/// The fields of an event with the target `pronto::child`. An event with `argv` is the start of a
/// process, and an event with `pid` is its end.
#[derive(Debug, Default)]
pub(crate) struct ProcessFields {
    id: u64,
    class: String,
    directory: Option<String>,
    arguments: Option<Vec<String>>,
    process: u64,
    code: i64,
    micros: u64,
}

impl Visit for ProcessFields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "class" => self.class = value.to_owned(),
            "cd" => self.directory = Some(value.to_owned()),
            "argv" => self.arguments = Some(value.split('\0').map(str::to_owned).collect()),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "id" => self.id = value,
            "pid" => self.process = value,
            "micros" => self.micros = value,
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "code" {
            self.code = value;
        }
    }
}

impl ProcessFields {
    pub(crate) fn emit(&self, traces: &Arc<Traces>, file: &str, line: u32) {
        let arguments = self
            .arguments
            .as_ref()
            .map(|arguments| traces.shown(arguments));
        let event = match &arguments {
            Some(arguments) => Event::ChildStart {
                id: self.id,
                class: &self.class,
                directory: self.directory.as_deref(),
                arguments,
            },
            None => Event::ChildExit {
                id: self.id,
                process: u32::try_from(self.process).unwrap_or_default(),
                code: i32::try_from(self.code).unwrap_or(-1),
                lasted: Duration::from_micros(self.micros),
            },
        };
        thread::emit(traces, event, file, line);
    }
}
