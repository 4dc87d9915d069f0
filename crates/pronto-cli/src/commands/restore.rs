//! `restore`: restore files in the worktree, the index, or both.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::Repository;
use pronto::checkout_paths::{ConflictSide, Options};
use pronto::merge::ConflictStyle;
use pronto::switch::StartPoint;

use crate::commands::pathspecs::{self, PathspecSource};
use crate::commands::restoring::{self, Reporting};
use crate::commands::switching;
use crate::paths::pathspec_error;
use crate::{CliError, Context, ExitCode};

/// Arguments of `restore`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// The commit or tree to restore from (default: the index, or HEAD with --staged)
    #[arg(short, long, value_name = "TREE-ISH")]
    source: Option<OsString>,
    /// Restore the index
    #[arg(short = 'S', long)]
    staged: Option<bool>,
    /// Restore the worktree (the default)
    #[arg(short = 'W', long)]
    worktree: Option<bool>,
    /// Skip paths in conflict
    #[arg(long)]
    ignore_unmerged: bool,
    /// Keep tracked files that the source does not have
    #[arg(long)]
    overlay: bool,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// Update submodules, too (handed to git)
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    recurse_submodules: Option<String>,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Recreate conflicts
    #[arg(short, long)]
    merge: bool,
    /// The style of recreated conflicts: merge, diff3, zdiff3
    #[arg(long, value_name = "STYLE")]
    conflict: Option<String>,
    /// For files in conflict, check out the version of HEAD
    #[arg(short = '2', long, overrides_with = "theirs")]
    ours: bool,
    /// For files in conflict, check out the other version
    #[arg(short = '3', long, overrides_with = "ours")]
    theirs: bool,
    /// Choose changes interactively (handed to git)
    #[arg(short, long)]
    patch: bool,
    /// Include files outside of the sparse checkout
    #[arg(long)]
    ignore_skip_worktree_bits: bool,
    /// Read paths from this file
    #[arg(long, value_name = "FILE")]
    pathspec_from_file: Option<OsString>,
    /// Paths in that file are separated by NUL
    #[arg(long)]
    pathspec_file_nul: bool,
    /// Paths to restore
    #[arg(value_name = "PATHSPEC")]
    paths: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.patch {
        return Err(CliError::unsupported("option '--patch' of 'restore'"));
    }
    let merges = args.merge || args.conflict.is_some();
    let others = args.ours || args.theirs || args.source.is_some() || args.staged.is_some();
    if merges && (others || args.ignore_unmerged) {
        return Err(CliError::unsupported(
            "'restore --merge' with this combination of options",
        ));
    }
    let repository = context.repository()?;
    switching::check_submodules(&repository, args.recurse_submodules.as_deref())?;
    repository.require_work_tree()?;
    let (index, worktree) = match (args.staged, args.worktree) {
        (None, None) => (false, true),
        (staged, worktree) => (staged.unwrap_or(false), worktree.unwrap_or(false)),
    };
    let source = source(args, &repository, index)?;
    let specs = pathspecs::read(&PathspecSource {
        given: &args.paths,
        file: args.pathspec_from_file.as_deref(),
        ends_with_nul: args.pathspec_file_nul,
    })?;
    if specs.is_empty() {
        return Err(CliError::fatal("you must specify path(s) to restore"));
    }
    let pathspec = repository
        .pathspec(specs.iter().map(|spec| spec.as_bstr()))
        .map_err(pathspec_error)?;
    if !index && !worktree {
        let message = "neither '--staged' or '--worktree' is specified";
        return Err(CliError::fatal(message));
    }
    if index && (args.ours || args.theirs) {
        let message = "'--ours' or '--theirs' cannot be used with --staged";
        return Err(CliError::fatal(message));
    }
    if source.is_some() && (args.ours || args.theirs) {
        return Err(CliError::fatal(
            "'--merge', '--ours', or '--theirs' cannot be used when checking out of a tree",
        ));
    }
    let mut options = Options::new(pathspec);
    options.source = source;
    options.overlay = args.overlay;
    options.stage = match (args.ours, args.theirs) {
        (true, _) => Some(ConflictSide::Ours),
        (_, true) => Some(ConflictSide::Theirs),
        _ => None,
    };
    options.merge = style(args, &repository)?;
    options.ignore_unmerged = args.ignore_unmerged;
    options.index = index;
    options.worktree = worktree;
    options.ignore_skip_worktree = args.ignore_skip_worktree_bits;
    let reporting = Reporting {
        quiet: args.quiet,
        progress: args.progress,
        count: false,
    };
    restoring::restore(&repository, context, &options, &reporting)
}

/// Returns the conflict style (`--conflict`) if conflicts are recreated (`--merge`).
fn style(args: &Args, repository: &Repository) -> Result<Option<ConflictStyle>, CliError> {
    match args.merge || args.conflict.is_some() {
        true => restoring::style(args.conflict.as_deref(), repository).map(Some),
        false => Ok(None),
    }
}

/// Returns the source of the contents (`--source`); `None` is the index.
fn source(
    args: &Args,
    repository: &Repository,
    staged: bool,
) -> Result<Option<StartPoint>, CliError> {
    let name = match &args.source {
        Some(given) => given.as_bytes(),
        None if staged => b"HEAD",
        None => return Ok(None),
    };
    match pronto::switch::start_at(repository, name)? {
        Some(start) => Ok(Some(start)),
        None => {
            let name = name.as_bstr();
            Err(CliError::fatal(format!("could not resolve '{name}'")))
        }
    }
}
