//! `remote update` and `remote prune`.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::Watch;
use pronto::configured_remotes;
use pronto::remote::Remote;
use pronto::remote::connection::{self, Settings};

use super::Args;
use crate::maintenance::own_program;
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    groups: &[BString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut arguments: Vec<OsString> = vec!["fetch".into()];
    match args.prune {
        Some(true) => arguments.push("--prune".into()),
        Some(false) => arguments.push("--no-prune".into()),
        None => {}
    }
    if args.verbose > 0 {
        arguments.push("-v".into());
    }
    arguments.push("--multiple".into());
    let has_default = repository.config().contains("remotes.default");
    let names_default = groups.last().is_none_or(|last| last == "default");
    arguments.extend(groups.iter().map(word));
    if names_default {
        if !groups.is_empty() {
            arguments.pop();
        }
        arguments.push(if has_default { "default" } else { "--all" }.into());
    }
    Ok(match run_own(&arguments, context)? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Converts text into an argument of another process.
pub(super) fn word(text: &BString) -> OsString {
    OsString::from_vec(text.to_vec())
}

/// Runs a command in another process of this program. Returns whether it succeeded.
pub(super) fn run_own(arguments: &[OsString], context: &mut Context) -> Result<bool, CliError> {
    context.report();
    context.out.flush()?;
    let mut command = own_program(context)?;
    command.args(arguments);
    let traced = pronto_io::child::started_as("?", context.program(), &command);
    let cannot = |error: std::io::Error| {
        let reason = pronto_io::error::reason(&error);
        CliError::fatal(format!("cannot run 'fetch': {reason}"))
    };
    let mut child = command.spawn().map_err(cannot)?;
    let status = child.wait().map_err(cannot)?;
    traced.ended(child.id(), status);
    if context.interrupt.is_triggered() {
        return Err(pronto_io::interrupt::Interrupted.into());
    }
    Ok(status.success())
}

/// Hands the call to git if the connection to `remote` needs a feature that only git has.
pub(super) fn check_connection(
    repository: &pronto::Repository,
    remote: &Remote,
) -> Result<(), CliError> {
    let (config, environment) = (repository.config(), repository.environment());
    let settings = Settings::default().for_remote(remote, config)?;
    let url = remote.url()?;
    connection::check(url, &settings, config, environment).map_err(CliError::of)
}

pub(super) fn prune(
    args: &Args,
    names: &[BString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut found = Vec::new();
    for name in names {
        // An empty name is not a remote.
        if name.is_empty() {
            context.report_error("No such remote: ''");
            continue;
        }
        let remote = Remote::find(&repository, name.as_bstr()).map_err(CliError::of)?;
        check_connection(&repository, &remote)?;
        found.push(remote);
    }
    let progress = context.progress(Some(false), false);
    let mut code = ExitCode::SUCCESS;
    for remote in found {
        let watch = Watch::from(&context.interrupt).with_progress(&*progress);
        let pruned = configured_remotes::prune(&repository, &remote, args.dry_run, &watch)?;
        if pruned.refs.is_empty() {
            continue;
        }
        if let Some(error) = &pruned.failure {
            context.report_error(&error.to_string());
            code = ExitCode::FAILURE;
        }
        let out = &mut context.out;
        writeln!(out, "Pruning {}", remote.name)?;
        writeln!(out, "URL: {}", remote.url()?)?;
        let (verb, will, is) = match args.dry_run {
            true => ("would prune", "will", "is"),
            false => ("pruned", "has", "was"),
        };
        for name in &pruned.refs {
            let short = name.strip_prefix(b"refs/remotes/").unwrap_or(name);
            writeln!(out, " * [{verb}] {}", BStr::new(short))?;
        }
        for found in &pruned.dangling {
            let (name, target) = (&found.name, &found.target);
            writeln!(
                out,
                " {name} {will} become dangling after {target} {is} deleted"
            )?;
        }
    }
    Ok(code)
}
