//! Permissions: the same answers over each protocol, for names of repositories that mean two places, for users who
//! were removed, and for hosts that lead here.

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
