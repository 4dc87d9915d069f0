//! Prints the warnings and failures of a checkout.

use bstr::{BString, ByteSlice};
use pronto_worktree::ErrorKind;
use pronto_worktree::checkout::{CheckoutFailure, CheckoutWarning};
use pronto_worktree::unpack::Refusals;

use crate::{Context, ExitCode};

/// Prints the files that could not be written. Returns whether there are any.
pub(crate) fn print_failures(
    context: &mut Context,
    warnings: &[CheckoutWarning],
    failed: &[CheckoutFailure],
) -> bool {
    for warning in warnings {
        print_warning(context, warning);
    }
    for failure in failed {
        let message = failure.error.to_string();
        match failure.error.kind() {
            // In Git, a failure of a required filter is fatal.
            ErrorKind::Filter => context.remark(&format!("fatal: {message}")),
            _ => context.report_error(&message),
        }
    }
    !failed.is_empty()
}

/// Returns the exit code of a command that failed to write these files. In Git, a damaged object
/// and a failure of a required filter are fatal. All other failures are not.
pub(crate) fn code_of_failures(failed: &[CheckoutFailure]) -> ExitCode {
    let is_fatal = |one: &CheckoutFailure| {
        matches!(
            one.error.kind(),
            ErrorKind::Filter | ErrorKind::CorruptObject | ErrorKind::UnreadableObject
        )
    };
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else if failed.iter().any(is_fatal) {
        ExitCode::FATAL
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a warning of a checkout.
pub(crate) fn print_warning(context: &mut Context, warning: &CheckoutWarning) {
    let line = match warning {
        CheckoutWarning::Leftover(leftover) => leftover.to_string(),
        _ if warning.is_error() => format!("error: {warning}"),
        _ => format!("warning: {warning}"),
    };
    context.remark(&line);
}

/// Returns Git's message, from `error:` up to `Aborting`. `operation` is Git's name of the
/// operation ("checkout", "merge"). `advice` is the recommended action ("switch branches",
/// "merge"); `None` for no advice.
pub(crate) fn refusal_message(
    refusals: &Refusals,
    operation: &str,
    advice: Option<&str>,
) -> String {
    let mut text = String::new();
    let mut say = |paths: &[BString], head: String, tail: Option<String>| {
        if paths.is_empty() {
            return;
        }
        text.push_str(&format!("error: {head}\n"));
        for path in paths {
            text.push_str(&format!("\t{}\n", path.to_str_lossy()));
        }
        // In Git, `error()` appends a line end to the advice.
        text.push_str(&tail.unwrap_or_default());
        text.push('\n');
    };
    let local =
        format!("Your local changes to the following files would be overwritten by {operation}:");
    let stash =
        advice.map(|verb| format!("Please commit your changes or stash them before you {verb}."));
    let moving = advice.map(|verb| format!("Please move or remove them before you {verb}."));
    let untracked = |what| {
        format!("The following untracked working tree files would be {what} by {operation}:")
    };
    say(&refusals.staged, local.clone(), stash.clone());
    say(&refusals.modified, local, stash);
    let directories = "Updating the following directories would lose untracked files in them:";
    say(&refusals.directories, directories.to_owned(), None);
    let current = "Refusing to remove the current working directory:";
    say(&refusals.current_directory, current.to_owned(), None);
    say(
        &refusals.overwritten,
        untracked("overwritten"),
        moving.clone(),
    );
    say(&refusals.removed, untracked("removed"), moving);
    text
}
