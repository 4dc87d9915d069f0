//! Problems with the destinations of traces.

use std::fmt;

/// A trace that is not written. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A variable of trace2 has a value that names no destination.
    UnknownValue {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The variable of another trace has a value that names no destination.
    UnknownTraceValue {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// A destination cannot be opened.
    NotOpened {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The reason of the operating system.
        reason: String,
    },
    /// The file of the trace in Chrome's format cannot be made.
    NotCreated {
        /// The path of the file.
        path: String,
        /// The reason of the operating system.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::UnknownValue { variable, value } => {
                write!(f, "trace2: unknown value for '{variable}': '{value}'")
            }
            Warning::UnknownTraceValue { variable, value } => {
                write!(f, "unknown trace value for '{variable}': {value}")
            }
            Warning::NotOpened {
                variable,
                value,
                reason,
            } => write!(
                f,
                "trace2: could not open '{value}' for '{variable}' tracing: {reason}"
            ),
            Warning::NotCreated { path, reason } => {
                write!(f, "could not open trace '{path}': {reason}")
            }
        }
    }
}
