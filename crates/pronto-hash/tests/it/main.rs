//! Tests of the public API.

mod api;
mod collisions;
mod many;
mod stream;
