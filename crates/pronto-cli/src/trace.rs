//! The traces that this process writes on request.

use pronto::config::{Config, ConfigEntry, ConfigScope};
use pronto::glob;
use pronto_trace::{Parameter, Settings, TraceSession, TracedProgram};

use crate::commands::version::GIT_VERSION;
use crate::context::Context;
use crate::error::{CliError, ExitCode};

impl Context {
    /// Starts the traces that the environment or `--trace-chrome` requests.
    pub(crate) fn begin_trace(&mut self, command: &str) {
        let get = |name: &str| self.globals.variable(name);
        let settings = match (Settings::from_variables(&get), &self.globals.trace_chrome) {
            (None, None) => return,
            (Some(settings), None) => settings,
            (None, Some(path)) => Settings::without_git_traces(&get).with_chrome(path.clone()),
            (Some(settings), Some(path)) => settings.with_chrome(path.clone()),
        };
        let lossy = |argument: &std::ffi::OsString| argument.to_string_lossy().into_owned();
        let program = TracedProgram {
            version: match self.called_as_git {
                true => GIT_VERSION.to_owned(),
                false => format!("pronto {}", env!("CARGO_PKG_VERSION")),
            },
            arguments: self.process.iter().map(lossy).collect(),
            begun: self.begun,
        };
        let settings = settings.with_duplicate(pronto_io::descriptor::duplicate);
        let (session, warnings) = TraceSession::begin(&settings, program);
        for warning in warnings {
            self.warn(&warning.to_string());
        }
        if let Some((alias, words)) = &self.alias {
            let words: Vec<String> = words.iter().map(lossy).collect();
            session.alias(&alias.to_string_lossy(), &words);
        }
        let arguments: Vec<String> = self.arguments.iter().map(lossy).collect();
        session.command_name(command, &arguments);
        if self.is_traced() {
            self.trace_parameters(&session);
        }
        for (name, value) in session.child_variables(command) {
            self.globals.set(name, value);
        }
        self.trace = Some(session);
    }

    /// Returns whether a trace that shows child processes is requested.
    pub(crate) fn is_traced(&self) -> bool {
        [
            "GIT_TRACE",
            "GIT_TRACE2",
            "GIT_TRACE2_PERF",
            "GIT_TRACE2_EVENT",
        ]
        .iter()
        .filter_map(|name| self.globals.variable(name))
        .any(|value| !["", "0", "false"].iter().any(|off| value == *off))
    }

    /// Records the configured variables and environment variables that the trace contains on
    /// request.
    fn trace_parameters(&mut self, session: &TraceSession) {
        // The command reports a configuration that cannot be read.
        let Ok(config) = self.configuration() else {
            return;
        };
        let patterns = self.list("GIT_TRACE2_CONFIG_PARAMS", "trace2.configparams", &config);
        for pattern in patterns {
            record(session, &pattern, config.iter());
        }
        for name in self.list("GIT_TRACE2_ENV_VARS", "trace2.envvars", &config) {
            if let Some(value) = self
                .globals
                .variable(&name)
                .filter(|value| !value.is_empty())
            {
                session.parameter(Parameter {
                    scope: "command",
                    value: Some(value.to_string_lossy().into_owned()),
                    name,
                });
            }
        }
    }

    /// Records the configured variables of a newly created repository, if the trace contains them.
    pub(crate) fn trace_new_repository(&self, config: &Config) {
        let Some(session) = self.trace.as_ref().filter(|_| self.is_traced()) else {
            return;
        };
        for pattern in self.list("GIT_TRACE2_CONFIG_PARAMS", "trace2.configparams", config) {
            let own = |entry: &ConfigEntry<'_>| entry.origin.scope == ConfigScope::Local;
            record(session, &pattern, config.iter().filter(own));
        }
    }

    /// Returns the words of a comma-separated list, from an environment variable or else from the
    /// user's or system configuration.
    fn list(&self, variable: &str, key: &str, config: &Config) -> Vec<String> {
        let words = match self.globals.variable(variable) {
            Some(words) => words.to_string_lossy().into_owned(),
            None => config
                .entries(key)
                .rfind(|entry| {
                    matches!(
                        entry.origin.scope,
                        ConfigScope::System | ConfigScope::Global
                    )
                })
                .and_then(|entry| entry.value.map(ToString::to_string))
                .unwrap_or_default(),
        };
        let words = words.split(',').map(|word| word.trim_start().to_owned());
        words.filter(|word| !word.is_empty()).collect()
    }

    /// Returns the trace of this process, for recording the repository or the mode of the command.
    pub fn trace(&self) -> Option<&TraceSession> {
        self.trace.as_ref()
    }

    /// Returns a function that creates the session id of this process, even without a trace.
    pub(crate) fn session_id(&self) -> impl FnOnce() -> String + Send + 'static {
        let traced = self.trace.as_ref().map(|trace| trace.id().to_owned());
        let parent = self.globals.variable("GIT_TRACE2_PARENT_SID");
        move || traced.unwrap_or_else(|| pronto_trace::session_id(parent.as_ref()))
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

/// Records the `entries` whose keys match `pattern`.
fn record<'a>(
    session: &TraceSession,
    pattern: &str,
    entries: impl Iterator<Item = ConfigEntry<'a>>,
) {
    let how = glob::MatchOptions {
        fold_case: true,
        ..glob::MatchOptions::default()
    };
    for entry in entries.filter(|entry| glob::matches(pattern.as_bytes(), entry.key, how)) {
        session.parameter(Parameter {
            scope: entry.origin.scope.name(),
            name: entry.key.to_string(),
            value: entry.value.map(ToString::to_string),
        });
    }
}
