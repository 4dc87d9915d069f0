//! `prune-packed`: delete loose objects that are also in a pack.

use std::io::Write;

use pronto::Watch;
use pronto::prune::{self, Options, PrunedFile};

use super::prune::{Report, open};
use crate::{CliError, Context, ExitCode};

/// Arguments of `prune-packed`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show what would be deleted without deleting it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = open(context, "prune-packed")?;
    let mut options = Options::default();
    options.dry_run = args.dry_run;
    let progress = context.progress(None, args.quiet);
    let mut report = Report {
        repository: &repository,
        dry_run: args.dry_run,
        verbose: false,
        out: Vec::new(),
        remarks: Vec::new(),
    };
    let mut print = |removed: &PrunedFile| report.print(removed);
    let pruned = prune::prune_packed(
        &repository,
        &options,
        &mut print,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    let out = report.out;
    context.out.write_all(&out)?;
    context.report_warnings();
    let _ = pruned?;
    Ok(ExitCode::SUCCESS)
}
