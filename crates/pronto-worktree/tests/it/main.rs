//! Checkout against stock git.

mod engine;
mod removing;
mod support;
