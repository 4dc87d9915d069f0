//! The events of a trace, independent of a format.

use std::time::Duration;

/// The state of a thread when it records an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadPosition<'a> {
    /// The name of the thread.
    pub(crate) name: &'a str,
    /// The number of open regions, including the thread itself.
    pub(crate) nesting: usize,
}

/// An event of a trace.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Version,
    Start {
        arguments: &'a [String],
    },
    Ancestry {
        names: &'a [String],
    },
    CommandName {
        name: &'a str,
        arguments: &'a [String],
        hierarchy: &'a str,
    },
    CommandMode {
        mode: &'a str,
    },
    Repository {
        worktree: &'a str,
    },
    Parameter {
        parameter: &'a Parameter,
    },
    Alias {
        alias: &'a str,
        arguments: &'a [String],
    },
    Error {
        message: &'a str,
    },
    Exec {
        arguments: &'a [String],
    },
    Exit {
        code: i32,
    },
    AtExit {
        code: i32,
    },
    Signal {
        number: i32,
    },
    ChildStart {
        id: u64,
        class: &'a str,
        directory: Option<&'a str>,
        arguments: &'a [String],
    },
    ChildExit {
        id: u64,
        process: u32,
        code: i32,
        lasted: Duration,
    },
    ThreadStart,
    ThreadExit {
        lasted: Duration,
    },
    RegionEnter {
        region: Region,
    },
    RegionLeave {
        region: Region,
        lasted: Duration,
    },
    Data {
        category: &'a str,
        key: &'a str,
        value: &'a str,
        /// Whether the value is JSON.
        is_json: bool,
        within: Duration,
    },
}

/// A setting to be recorded in the trace (`trace2.configParams`, `trace2.envVars`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The scope of the configured variable, or `command` for an environment variable.
    pub scope: &'static str,
    /// The name of the setting.
    pub name: String,
    /// The value, or `None` for a configured variable without a value.
    pub value: Option<String>,
}

/// A phase of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) category: String,
    pub(crate) label: &'static str,
    pub(crate) detail: String,
}

/// An event with its time and source position.
#[derive(Debug)]
pub(crate) struct TraceRecord<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    pub(crate) thread: &'a str,
    /// The number of open regions of the thread, including the thread itself.
    pub(crate) nesting: usize,
    /// The time since the start of the process.
    pub(crate) absolute: Duration,
    /// Whether a repository was open.
    pub(crate) has_repository: bool,
    /// The number of ancestor processes that write traces.
    pub(crate) depth: usize,
    pub(crate) sid: &'a str,
    pub(crate) version: &'a str,
}

impl Event<'_> {
    /// Returns the name of the event (`event` in `GIT_TRACE2_EVENT`).
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Event::Version => "version",
            Event::Start { .. } => "start",
            Event::Ancestry { .. } => "cmd_ancestry",
            Event::CommandName { .. } => "cmd_name",
            Event::CommandMode { .. } => "cmd_mode",
            Event::Repository { .. } => "def_repo",
            Event::Parameter { .. } => "def_param",
            Event::Alias { .. } => "alias",
            Event::Error { .. } => "error",
            Event::Exec { .. } => "exec",
            Event::Exit { .. } => "exit",
            Event::AtExit { .. } => "atexit",
            Event::Signal { .. } => "signal",
            Event::ChildStart { .. } => "child_start",
            Event::ChildExit { .. } => "child_exit",
            Event::ThreadStart => "thread_start",
            Event::ThreadExit { .. } => "thread_exit",
            Event::RegionEnter { .. } => "region_enter",
            Event::RegionLeave { .. } => "region_leave",
            Event::Data { is_json: true, .. } => "data_json",
            Event::Data { .. } => "data",
        }
    }

    /// Returns whether the event belongs to a repository rather than to the process.
    pub(crate) fn is_of_repository(&self) -> bool {
        matches!(
            self,
            Event::Repository { .. }
                | Event::RegionEnter { .. }
                | Event::RegionLeave { .. }
                | Event::Data { .. }
        )
    }
}
