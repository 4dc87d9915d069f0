//! Prints the failures of files that are not staged.

use pronto::add::StagingFailure;
use pronto::update_index::UpdateStop;
use pronto_worktree::filter::FilterWarning;

use crate::{CliError, Context};

/// Prints Git's messages about a file that is not staged.
pub(crate) fn report_failure(context: &mut Context, failure: &StagingFailure) {
    context.report_error(&failure.to_string());
    match failure {
        StagingFailure::Unreadable { path, .. } => {
            context.report_error(&format!("unable to index file '{path}'"));
        }
        StagingFailure::NotStored { path, .. } => {
            context.report_error(&format!("{path}: failed to insert into database"));
            context.report_error(&format!("unable to index file '{path}'"));
        }
        StagingFailure::HostilePath { path, .. } => {
            context.report_error(&format!("unable to add '{path}' to index"));
        }
        _ => {}
    }
}

/// Prints a warning of a conversion.
pub(crate) fn report_conversion(context: &mut Context, warning: &FilterWarning) {
    if let Some(hint) = warning.hint() {
        context.explain(&hint);
    }
    match warning.is_error() {
        true => context.report_error(&warning.to_string()),
        false => context.warn(&warning.to_string()),
    }
}

/// Prints the advice about the error that ends `update-index`, and returns the error.
pub(crate) fn explained(context: &mut Context, stop: &UpdateStop) -> CliError {
    if let Some(hint) = stop.hint() {
        context.explain(hint);
    }
    CliError::fatal(stop.to_string())
}
