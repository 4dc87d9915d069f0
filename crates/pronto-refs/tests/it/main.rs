//! Tests of reftables through the public API, alone and together with git.

mod broken;
mod git;
mod stack;
mod support;
mod table;
mod together;
