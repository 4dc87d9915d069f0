//! Prints the warnings and failures of a checkout.

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
    let messages = refusals.messages(operation, advice);
    // In Git, `error()` appends a line end to the advice.
    let lines = messages.iter().map(|message| format!("error: {message}\n"));
    lines.collect()
}
