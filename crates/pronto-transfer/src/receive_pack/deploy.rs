//! Updates the worktree of a pushed branch (`receive.denyCurrentBranch=updateInstead`).

use std::path::Path;

use pronto_hash::{Kind, ObjectId};

use super::ReceivedPush;
use super::checks::CheckedOut;
use super::hook::{Variable, apply};
use crate::{ErrorKind, Result};

/// A command of the update, with the reason for the report if the command fails.
struct DeployStep {
    arguments: Vec<String>,
    reason: &'static str,
}

fn step(arguments: &str, reason: &'static str) -> DeployStep {
    DeployStep {
        arguments: arguments.split(' ').map(str::to_owned).collect(),
        reason,
    }
}

impl ReceivedPush<'_> {
    /// Updates the worktree to the content of `new`, by the hook `push-to-checkout`, or directly if
    /// the worktree has no changes. Returns the reason if that is not possible.
    pub(super) fn deploy(
        &self,
        new: &ObjectId,
        worktree: &CheckedOut,
    ) -> Result<Option<&'static str>> {
        let Some(top) = &worktree.top else {
            return Ok(Some("denyCurrentBranch = updateInstead needs a worktree"));
        };
        // The following programs may prune objects, or read the published objects.
        match self.run_push_to_checkout(new, &worktree.git_dir, top)? {
            Some(true) => return Ok(None),
            Some(false) => return Ok(Some("push-to-checkout hook declined")),
            None => {}
        }
        let own = self.repository.common_dir().join("worktrees");
        let head = match worktree.git_dir.strip_prefix(own) {
            Ok(id) => format!("worktrees/{}/HEAD", id.display()),
            Err(_) => "HEAD".to_owned(),
        };
        let head = match self.repository.refs().id_of(head) {
            Ok(Some(_)) => "HEAD".to_owned(),
            _ => empty_tree(self.repository.object_hash()).to_owned(),
        };
        let steps = [
            step(
                "update-index -q --ignore-submodules --refresh",
                "Up-to-date check failed",
            ),
            step(
                "diff-files --quiet --ignore-submodules --",
                "Working directory has unstaged changes",
            ),
            step(
                &format!("diff-index --quiet --cached --ignore-submodules {head} --"),
                "Working directory has staged changes",
            ),
            step(
                &format!("read-tree -u -m {new}"),
                "Could not update working tree to new HEAD",
            ),
        ];
        for step in steps {
            if !self.run_step(&step, &worktree.git_dir, top)? {
                return Ok(Some(step.reason));
            }
        }
        Ok(None)
    }

    fn run_step(&self, step: &DeployStep, git_dir: &Path, top: &Path) -> Result<bool> {
        let mut process = pronto_io::child::command(&self.options.program);
        process.args(&step.arguments);
        self.prepare(&mut process);
        process.current_dir(top);
        apply(&mut process, &[Variable::set("GIT_DIR", git_dir)]);
        process.stdout(pronto_io::child::standard_error());
        process.stdin(std::process::Stdio::null());
        let traced = pronto_io::child::started("?", &process);
        let status = process.status().map_err(|error| {
            let program = self.options.program.display();
            crate::Error::new(ErrorKind::Io, format!("cannot run {program}")).because(error)
        })?;
        let _ = traced;
        Ok(status.success())
    }
}

fn empty_tree(hash: Kind) -> &'static str {
    match hash {
        Kind::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        _ => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    }
}
