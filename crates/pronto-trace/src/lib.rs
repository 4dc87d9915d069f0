//! Writes the traces of a process, in Git's formats and in Chrome's.
//!
//! Libraries emit `tracing` spans with the target `pronto::region`, and events with the targets
//! `pronto::data` and `pronto::child`. If a trace is requested, the front end starts a [`TraceSession`],
//! which writes the trace. Otherwise no subscriber is installed, and spans and events cost almost
//! nothing.
//!
//! | variable | format |
//! |---|---|
//! | `GIT_TRACE2` | one line for each step of the process |
//! | `GIT_TRACE2_PERF` | columns: regions, data and the time they took |
//! | `GIT_TRACE2_EVENT` | one JSON object in each line |
//! | `GIT_TRACE` | the command, and the processes that it starts |
//! | `GIT_TRACE_PERFORMANCE` | one line for each region that ended |
//!
//! Passwords in URLs are redacted, unless `GIT_TRACE2_REDACT` is false.
//!
//! ```
//! let settings = pronto_trace::Settings::from_variables(&|_| None);
//! assert!(settings.is_none());
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod basic;
mod child;
mod chrome;
mod clock;
mod destination;
mod event;
mod json;
mod normal;
mod perf;
mod performance;
mod quote;
mod record;
mod redact;
mod session;
mod settings;
mod sid;
mod subscriber;
mod thread;
mod traces;
mod warning;

pub use record::Parameter;
pub use session::TraceSession;
pub use settings::{Duplicate, Settings};
pub use traces::TracedProgram;
pub use warning::TraceWarning;

/// Creates the id of a session without traces. `parent` is the value of `GIT_TRACE2_PARENT_SID`.
pub fn session_id(parent: Option<&std::ffi::OsString>) -> String {
    sid::Sid::new(parent.filter(|parent| !parent.is_empty())).text
}
