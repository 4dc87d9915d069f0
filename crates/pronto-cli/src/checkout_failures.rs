//! Prints the warnings and failures of a checkout.

use pronto_worktree::ErrorKind;
use pronto_worktree::checkout::{Failure, Warning};

use crate::Context;

/// Reports the files that could not be written. Returns whether there are any.
pub(crate) fn tell_failures(
    context: &mut Context,
    warnings: &[Warning],
    failed: &[Failure],
) -> bool {
    for warning in warnings {
        tell_warning(context, warning);
    }
    for failure in failed {
        let message = failure.error.to_string();
        match failure.error.kind() {
            // A required filter that fails ends git.
            ErrorKind::Filter => context.remark(&format!("fatal: {message}")),
            _ => context.report_error(&message),
        }
    }
    !failed.is_empty()
}

/// Prints a warning of a checkout.
pub(crate) fn tell_warning(context: &mut Context, warning: &Warning) {
    let line = match warning {
        Warning::Leftover(leftover) => leftover.to_string(),
        _ if warning.is_error() => format!("error: {warning}"),
        _ => format!("warning: {warning}"),
    };
    context.remark(&line);
}
