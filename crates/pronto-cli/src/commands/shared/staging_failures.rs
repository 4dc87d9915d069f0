//! Prints the failures of files that are not staged.

use pronto::add::Failure;
use pronto::update_index::Stop;
use pronto_worktree::filter::Warning;

use crate::{CliError, Context};

/// Prints Git's messages about a file that is not staged.
pub(crate) fn report_failure(context: &mut Context, failure: &Failure) {
    context.report_error(&failure.to_string());
    match failure {
        Failure::Unreadable { path, .. } => {
            context.report_error(&format!("unable to index file '{path}'"));
        }
        Failure::NotStored { path, .. } => {
            context.report_error(&format!("{path}: failed to insert into database"));
            context.report_error(&format!("unable to index file '{path}'"));
        }
        Failure::HostilePath { path, .. } => {
            context.report_error(&format!("unable to add '{path}' to index"));
        }
        _ => {}
    }
}

/// Prints a warning of a conversion.
pub(crate) fn report_conversion(context: &mut Context, warning: &Warning) {
    if let Some(hint) = warning.hint() {
        context.explain(&hint);
    }
    match warning.is_error() {
        true => context.report_error(&warning.to_string()),
        false => context.warn(&warning.to_string()),
    }
}

/// Prints the advice about the error that ends `update-index`, and returns the error.
pub(crate) fn explained(context: &mut Context, stop: &Stop) -> CliError {
    if let Some(hint) = stop.hint() {
        context.explain(hint);
    }
    CliError::fatal(stop.to_string())
}
