//! The protocol against real servers, and against broken ones.

mod broken;
mod limits;
mod matrix;
mod negotiation;
#[path = "../servers/lib.rs"]
mod servers;
mod support;
mod web;
