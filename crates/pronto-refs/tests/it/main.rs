//! Reftables as a caller uses them, alone and beside Git.

#![expect(clippy::print_stdout, reason = "tests say what they skip")]

mod broken;
mod git;
mod stack;
mod support;
mod table;
mod together;
