//! The requested traces of this process.

use pronto_trace::{Program, Session, Settings};

use crate::context::Context;
use crate::error::{CliError, ExitCode};

impl Context {
    /// Starts the traces that the environment or `--trace-chrome` request.
    pub(crate) fn begin_trace(&mut self, command: &str) {
        let get = |name: &str| self.globals.variable(name);
        let settings = match (Settings::from_variables(&get), &self.globals.trace_chrome) {
            (None, None) => return,
            (Some(settings), None) => settings,
            (None, Some(path)) => Settings::unasked(&get).with_chrome(path.clone()),
            (Some(settings), Some(path)) => settings.with_chrome(path.clone()),
        };
        let lossy = |argument: &std::ffi::OsString| argument.to_string_lossy().into_owned();
        let program = Program {
            version: format!("pronto {}", env!("CARGO_PKG_VERSION")),
            arguments: self.process.iter().map(lossy).collect(),
            begun: self.begun,
        };
        let settings = settings.with_duplicate(pronto_io::descriptor::duplicate);
        let (session, warnings) = Session::begin(&settings, program);
        for warning in warnings {
            self.warn(&warning);
        }
        if let Some((alias, words)) = &self.alias {
            let words: Vec<String> = words.iter().map(lossy).collect();
            session.alias(&alias.to_string_lossy(), &words);
        }
        let arguments: Vec<String> = self.arguments.iter().map(lossy).collect();
        session.command_name(command, &arguments);
        for (name, value) in session.child_variables(command) {
            self.globals.set(name, value);
        }
        self.trace = Some(session);
    }

    /// Returns the trace of this process, to record the repository or the mode of the command.
    pub fn trace(&self) -> Option<&Session> {
        self.trace.as_ref()
    }

    /// Returns the id of this session, which exists without a trace, too.
    pub(crate) fn session_id(&self) -> String {
        match &self.trace {
            Some(trace) => trace.id().to_owned(),
            None => {
                pronto_trace::session_id(self.globals.variable("GIT_TRACE2_PARENT_SID").as_ref())
            }
        }
    }

    pub(crate) fn trace_error(&self, error: &CliError) {
        if let Some(trace) = &self.trace {
            error
                .messages()
                .iter()
                .for_each(|message| trace.error(message));
        }
    }

    pub(crate) fn trace_exit(&self, code: ExitCode) {
        if let Some(trace) = &self.trace {
            trace.exit(code.code());
        }
    }

    pub(crate) fn trace_exec(&self) {
        if let Some(trace) = &self.trace {
            let lossy = |argument: &std::ffi::OsString| argument.to_string_lossy().into_owned();
            let mut arguments: Vec<String> = self.process.iter().map(lossy).collect();
            if let Some(program) = arguments.first_mut() {
                "git".clone_into(program);
            }
            trace.exec(&arguments);
        }
    }
}
