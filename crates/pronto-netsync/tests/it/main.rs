//! Tests of the public interface.

mod broken;
mod flow;
mod messages;
mod reconciliation;
mod support;
