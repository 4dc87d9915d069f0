//! Prints the relation of a branch to its upstream.

use std::io::Write;

use pronto::Repository;
use pronto::status::{Divergence, TrackedUpstream};

use super::advises;
use crate::{CliError, Context};

/// Prints the relation of the branch to `upstream`, if there is an upstream. As in Git, the
/// settings of all remotes and branches are read first.
///
/// # Errors
/// Fails if a setting of a remote or of a branch is malformed.
pub(super) fn print(
    repository: &Repository,
    context: &mut Context,
    upstream: Option<&TrackedUpstream>,
) -> Result<(), CliError> {
    context.check_remotes(repository.config())?;
    if let Some(upstream) = upstream {
        let hints = advises(repository, "statusHints")?;
        write!(context.out, "{}", tracking_text(upstream, hints))?;
    }
    Ok(())
}

/// Formats the relation of a branch to its upstream, as Git does.
fn tracking_text(upstream: &TrackedUpstream, hints: bool) -> String {
    let name = &upstream.short_name;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (text, hint) = match upstream.divergence {
        None => (
            format!("Your branch is based on '{name}', but the upstream is gone.\n"),
            "  (use \"git branch --unset-upstream\" to fixup)\n",
        ),
        Some(
            Divergence::Same
            | Divergence::Counted {
                ahead: 0,
                behind: 0,
            },
        ) => (format!("Your branch is up to date with '{name}'.\n"), ""),
        Some(Divergence::Different) => (
            format!("Your branch and '{name}' refer to different commits.\n"),
            "  (use \"git status --ahead-behind\" for details)\n",
        ),
        Some(Divergence::Counted { ahead, behind: 0 }) => (
            format!(
                "Your branch is ahead of '{name}' by {ahead} commit{}.\n",
                plural(ahead)
            ),
            "  (use \"git push\" to publish your local commits)\n",
        ),
        Some(Divergence::Counted { ahead: 0, behind }) => (
            format!(
                "Your branch is behind '{name}' by {behind} commit{}, and can be fast-forwarded.\n",
                plural(behind)
            ),
            "  (use \"git pull\" to update your local branch)\n",
        ),
        Some(Divergence::Counted { ahead, behind }) => (
            format!(
                "Your branch and '{name}' have diverged,\n\
                 and have {ahead} and {behind} different commits each, respectively.\n"
            ),
            "  (use \"git pull\" if you want to integrate the remote branch with yours)\n",
        ),
    };
    if hints { text + hint } else { text }
}
