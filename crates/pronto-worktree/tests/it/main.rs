//! Checkout against stock git.

mod engine;
mod support;
