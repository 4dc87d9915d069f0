//! Traces in Git's formats and in Chrome's, from tracing spans.
