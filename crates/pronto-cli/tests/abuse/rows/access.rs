//! Attacks on permissions: every protocol must give the same answers, for ambiguous repository
//! names, removed users, and other hosts.

mod hosts;
mod matrix;
mod names;
pub(super) mod netsync;
mod removed;

use super::Table;

pub(super) fn table() -> Table {
    let mut table = Table::new("access");
    matrix::rows(&mut table);
    names::rows(&mut table);
    removed::rows(&mut table);
    hosts::rows(&mut table);
    table
}
