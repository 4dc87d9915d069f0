//! `symbolic-ref`: read and change symrefs.

use std::ffi::OsString;
use std::io::Write;

use bstr::{BStr, BString, ByteSlice};
use pronto::Repository;
use pronto::refs::{ExpectedValue, RefName, RefTarget, name};

use crate::{CliError, Context, ExitCode};

/// Arguments of `symbolic-ref`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print no error if the ref is not symbolic
    #[arg(long, short)]
    quiet: bool,
    /// Remove the ref
    #[arg(long, short)]
    delete: bool,
    /// Show the short name of the target
    #[arg(long)]
    short: bool,
    /// Show the direct target, even if it is symbolic itself
    #[arg(long)]
    no_recurse: bool,
    /// The reason, for the reflog
    #[arg(short = 'm', value_name = "REASON")]
    message: Option<OsString>,
    /// The ref, and its new target
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if args
        .message
        .as_ref()
        .is_some_and(|message| message.is_empty())
    {
        return Err(CliError::fatal(
            "Refusing to perform update with empty message",
        ));
    }
    let names: Vec<&BStr> = args
        .names
        .iter()
        .map(|name| name.as_encoded_bytes().as_bstr())
        .collect();
    match (args.delete, names.as_slice()) {
        (true, [name]) => delete(&repository, name),
        (false, [name]) => show(args, &repository, name, context),
        (false, [name, target]) => set(args, &repository, name, target),
        _ => Err(CliError::unsupported(
            "this number of arguments of 'symbolic-ref'",
        )),
    }
}

/// Returns the target of `name`, or `None` if `name` is not a symref.
fn target_of(
    repository: &Repository,
    name: &BStr,
    follow: bool,
) -> Result<Option<BString>, CliError> {
    let missing = || CliError::fatal(format!("No such ref: {name}"));
    if !name::is_valid(name, name::Form::OneLevel) {
        return Err(missing());
    }
    // git also reads names that a transaction would refuse, so git runs the call if this fails.
    let found = repository.refs().find(name);
    let found = found.map_err(|_| CliError::lacking(format!("No such ref: {name}")))?;
    let Some(RefTarget::Symbolic(target)) = found.map(|found| found.target) else {
        return Ok(None);
    };
    if !follow {
        return Ok(Some(target.into_inner()));
    }
    let last = repository.refs().resolve(&target).map_err(|_| missing())?;
    Ok(Some(
        last.map_or_else(|| target.into_inner(), |last| last.name),
    ))
}

fn show(
    args: &Args,
    repository: &Repository,
    name: &BStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let Some(mut target) = target_of(repository, name, !args.no_recurse)? else {
        if args.quiet {
            return Ok(ExitCode::FAILURE);
        }
        return Err(CliError::fatal(format!("ref {name} is not a symbolic ref")));
    };
    if args.short {
        target = repository.shorten_reference(target.as_bstr(), false)?;
    }
    context.out.write_all(&target)?;
    context.out.write_all(b"\n")?;
    Ok(ExitCode::SUCCESS)
}

fn set(
    args: &Args,
    repository: &Repository,
    name: &BStr,
    target: &BStr,
) -> Result<ExitCode, CliError> {
    if name == "HEAD" && !target.starts_with(b"refs/") {
        return Err(CliError::fatal("Refusing to point HEAD outside of refs/"));
    }
    let Ok(target) = RefName::new(target) else {
        if name::is_valid(target, name::Form::OneLevel) {
            return Err(CliError::unsupported(
                "a symbolic ref with a target outside of refs/",
            ));
        }
        let message = format!("Refusing to set '{name}' to invalid ref '{target}'");
        return Err(CliError::fatal(message));
    };
    let message = args
        .message
        .as_ref()
        .map(|text| text.as_encoded_bytes().as_bstr());
    let mut change = repository.transaction();
    change.set_symbolic(name, target, message);
    change.commit().map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

fn delete(repository: &Repository, name: &BStr) -> Result<ExitCode, CliError> {
    if target_of(repository, name, false)?.is_none() {
        let message = format!("Cannot delete {name}, not a symbolic ref");
        return Err(CliError::fatal(message));
    }
    if name == "HEAD" {
        return Err(CliError::fatal(format!("deleting '{name}' is not allowed")));
    }
    let mut change = repository.transaction();
    change.delete(name, ExpectedValue::Anything);
    change.commit().map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

/// Converts the error of a failed change.
fn failure(error: pronto::Error) -> CliError {
    match error.kind().ends_command() {
        true => error.into(),
        false => CliError::error(error.to_string()),
    }
}
