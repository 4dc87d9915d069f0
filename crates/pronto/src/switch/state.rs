//! Operations in progress: what forbids to switch, and what is given up by it.

use crate::{Error, ErrorKind, Repository, Result};

impl Repository {
    /// Refuses to go on while an operation is in progress that `switch` does not interrupt.
    ///
    /// # Errors
    /// There is one. The message names it in Git's words.
    pub fn refuse_while_in_progress(&self) -> Result<()> {
        let has = |name: &str| self.git_path(name).exists();
        let quit = |doing: &str, command: &str| {
            let message = format!(
                "cannot switch branch {doing}\nConsider \"git {command} --quit\" or \"git worktree \
                 add\"."
            );
            Err(Error::new(ErrorKind::Refused, message))
        };
        if has("MERGE_HEAD") {
            return quit("while merging", "merge");
        }
        if has("rebase-apply/applying") {
            return quit("in the middle of an am session", "am");
        }
        if has("rebase-apply") || has("rebase-merge") {
            return quit("while rebasing", "rebase");
        }
        if has("CHERRY_PICK_HEAD") {
            return quit("while cherry-picking", "cherry-pick");
        }
        if has("REVERT_HEAD") {
            return quit("while reverting", "revert");
        }
        if has("BISECT_LOG") {
            self.warn("you are switching branch while bisecting");
        }
        Ok(())
    }

    /// Forgets what was in progress on the branch that was left; the operations that are given
    /// up by it, as Git names them.
    pub(crate) fn remove_operation_state(&self) -> Result<Vec<&'static str>> {
        let mut cancelled = Vec::new();
        for (file, name) in [
            ("CHERRY_PICK_HEAD", "cherry picking"),
            ("REVERT_HEAD", "revert"),
        ] {
            if std::fs::remove_file(self.git_path(file)).is_ok() {
                cancelled.push(name);
            }
        }
        if !cancelled.is_empty() {
            let sequencer = self.git_path("sequencer");
            let todo = std::fs::read_to_string(sequencer.join("todo")).unwrap_or_default();
            let left = todo.lines().filter(|line| !line.starts_with('#')).count();
            if left <= 1 {
                let _ = std::fs::remove_dir_all(sequencer);
            }
        }
        for file in [
            "MERGE_HEAD",
            "MERGE_RR",
            "MERGE_MSG",
            "MERGE_MODE",
            "AUTO_MERGE",
        ] {
            let _ = std::fs::remove_file(self.git_path(file));
        }
        Ok(cancelled)
    }
}
