//! Refuses to switch branches in the middle of another operation.

use pronto_repository::Notice;

use crate::{Error, ErrorKind, Repository, Result};

/// Refuses to switch while an operation is in progress that `switch` does not cancel.
///
/// # Errors
/// Fails with [`Refused`](ErrorKind::Refused) and Git's message while a merge, `am`, a rebase, a
/// cherry-pick or a revert is in progress.
pub fn refuse_while_in_progress(repository: &Repository) -> Result<()> {
    let present = repository.in_progress();
    let quit = |doing: &str, command: &str| {
        let message = format!(
            "cannot switch branch {doing}\nConsider \"git {command} --quit\" or \"git worktree \
             add\"."
        );
        Err(Error::new(ErrorKind::Refused, message))
    };
    if present.merge() {
        return quit("while merging", "merge");
    }
    if present.am() {
        return quit("in the middle of an am session", "am");
    }
    if present.rebase().is_some() {
        return quit("while rebasing", "rebase");
    }
    if present.cherry_pick() {
        return quit("while cherry-picking", "cherry-pick");
    }
    if present.revert() {
        return quit("while reverting", "revert");
    }
    if present.bisect() {
        repository.notify(Notice::SwitchWhileBisecting);
    }
    Ok(())
}
