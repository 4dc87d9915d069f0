//! The command line as its users see it: real processes, a real git beside them.

mod aliases;
mod fallback;
mod options;
mod signals;
mod streams;
mod support;
mod traces;
