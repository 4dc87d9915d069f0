//! Tests of real servers on this machine, with stock git as their client.

mod abuse;
mod access;
mod api;
mod archive;
mod channels;
mod daemon;
mod fetch;
mod lifecycle;
mod metrics;
mod push;
mod secure;
#[path = "../../../pronto-store/tests/stored/lib.rs"]
mod stored;
mod support;
