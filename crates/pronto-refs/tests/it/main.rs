//! Reftables as a caller uses them, alone and beside Git.

mod broken;
mod git;
mod stack;
mod support;
mod table;
mod together;
