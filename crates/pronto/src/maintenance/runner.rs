//! The commands that do the parts of maintenance, and the trait for running them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::{Settings, Task};
use crate::{Error, Result};

/// A call of a command of Git that does a part of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The command and its arguments.
    pub arguments: Vec<OsString>,
    /// The standard input; nothing if `None`. The output is discarded.
    pub input: Option<Vec<u8>>,
}

impl Step {
    pub(super) fn with(arguments: Vec<OsString>) -> Self {
        Step {
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

/// The runner of the commands of maintenance, which reports their progress.
pub trait Runner {
    /// Runs a step and waits for it. Returns whether it succeeded.
    ///
    /// # Errors
    /// It cannot be started, or this process is interrupted.
    fn run(&mut self, step: &Step) -> Result<bool>;

    /// Starts a process that does the remaining work in the background. Returns `false` if this
    /// process must do it.
    fn detach(&mut self) -> bool;

    /// Reports that `task` failed. The tasks that follow run nevertheless. The message of the error is
    /// empty if the failed step has reported the reason.
    fn report_failure(&mut self, task: Task, error: &Error);

    /// Reports that the incremental repack is skipped, because `core.multiPackIndex` is off.
    fn report_no_multi_pack_index(&mut self);
}
