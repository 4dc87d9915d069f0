//! Tests of the public API.

mod api;
