//! Support code that tests of several crates share.

pub mod git;
