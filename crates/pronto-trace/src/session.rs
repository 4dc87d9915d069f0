//! The trace session of a process.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::record::{Event, Parameter};
use crate::settings::Settings;
use crate::subscriber::Listener;
use crate::traces::{TracedProgram, Traces};
use crate::warning::TraceWarning;
use crate::{performance, redact, thread};

/// A running trace session. Clones share the session. `Send + Sync`: every method writes to each
/// open trace, and may be called from any thread.
#[derive(Clone, Debug)]
pub struct TraceSession(Arc<Traces>);

impl TraceSession {
    /// Opens the traces, registers the calling thread as the main thread, records the start of the
    /// process, and subscribes to the events of libraries. Failures of destinations are returned as
    /// warnings: a trace that cannot be written never stops a command.
    pub fn begin(settings: &Settings, mut program: TracedProgram) -> (Self, Vec<TraceWarning>) {
        if !settings.shows_passwords {
            program.arguments = redact::all(&program.arguments);
        }
        let (traces, warnings) = Traces::open(settings, program);
        let traces = Arc::new(traces);
        thread::set_main(Arc::downgrade(&traces), traces.program.begun);
        thread::emit(&traces, Event::Version, file!(), line!());
        thread::emit(
            &traces,
            Event::Start {
                arguments: &traces.program.arguments,
            },
            file!(),
            line!(),
        );
        let names = ancestry();
        if !names.is_empty() {
            thread::emit(&traces, Event::Ancestry { names: &names }, file!(), line!());
        }
        // In tests another subscriber may be installed, which then receives the regions.
        let _ = tracing::subscriber::set_global_default(Listener::new(Arc::clone(&traces)));
        (TraceSession(traces), warnings)
    }

    /// Returns the session id, which includes the ids of the parent sessions
    /// (`GIT_TRACE2_PARENT_SID`).
    pub fn id(&self) -> &str {
        &self.0.sid.text
    }

    /// Returns the variables to set for child processes (`GIT_TRACE2_PARENT_SID`,
    /// `GIT_TRACE2_PARENT_NAME`).
    pub fn child_variables(&self, command: &str) -> [(&'static str, OsString); 2] {
        [
            ("GIT_TRACE2_PARENT_SID", self.0.sid.text.clone().into()),
            ("GIT_TRACE2_PARENT_NAME", self.hierarchy(command).into()),
        ]
    }

    fn hierarchy(&self, command: &str) -> String {
        match &self.0.parent_name {
            Some(parent) => format!("{parent}/{command}"),
            None => command.to_owned(),
        }
    }

    /// Records the name and the arguments of the command (`cmd_name`).
    pub fn command_name(&self, name: &str, arguments: &[String]) {
        let hierarchy = self.hierarchy(name);
        thread::emit(
            &self.0,
            Event::CommandName {
                name,
                arguments: &self.0.shown(arguments),
                hierarchy: &hierarchy,
            },
            file!(),
            line!(),
        );
    }

    /// Records the mode of the command (`cmd_mode`).
    pub fn command_mode(&self, mode: &str) {
        thread::emit(&self.0, Event::CommandMode { mode }, file!(), line!());
    }

    /// Records the worktree of the repository (`def_repo`).
    pub fn repository(&self, worktree: &str) {
        self.0.has_repository.store(true, Relaxed);
        thread::emit(&self.0, Event::Repository { worktree }, file!(), line!());
    }

    /// Records a setting (`def_param`). A password in a URL is redacted.
    pub fn parameter(&self, mut parameter: Parameter) {
        if let Some(value) = parameter.value.take() {
            let shown = self.0.shown(&[value]).first().cloned();
            parameter.value = shown;
        }
        let parameter = &parameter;
        thread::emit(&self.0, Event::Parameter { parameter }, file!(), line!());
    }

    /// Records that `alias` was expanded to `arguments` (`alias`).
    pub fn alias(&self, alias: &str, arguments: &[String]) {
        let arguments = &*self.0.shown(arguments);
        thread::emit(&self.0, Event::Alias { alias, arguments }, file!(), line!());
    }

    /// Records an error message (`error`).
    pub fn error(&self, message: &str) {
        thread::emit(&self.0, Event::Error { message }, file!(), line!());
    }

    /// Records that the process is about to execute another program (`exec`).
    pub fn exec(&self, arguments: &[String]) {
        let arguments = &*self.0.shown(arguments);
        thread::emit(&self.0, Event::Exec { arguments }, file!(), line!());
    }

    /// Records that a signal is about to end the process (`signal`). Later events are not written.
    pub fn signal(&self, number: i32) {
        thread::emit(&self.0, Event::Signal { number }, file!(), line!());
        self.0.is_over.store(true, Relaxed);
    }

    /// Records that the process is about to exit with `code` (`exit`, `atexit`). Later events are
    /// not written.
    pub fn exit(&self, code: u8) {
        let code = i32::from(code);
        thread::emit(&self.0, Event::Exit { code }, file!(), line!());
        if self.0.performance.is_open() && !self.0.is_over.load(Relaxed) {
            let lasted = self.0.program.begun.elapsed();
            let (trace, arguments) = (&self.0.performance, &self.0.program.arguments);
            trace.write(performance::command(arguments, lasted, trace.is_brief));
        }
        thread::emit(&self.0, Event::AtExit { code }, file!(), line!());
        self.0.is_over.store(true, Relaxed);
    }
}

/// Returns the names of the ancestor processes, the parent first.
fn ancestry() -> Vec<String> {
    const DEPTH_LIMIT: usize = 10;
    let mut names = Vec::new();
    let mut process = "self".to_owned();
    for _ in 0..=DEPTH_LIMIT {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
            break;
        };
        let (Some(open), Some(close)) = (text.find('('), text.rfind(')')) else {
            break;
        };
        if process != "self" {
            names.push(text[open + 1..close].to_owned());
        }
        match text[close + 1..].split_whitespace().nth(1) {
            Some(parent) if parent != "0" => process = parent.to_owned(),
            _ => break,
        }
    }
    names
}
