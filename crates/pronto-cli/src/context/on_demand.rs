//! Objects that a partial clone lacks, fetched when a command reads them.

use pronto::Repository;

use super::Context;
use crate::CliError;

/// Commands that fetch the objects which a partial clone lacks when they read them. Others fetch them together, or
/// know what to leave out.
const READERS: [&str; 22] = [
    "add",
    "archive",
    "bundle",
    "cat-file",
    "checkout",
    "checkout-index",
    "commit",
    "diff-files",
    "diff-index",
    "diff-tree",
    "ls-files",
    "ls-tree",
    "read-tree",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "sparse-checkout",
    "status",
    "switch",
    "update-index",
    "worktree",
];

impl Context {
    /// Lets a command that reads objects fetch those that a partial clone lacks.
    pub(super) fn fetch_on_demand(&self, found: &Repository) -> Result<(), CliError> {
        match READERS.contains(&self.command) {
            true => Ok(pronto::remote::fetch_on_demand(found, &self.interrupt)?),
            false => Ok(()),
        }
    }
}
