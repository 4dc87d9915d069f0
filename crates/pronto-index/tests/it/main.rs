//! Tests with stock git as oracle, in both directions.

mod broken;
mod caches;
mod lengths;
mod reading;
mod support;
mod writing;
