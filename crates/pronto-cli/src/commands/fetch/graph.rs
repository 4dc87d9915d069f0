//! Writes the commit-graph after a fetch.

use pronto::commit_graph::{self, Source, Split, WriteOptions};
use pronto::{ErrorKind, Repository, Watch};

use super::Args;
use crate::{CliError, Context};

/// Returns whether a commit-graph is written, by `--write-commit-graph` or
/// `fetch.writeCommitGraph`.
pub(super) fn is_wanted(args: &Args, repository: &Repository) -> Result<bool, CliError> {
    match args.write_commit_graph {
        Some(decided) => Ok(decided),
        None => Ok(repository
            .config()
            .bool_or("fetch.writecommitgraph", false)?),
    }
}

/// Adds a layer with the commits that are reachable from refs. As in Git, a failure does not change
/// the exit code.
pub(super) fn write(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut options = WriteOptions::default();
    options.source = Source::Reachable;
    options.split = Some(Split::Merge);
    let progress = context.progress(args.progress, args.quiet);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    match commit_graph::write(repository, &options, &watch) {
        Ok(()) => context.report(),
        Err(error) if *error.kind() == ErrorKind::InvalidInput => {
            context.report_error(&error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
