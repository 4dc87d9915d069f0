//! The store over a directory, with several processes' worth of state.

mod damage;
mod directory;
mod support;
mod upkeep;
