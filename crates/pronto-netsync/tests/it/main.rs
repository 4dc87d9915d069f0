//! Tests of the public interface.

mod broken;
mod flow;
mod reconciliation;
mod support;
