//! `pack-refs`: store refs in the file `packed-refs`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use pronto::refs::PackRefsOptions;
use pronto::repository::RefStorage;

use crate::{CliError, Context, ExitCode};

/// Arguments of `pack-refs`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Pack all refs, not only tags
    #[arg(long)]
    pub(super) all: bool,
    /// Keep the files of packed refs
    #[arg(long)]
    pub(super) no_prune: bool,
    /// Pack only if many refs are unpacked
    #[arg(long)]
    pub(super) auto: bool,
    /// Pack refs that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(super) include: Vec<OsString>,
    /// Do not pack refs that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(super) exclude: Vec<OsString>,
    /// Surplus arguments
    #[arg(hide = true)]
    pub(super) rest: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if !args.rest.is_empty() {
        return Err(CliError::unsupported(
            "this combination of arguments of 'pack-refs'",
        ));
    }
    let patterns = |given: &[OsString]| {
        let bytes = given.iter().map(|pattern| pattern.as_bytes().into());
        bytes.collect::<Vec<_>>()
    };
    let mut includes = patterns(&args.include);
    if args.all {
        includes.push("*".into());
    }
    let defaults = PackRefsOptions::default();
    let mut options = PackRefsOptions::default();
    options.prune = !args.no_prune;
    options.auto = args.auto;
    options.includes = match includes.is_empty() {
        true => defaults.includes,
        false => includes,
    };
    options.excludes = patterns(&args.exclude);
    let repository = context.repository()?;
    if repository.common_dir().join("packed-refs").is_symlink() {
        return Err(CliError::unsupported(
            "'pack-refs' with a symbolic link 'packed-refs'",
        ));
    }
    let report = repository.pack_refs(&options);
    let report = report.map_err(|error| match error.kind() {
        kind if kind.ends_command() => error.into(),
        _ if repository.format().ref_storage == RefStorage::Reftable => {
            CliError::error(error.to_string())
        }
        _ => error.into(),
    })?;
    context.report();
    for failure in report.failures {
        if failure.kind().ends_command() {
            return Err(failure.into());
        }
        context.report_error(&failure.to_string());
    }
    Ok(ExitCode::SUCCESS)
}
