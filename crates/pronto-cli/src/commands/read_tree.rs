//! `read-tree`: read trees into the index.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto::read_tree::{Mode, Options, ReadTrees};
use pronto::revision::ExpectedType;
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;

use super::switching::print_failures;
use crate::{CliError, Context, ExitCode};

/// The largest number of trees, as in Git.
const MOST_TREES: usize = 8;

/// Arguments of `read-tree`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write the index to this file
    #[arg(long, value_name = "FILE")]
    index_output: Option<OsString>,
    /// Only empty the index
    #[arg(long)]
    empty: bool,
    /// Show the progress of writing files
    #[arg(long, short)]
    verbose: bool,
    /// Merge with the index
    #[arg(short = 'm')]
    merge: bool,
    /// Merge three trees only if no content merge is needed
    #[arg(long)]
    trivial: bool,
    /// Also merge removals and identical additions of three trees
    #[arg(long)]
    aggressive: bool,
    /// Like -m, but discard conflicts and changes
    #[arg(long)]
    reset: bool,
    /// Read the tree into this directory of the index
    #[arg(long, value_name = "DIRECTORY")]
    prefix: Option<OsString>,
    /// Also update the worktree
    #[arg(short = 'u')]
    update: bool,
    /// Ignore the worktree
    #[arg(short = 'i')]
    index_only: bool,
    /// Show whether it would fail, without writing the index
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Ignore the sparse checkout
    #[arg(long)]
    no_sparse_checkout: bool,
    /// Do not print errors
    #[arg(long, short)]
    quiet: bool,
    /// The trees to read
    #[arg(value_name = "TREE-ISH")]
    trees: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let mode = mode(args)?;
    let repository = context.repository()?;
    if repository.config().bool_or("submodule.recurse", false)? && args.update {
        return Err(CliError::unsupported("option --recurse-submodules"));
    }
    let merges = mode != Mode::Replace;
    if merges && repository.work_tree().is_none() && args.index_only {
        return Err(CliError::unsupported("'read-tree -m' without a worktree"));
    }
    if merges && mode != Mode::Reset {
        let index = repository.sparse_index()?;
        if index.iter().any(|entry| entry.stage() != 0) {
            return Err(unmerged());
        }
    }
    let trees = trees(args, &repository, context)?;
    check(args, merges, trees.len(), context)?;
    if merges && !args.index_only {
        repository.require_work_tree()?;
    }
    let mut options = Options::default();
    options.mode = mode;
    options.trivial = args.trivial;
    options.aggressive = args.aggressive;
    options.update = args.update;
    options.index_only = args.index_only;
    options.dry_run = args.dry_run;
    options.ignore_sparse = args.no_sparse_checkout;
    options.output = args.index_output.as_ref().map(|output| {
        let top = repository.work_tree().unwrap_or(repository.git_dir());
        top.join(output)
    });
    let progress = context.progress(Some(args.verbose), false);
    let result = pronto::read_tree::read_trees(
        &repository,
        &trees,
        &options,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    context.report();
    match result {
        Ok(ReadTrees::Done(outcome)) => {
            let failed = print_failures(context, &outcome.warnings, &outcome.failed);
            Ok(if failed {
                ExitCode::FATAL
            } else {
                ExitCode::SUCCESS
            })
        }
        Ok(ReadTrees::Unmerged) => Err(unmerged()),
        Ok(_) if args.quiet => Err(CliError::silent(ExitCode::FATAL)),
        Ok(ReadTrees::Refused(refusals)) => {
            if let Some(refusal) = refusals.first() {
                context.report_error(&refusal.to_string());
            }
            Err(CliError::silent(ExitCode::FATAL))
        }
        Ok(ReadTrees::NeedsFileMerge) => {
            context.report_error("Merge requires file-level merging");
            Err(CliError::silent(ExitCode::FATAL))
        }
        Ok(other) => Err(CliError::unknown_outcome(&other)),
        Err(error) => Err(CliError::of(error)),
    }
}

fn unmerged() -> CliError {
    let message = "You need to resolve your current index first";
    CliError::fatal(message)
}

fn mode(args: &Args) -> Result<Mode, CliError> {
    match (args.merge, args.reset, &args.prefix) {
        (false, false, None) => Ok(Mode::Replace),
        (true, false, None) => Ok(Mode::Merge),
        (false, true, None) => Ok(Mode::Reset),
        (false, false, Some(prefix)) => {
            let prefix = prefix.as_bytes();
            if prefix.starts_with(b"/") {
                let message = "Invalid prefix, prefix cannot start with '/'";
                return Err(CliError::fatal(message));
            }
            let mut prefix: BString = prefix.strip_suffix(b"/").unwrap_or(prefix).into();
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            Ok(Mode::Prefix(prefix))
        }
        _ => {
            let message = "Which one? -m, --reset, or --prefix?";
            Err(CliError::fatal(message))
        }
    }
}

fn trees(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<Vec<ObjectId>, CliError> {
    let mut trees = Vec::new();
    for name in &args.trees {
        let name = name.as_bytes().as_bstr();
        let found = repository.try_resolve(name, ExpectedType::Anything);
        context.report();
        let found = found.map_err(CliError::unresolved)?;
        let invalid = || {
            let message = format!("Not a valid object name {name}");
            CliError::fatal(message)
        };
        let id = found.ok_or_else(invalid)?;
        if trees.len() == MOST_TREES {
            let message = format!("I cannot read more than {MOST_TREES} trees");
            return Err(CliError::fatal(message));
        }
        let tree = repository.peel_to(id, ObjectKind::Tree)?;
        let wrong = || CliError::fatal(format!("failed to unpack tree object {name}"));
        trees.push(tree.ok_or_else(wrong)?);
    }
    Ok(trees)
}

/// Refuses invalid combinations, in Git's words.
fn check(args: &Args, merges: bool, count: usize, context: &mut Context) -> Result<(), CliError> {
    let wrong = |message: &str| Err(CliError::fatal(message));
    if count == 0 && !args.empty && !merges {
        context.warn("read-tree: emptying the index with no arguments is deprecated; use --empty");
    } else if count > 0 && args.empty {
        return wrong("passing trees as arguments contradicts --empty");
    }
    if args.update && args.index_only {
        return wrong("-u and -i at the same time makes no sense");
    }
    if (args.update || args.index_only) && !merges {
        let option = if args.update { "-u" } else { "-i" };
        let message = format!("{option} is meaningless without -m, --reset, or --prefix");
        return wrong(&message);
    }
    if merges && count == 0 {
        return wrong("you must specify at least one tree to merge");
    }
    Ok(())
}
