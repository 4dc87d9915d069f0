//! Tests of the public interface.

mod broken;
mod flow;
mod memory;
mod messages;
mod reconciliation;
mod sessions;
