//! Writes the commit-graph after a fetch.

use pronto::commit_graph::{self, CommitSource, GraphWriteOptions, SplitStrategy};
use pronto::support::{self, Operation};
use pronto::{ErrorKind, Repository, Watch};

use super::Args;
use crate::{CliError, Context};

/// Returns whether the fetch writes a commit-graph, according to the options or
/// `fetch.writeCommitGraph`. If so, checks first that pronto supports the settings of the
/// repository for this operation.
pub(super) fn is_wanted(args: &Args, repository: &Repository) -> Result<bool, CliError> {
    let is_wanted = match args.write_commit_graph {
        Some(decided) => decided,
        None => repository
            .config()
            .bool_or("fetch.writecommitgraph", false)?,
    };
    if is_wanted {
        support::require(repository, Operation::WriteCommitGraph).map_err(CliError::of)?;
    }
    Ok(is_wanted)
}

/// Adds a layer with the commits that are reachable from refs. As in Git, a failure does not change
/// the exit code.
pub(super) fn write(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut options = GraphWriteOptions::default();
    options.source = CommitSource::Reachable;
    options.split = Some(SplitStrategy::Merge);
    let progress = context.progress(args.progress, args.quiet);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    match commit_graph::write(repository, &options, &watch) {
        Ok(()) => context.report(),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            context.report_error(&error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
