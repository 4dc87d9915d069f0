//! `fetch --set-upstream`: makes the fetched branch the upstream of the current branch.

use bstr::{BString, ByteSlice};
use pronto::Repository;
use pronto::fetch::{Flag, Outcome, Update, UpdateNote};
use pronto::remote::Remote;
use pronto::switch;

use crate::{CliError, Context};

/// Returns whether the upstream may be set. As in Git, a ref that could not be written does not
/// prevent it, unless the update is atomic (`--atomic`). A rejected update always does.
pub(super) fn may_follow(outcome: &Outcome, is_atomic: bool) -> bool {
    let is_undone = is_atomic && outcome.failed;
    !is_undone && !has_refusals(outcome)
}

/// Returns whether the update of a ref was rejected, which Git detects before it writes any ref.
pub(super) fn has_refusals(outcome: &Outcome) -> bool {
    let is_refused = |update: &Update| {
        update.flag == Flag::Rejected && update.note != Some(UpdateNote::NotWritten)
    };
    outcome.updates.iter().any(is_refused)
}

/// Makes the only branch of `fetched` the upstream of the current branch. `fetched` are the refs
/// without a remote-tracking branch. Warns if `fetched` has no branch, or more than one.
pub(super) fn set(
    repository: &Repository,
    remote: &Remote,
    fetched: &[BString],
    context: &mut Context,
) -> Result<(), CliError> {
    let source = match fetched {
        [only] => only,
        [] => {
            context.warn(
                "no source branch found;\n\
                 you need to specify exactly one branch with the --set-upstream option",
            );
            return Ok(());
        }
        _ => {
            context.warn("multiple branches detected, incompatible with --set-upstream");
            return Ok(());
        }
    };
    let short = source.strip_prefix(b"refs/heads/");
    let head = repository.refs().head()?;
    let Some(branch) = head.branch() else {
        let (short, name) = (short.unwrap_or(source).as_bstr(), &remote.name);
        context.warn(&format!(
            "could not set upstream of HEAD to '{short}' from '{name}' when it does not point to any branch."
        ));
        return Ok(());
    };
    if source == "HEAD" || short.is_some() {
        switch::set_upstream(
            repository,
            branch.as_bytes().as_bstr(),
            remote.name.as_bstr(),
            source.as_bstr(),
        )?;
    } else if source.starts_with(b"refs/remotes/") {
        context.warn("not setting upstream for a remote remote-tracking branch");
    } else if source.starts_with(b"refs/tags/") {
        context.warn("not setting upstream for a remote tag");
    } else {
        context.warn("unknown branch type");
    }
    Ok(())
}
