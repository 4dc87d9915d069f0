//! `diff-files`: compare the files of the worktree with the index.

use pronto::Watch;
use std::ffi::OsString;

use crate::commands::shared::diffing::{DiffArgs, revisions_and_paths};
use crate::{CliError, Context, ExitCode};

/// Arguments of `diff-files`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// For conflicts, report only that they exist
    #[arg(short = '0', overrides_with_all = ["base", "ours", "theirs"])]
    none: bool,
    /// For conflicts, compare with the common ancestor
    #[arg(short = '1', long, overrides_with_all = ["none", "ours", "theirs"])]
    base: bool,
    /// For conflicts, compare with our side (the default)
    #[arg(short = '2', long, overrides_with_all = ["none", "base", "theirs"])]
    ours: bool,
    /// For conflicts, compare with their side
    #[arg(short = '3', long, overrides_with_all = ["none", "base", "ours"])]
    theirs: bool,
    #[command(flatten)]
    diff: DiffArgs,
    /// Paths to compare
    #[arg(value_name = "PATH")]
    operands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    crate::commands::shared::diffing::refuse_patches(context)?;
    let repository = context.repository()?;
    repository.require_work_tree()?;
    let (revisions, paths) = revisions_and_paths(&args.operands, &repository, context)?;
    if !revisions.is_empty() {
        return Err(CliError::misuse("diff-files takes no revision"));
    }
    let stage = match (args.none, args.base, args.theirs) {
        (true, ..) => 0,
        (_, true, _) => 1,
        (.., true) => 3,
        _ => 2,
    };
    let options = args.diff.options(&repository, paths)?;
    let mut printer = args.diff.printer(&repository, &options)?;
    let found = pronto::diff::files(
        &repository,
        stage,
        &options,
        &Watch::from(&context.interrupt),
    )?;
    printer.print(&found, context)?;
    Ok(printer.code())
}
