//! The protocol against real servers, and against broken ones.

#![expect(clippy::print_stdout, reason = "tests say what they skip")]

mod broken;
mod limits;
mod matrix;
mod negotiation;
#[path = "../servers/lib.rs"]
mod servers;
mod support;
mod web;
