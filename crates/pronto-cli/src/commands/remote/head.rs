//! `remote set-head`.

use std::io::Write;

use bstr::{BStr, BString, ByteSlice};
use pronto::Watch;
use pronto::configured_remotes::{self, HeadChange};
use pronto::remote::Remote;

use super::{Args, unsupported, update};
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    name: &BStr,
    branch: Option<&BStr>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let wanted: BString = match (args.auto, args.delete, branch) {
        (false, false, Some(branch)) => branch.into(),
        (true, false, None) => match automatic(name, context)? {
            Some(branch) => branch,
            None => return Ok(ExitCode::FAILURE),
        },
        (false, true, None) => {
            configured_remotes::delete_head(&repository, name).map_err(|error| as_error(&error))?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => return Err(unsupported()),
    };
    let remote = Remote::find(&repository, name).map_err(CliError::of)?;
    let change = configured_remotes::set_head(&repository, &remote, wanted.as_bstr())
        .map_err(|error| as_error(&error))?;
    if !args.auto {
        return Ok(ExitCode::SUCCESS);
    }
    let out = &mut context.out;
    match change {
        HeadChange::Unchanged => {
            writeln!(out, "'{name}/HEAD' is unchanged and points to '{wanted}'")?;
        }
        HeadChange::Created => {
            writeln!(out, "'{name}/HEAD' is now created and points to '{wanted}'")?;
        }
        HeadChange::Changed(old) => writeln!(
            out,
            "'{name}/HEAD' has changed from '{old}' and now points to '{wanted}'"
        )?,
        HeadChange::Foreign(old) => writeln!(
            out,
            "'{name}/HEAD' used to point to '{old}' (which is not a remote branch), \
             but now points to '{wanted}'"
        )?,
        HeadChange::Detached(id) => writeln!(
            out,
            "'{name}/HEAD' was detached at '{id}' and now points to '{wanted}'"
        )?,
        other => return Err(CliError::unknown_outcome(&other)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Converts an error that git reports as `error:`, or as `fatal:` if it ends the command, as a
/// refusal by the hook `reference-transaction` does.
fn as_error(error: &pronto::Error) -> CliError {
    if error.kind().ends_command() {
        return CliError::fatal(error.message());
    }
    let said = CliError::error(error.message());
    match error.reported_before() {
        Some(before) => CliError::error(before).and(error.message()),
        None => said,
    }
}

/// Returns the branch that the `HEAD` of the remote names. Reports an error and returns `None` if
/// the branch cannot be determined.
fn automatic(name: &BStr, context: &mut Context) -> Result<Option<BString>, CliError> {
    let repository = context.repository()?;
    let remote = Remote::find(&repository, name).map_err(CliError::of)?;
    update::check_connection(&repository, &remote)?;
    let progress = context.progress(Some(false), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let heads = configured_remotes::heads(&repository, &remote, &watch).map_err(CliError::of)?;
    match &heads[..] {
        [] => context.report_error("Cannot determine remote HEAD"),
        [branch] => return Ok(Some(branch.clone())),
        several => {
            context
                .report_error("Multiple remote HEAD branches. Please choose one explicitly with:");
            for branch in several {
                context.remark(&format!("  git remote set-head {name} {branch}"));
            }
        }
    }
    Ok(None)
}
