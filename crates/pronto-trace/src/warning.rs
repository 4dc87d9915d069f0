//! Warnings about the destinations of traces.

use std::fmt;

/// The reason for which a trace is not written. [`Display`](fmt::Display) formats Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceWarning {
    /// The value of a `GIT_TRACE2` variable is not a valid destination.
    UnknownValue {
        /// The name of the environment variable.
        variable: &'static str,
        /// The value of the environment variable.
        value: String,
    },
    /// The value of another trace variable is not a valid destination.
    UnknownTraceValue {
        /// The name of the environment variable.
        variable: &'static str,
        /// The value of the environment variable.
        value: String,
    },
    /// The destination cannot be opened.
    NotOpened {
        /// The name of the environment variable.
        variable: &'static str,
        /// The value of the environment variable.
        value: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The file of the trace in Chrome's format cannot be created.
    NotCreated {
        /// The path of the file.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
}

impl fmt::Display for TraceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceWarning::UnknownValue { variable, value } => {
                write!(f, "trace2: unknown value for '{variable}': '{value}'")
            }
            TraceWarning::UnknownTraceValue { variable, value } => {
                write!(f, "unknown trace value for '{variable}': {value}")
            }
            TraceWarning::NotOpened {
                variable,
                value,
                reason,
            } => write!(
                f,
                "trace2: could not open '{value}' for '{variable}' tracing: {reason}"
            ),
            TraceWarning::NotCreated { path, reason } => {
                write!(f, "could not open trace '{path}': {reason}")
            }
        }
    }
}
