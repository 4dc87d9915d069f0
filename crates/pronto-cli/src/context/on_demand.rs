//! Fetching missing objects of a partial clone on demand.

use pronto::Repository;
use pronto::Watch;

use super::Context;
use crate::CliError;

/// Commands that fetch each missing object of a partial clone when they read it. Other commands
/// fetch missing objects in one batch, or omit them.
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

/// Enables fetching on demand if the command reads objects and the repository is a partial clone.
pub(super) fn enable(context: &Context, found: &Repository) -> Result<(), CliError> {
    match READERS.contains(&context.command) {
        true => Ok(pronto::remote::fetch_on_demand(
            found,
            &Watch::from(&context.interrupt),
        )?),
        false => Ok(()),
    }
}
