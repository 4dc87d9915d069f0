//! Tests of the protocol with real servers and broken ones.

mod broken;
mod limits;
mod matrix;
mod negotiation;
#[path = "../servers/lib.rs"]
mod servers;
mod support;
mod trust;
mod web;
