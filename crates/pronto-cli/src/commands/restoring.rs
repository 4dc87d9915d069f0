//! Code that `restore` and `checkout` of paths share: restoring files, and reports.

use pronto::checkout_paths::Options;
use pronto::merge::{self, ConflictStyle};
use pronto::{Repository, Watch};

use crate::commands::shared::checkout_failures::code_of_failures;
use crate::commands::switching;
use crate::{CliError, Context, ExitCode};

/// The messages to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    /// Whether only errors are printed (`--quiet`).
    pub(crate) quiet: bool,
    /// The value of `--progress` or `--no-progress`; `None` if neither is given.
    pub(crate) progress: Option<bool>,
    /// Whether the number of written files is printed.
    pub(crate) count: bool,
}

/// Returns the conflict style of `--conflict` or `merge.conflictStyle`.
pub(crate) fn style(
    given: Option<&str>,
    repository: &Repository,
) -> Result<ConflictStyle, CliError> {
    match given {
        None => Ok(merge::conflict_style(repository)?),
        Some(name) => merge::style_named(name.as_bytes())
            .ok_or_else(|| CliError::usage(format!("unknown conflict style '{name}'"))),
    }
}

/// Restores files and reports the result.
pub(crate) fn restore(
    repository: &Repository,
    context: &mut Context,
    options: &Options,
    reporting: &Reporting,
) -> Result<ExitCode, CliError> {
    let progress = context.progress(reporting.progress, reporting.quiet);
    let interrupt = context.interrupt.clone();
    let report = pronto::checkout_paths::checkout_paths(
        repository,
        options,
        &Watch::from(&interrupt).with_progress(&*progress),
    )
    .map_err(|error| match error.kind() {
        pronto::ErrorKind::Hostile => CliError::of(error).with_code(ExitCode::FAILURE),
        _ => CliError::of(error),
    })?;
    for error in &report.errors {
        context.report_error(&error.to_string());
    }
    if !report.errors.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if !reporting.quiet {
        for path in &report.unmerged {
            context.warn(&format!("path '{path}' is unmerged"));
        }
    }
    switching::print_failures(context, &report.warnings, &report.failed);
    let code = code_of_failures(&report.failed);
    if code == ExitCode::FATAL {
        return Ok(code);
    }
    let counts = reporting.count && !reporting.quiet && options.worktree;
    if counts && report.recreated > 0 {
        let count = report.recreated;
        let conflicts = if count == 1 { "conflict" } else { "conflicts" };
        context.remark(&format!("Recreated {count} merge {conflicts}"));
    }
    if counts && (report.recreated == 0 || report.updated > 0) {
        let paths = if report.updated == 1 { "path" } else { "paths" };
        let from = match &options.source {
            Some(source) => repository.abbreviate(&source.tree)?,
            None => "the index".to_owned(),
        };
        context.remark(&format!("Updated {} {paths} from {from}", report.updated));
    }
    let failed = u8::from(code == ExitCode::FAILURE);
    let hook = report.hook.unwrap_or(0);
    Ok(ExitCode::new(failed | u8::try_from(hook).unwrap_or(1)))
}
