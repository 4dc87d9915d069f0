//! Prints the output of `update-index`.

use std::io::Write;

use bstr::BString;
use pronto::status::ChangeKind;
use pronto::update_index::{Event, UpdateStop};
use pronto::{ErrorKind, PartialFailure};

use super::UpdateFlags;
use crate::commands::shared::staging_failures::{explained, report_conversion, report_failure};
use crate::terminal::text::sanitized_bytes;
use crate::{CliError, Context, ExitCode};

/// Prints the events before the failure of an update, and returns the error.
pub(super) fn failed(
    failure: PartialFailure<Vec<Event>, UpdateStop>,
    how: &UpdateFlags,
    context: &mut Context,
) -> Result<CliError, CliError> {
    if let Some(events) = failure.report {
        print(*events, how, context)?;
    }
    Ok(match failure.error {
        UpdateStop::Operation(error) => match error.kind() {
            ErrorKind::Locked if how.quiet => CliError::silent(ExitCode::FATAL),
            _ => CliError::of(error),
        },
        stop => explained(context, &stop),
    })
}

/// Prints the events of an update.
pub(super) fn print(
    events: Vec<Event>,
    how: &UpdateFlags,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let mut failed = false;
    for event in events {
        match event {
            Event::Added(path) if how.verbose => name(context, "add", &path)?,
            Event::Removed(path) if how.verbose => name(context, "remove", &path)?,
            Event::Executable(path, on) if how.verbose => {
                let verb = if on { "chmod +x" } else { "chmod -x" };
                name(context, verb, &path)?;
            }
            Event::Outdated(outdated) => {
                let is_unmerged = outdated.kind == ChangeKind::Unmerged;
                if (is_unmerged && how.allow_unmerged) || (!is_unmerged && how.quiet) {
                    continue;
                }
                failed = true;
                let need = if is_unmerged { "merge" } else { "update" };
                context.out.write_all(&sanitized_bytes(&outdated.path))?;
                writeln!(context.out, ": needs {need}")?;
            }
            Event::Conversion(warning) => report_conversion(context, &warning),
            Event::Failure(failure) => report_failure(context, &failure),
            Event::Refused(refusal) => context.report_error(&refusal.to_string()),
            Event::Skipped(path) => context.remark(&format!("Ignoring path {path}")),
            _ => {}
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn name(context: &mut Context, verb: &str, path: &BString) -> Result<(), CliError> {
    write!(context.out, "{verb} '")?;
    context.out.write_all(&sanitized_bytes(path))?;
    Ok(context.out.write_all(b"'\n")?)
}
