//! The Git commands that maintenance runs, and the trait that runs them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::{MaintenanceTask, Settings};
use crate::{Error, Result};

/// A Git command that does a part of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandCall {
    /// The name of the command and its arguments, without `git`.
    pub arguments: Vec<OsString>,
    /// The standard input; `None` for an empty input. The standard output is discarded.
    pub input: Option<Vec<u8>>,
}

impl CommandCall {
    pub(super) fn with(arguments: Vec<OsString>) -> Self {
        CommandCall {
            arguments,
            input: None,
        }
    }

    pub(super) fn of(words: &[&str]) -> Self {
        Self::with(words.iter().map(Into::into).collect())
    }

    pub(super) fn push(&mut self, word: impl Into<OsString>) {
        self.arguments.push(word.into());
    }

    pub(super) fn pack_refs(auto: bool) -> Self {
        let mut step = Self::of(&["pack-refs", "--all", "--prune"]);
        if auto {
            step.push("--auto");
        }
        step
    }

    pub(super) fn prune_work_trees(settings: &Settings) -> Self {
        let mut step = Self::of(&["worktree", "prune", "--expire"]);
        step.push(OsString::from_vec(settings.worktree_prune_expire.to_vec()));
        step
    }
}

/// Runs the commands of maintenance and receives reports.
pub trait CommandRunner {
    /// Runs a command and waits for its end. Returns whether the command succeeded.
    ///
    /// # Errors
    /// Fails if the command cannot be started, or if this process is interrupted.
    fn run(&mut self, step: &CommandCall) -> Result<bool>;

    /// Starts a background process for the remaining work. Returns `false` if this process must do
    /// the work.
    fn detach(&mut self) -> bool;

    /// Reports that `task` failed. The remaining tasks run nevertheless. The message of the error
    /// is empty if the failed command has reported the reason.
    fn report_failure(&mut self, task: MaintenanceTask, error: &Error);

    /// Reports that the incremental repack is skipped, because `core.multiPackIndex` is off.
    fn report_no_multi_pack_index(&mut self);
}
