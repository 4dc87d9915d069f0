//! Compares checkout with stock git.

mod engine;
mod removing;
mod support;
