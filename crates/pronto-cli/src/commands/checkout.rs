//! `checkout`: switch branches or restore files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use pronto::Repository;
use pronto::checkout_paths::{self, ConflictSide};
use pronto::merge::ConflictStyle;
use pronto::status::Pathspec;
use pronto::switch::{NewBranch, Options, StartPoint};

use crate::commands::pathspecs::{self, PathspecSource};
use crate::commands::restoring::{self, Reporting};
use crate::commands::switching::{self, BranchCreation, SwitchOptions, Which, text};
use crate::{CliError, Context, ExitCode};

/// Arguments of `checkout`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "CONFIGURATION: `checkout.reflink` selects whether new files share their blocks with equal \
    files of other worktrees on file systems that support it (XFS, btrfs, bcachefs): `auto` (the default), \
    `always` or `never`. `checkout.workers` and `checkout.thresholdForParallelism` work as in git; if unset, \
    the number of workers follows measurements. `checkout.inPlace` selects whether the content of a replaced file \
    is overwritten in place if the result is the same as that of a new file: `auto` (the default) where that is \
    faster (XFS, ext4, btrfs and tmpfs, for files that were read recently), `always` or `never`."
)]
pub(crate) struct Args {
    #[command(flatten)]
    common: SwitchOptions,
    /// Create this branch and switch to it
    #[arg(short = 'b', value_name = "BRANCH")]
    create: Option<OsString>,
    /// Create or reset this branch and switch to it
    #[arg(short = 'B', value_name = "BRANCH")]
    force_create: Option<OsString>,
    /// Create a reflog for the new branch
    #[arg(short = 'l')]
    log: bool,
    /// For files in conflict, check out the version of HEAD
    #[arg(short = '2', long, overrides_with = "theirs")]
    ours: bool,
    /// For files in conflict, check out the other version
    #[arg(short = '3', long, overrides_with = "ours")]
    theirs: bool,
    /// Choose changes interactively (handed to git)
    #[arg(short, long)]
    patch: bool,
    /// Recreate conflicts; merge local changes into the new branch
    #[arg(short, long)]
    merge: bool,
    /// The style of recreated conflicts: merge, diff3, zdiff3
    #[arg(long, value_name = "STYLE")]
    conflict: Option<String>,
    /// Keep tracked files that the commit does not have (the default)
    #[arg(long)]
    overlay: Option<bool>,
    /// Include files outside of the sparse checkout
    #[arg(long)]
    ignore_skip_worktree_bits: bool,
    /// Read paths from this file
    #[arg(long, value_name = "FILE")]
    pathspec_from_file: Option<OsString>,
    /// Paths in that file are separated by NUL
    #[arg(long)]
    pathspec_file_nul: bool,
    /// A commit, and paths
    #[arg(value_name = "COMMIT-OR-PATH")]
    plain: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.patch {
        return Err(CliError::unsupported("option '--patch' of 'checkout'"));
    }
    let repository = context.repository()?;
    style(args, &repository)?;
    let common = &args.common;
    common.check_supported(&repository)?;
    repository.require_work_tree()?;
    let mut creation = BranchCreation {
        plain: text(args.create.as_ref()),
        force: text(args.force_create.as_ref()),
        log: args.log,
        follows_nothing: switching::follows_nothing(context),
    };
    let separator = context.separator;
    let creates = creation.plain.is_some() || creation.force.is_some() || common.orphan.is_some();
    let tracks = common.track.is_some() || creation.follows_nothing;
    if tracks && !creates {
        let first = args.plain.first().map(OsString::as_os_str);
        let first = first.filter(|_| separator != Some(0));
        creation.plain = Some(switching::name_after_remote(first, Which::Checkout)?);
    }
    let creates = creates || creation.plain.is_some();
    let may_guess = !creates && common.guesses(&repository)?;
    let meaning = match separator {
        Some(0) => switching::Meaning::default(),
        Some(count) if count > 1 => {
            let message = format!("only one reference expected, {count} given.");
            return Err(CliError::fatal(message));
        }
        _ => {
            let rules = switching::ArgumentRules {
                which: Which::Checkout,
                is_name: separator == Some(1),
                may_guess,
            };
            switching::understand(&repository, context, &args.plain, rules)?
        }
    };
    let start = meaning.start;
    let paths = &args.plain[meaning.taken..];
    if separator.is_none() && start.is_some() && !paths.is_empty() {
        refuse_ambiguous(&repository, &args.plain[0])?;
    }
    let create = switching::creation(
        common,
        &creation,
        meaning.guessed,
        &repository,
        Which::Checkout,
    )?;
    let starts_new_branch = create.as_ref().filter(|_| start.is_none());
    refuse_with_arguments(args, starts_new_branch, paths)?;
    let specs = pathspecs(args, paths)?;
    if specs.is_empty() {
        return switch_branch(&repository, context, args, start, create);
    }
    refuse_with_paths(args, start.as_ref(), create.as_ref(), tracks)?;
    let specs = specs.iter().map(|spec| spec.as_bstr());
    let pathspec = repository.pathspec(specs).map_err(CliError::of)?;
    restore_paths(&repository, context, args, start, pathspec)
}

impl Args {
    fn merges(&self) -> bool {
        self.merge || self.conflict.is_some()
    }
}

/// Returns the conflict style (`--conflict`) if conflicts are recreated (`--merge`).
fn style(args: &Args, repository: &Repository) -> Result<Option<ConflictStyle>, CliError> {
    match args.merges() {
        true => restoring::style(args.conflict.as_deref(), repository).map(Some),
        false => Ok(None),
    }
}

/// Fails if `first`, which names a commit, also names a file, so that `--` must separate revisions
/// from paths.
pub(crate) fn refuse_ambiguous(repository: &Repository, first: &OsStr) -> Result<(), CliError> {
    let file = repository.environment().current_dir().join(first);
    if file.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(CliError::fatal(format!(
        "ambiguous argument '{}': both revision and filename\n\
         Use '--' to separate paths from revisions, like this:\n\
         'git <command> [<revision>...] -- [<file>...]'",
        first.as_bytes().as_bstr()
    )))
}

fn pathspecs(args: &Args, paths: &[OsString]) -> Result<Vec<BString>, CliError> {
    let from_file = args.pathspec_from_file.is_some();
    if from_file && paths.is_empty() && args.common.detach {
        let message = "options '--pathspec-from-file' and '--detach' cannot be used together";
        return Err(CliError::fatal(message));
    }
    pathspecs::read(&PathspecSource {
        given: paths,
        file: args.pathspec_from_file.as_deref(),
        ends_with_nul: args.pathspec_file_nul,
    })
}

/// Refuses options that cannot be combined with paths as arguments. `create` is a branch to create
/// without a start point.
fn refuse_with_arguments(
    args: &Args,
    create: Option<&NewBranch>,
    paths: &[OsString],
) -> Result<(), CliError> {
    let Some(first) = paths.first() else {
        return Ok(());
    };
    let first = first.as_bytes().as_bstr();
    if let (Some(create), 1) = (create, paths.len()) {
        return Err(CliError::fatal(format!(
            "'{first}' is not a commit and a branch '{}' cannot be created from it",
            create.name
        )));
    }
    if args.common.detach {
        let message = format!("git checkout: --detach does not take a path argument '{first}'");
        return Err(CliError::fatal(message));
    }
    Ok(())
}

/// Refuses options that cannot be combined with paths.
fn refuse_with_paths(
    args: &Args,
    start: Option<&StartPoint>,
    create: Option<&NewBranch>,
    tracks: bool,
) -> Result<(), CliError> {
    let common = &args.common;
    let stage = args.ours || args.theirs;
    let excluding = [stage, common.force, args.merges()];
    if excluding.into_iter().filter(|given| *given).count() > 1 {
        return Err(CliError::fatal(
            "git checkout: --ours/--theirs, --force and --merge are incompatible when\n\
             checking out of the index.",
        ));
    }
    if tracks {
        let message = "'--track' cannot be used with updating paths";
        return Err(CliError::fatal(message));
    }
    if args.log {
        return Err(CliError::fatal("'-l' cannot be used with updating paths"));
    }
    if let Some(create) = create {
        let name = &create.name;
        let message =
            format!("Cannot update paths and switch to branch '{name}' at the same time.");
        return Err(CliError::fatal(message));
    }
    if (stage || args.merges()) && start.is_some() {
        return Err(CliError::fatal(
            "'--merge', '--ours', or '--theirs' cannot be used when checking out of a tree",
        ));
    }
    Ok(())
}

fn switch_branch(
    repository: &Repository,
    context: &mut Context,
    args: &Args,
    start: Option<StartPoint>,
    create: Option<NewBranch>,
) -> Result<ExitCode, CliError> {
    let common = &args.common;
    if args.overlay.is_some() {
        return Err(CliError::fatal(
            "'--[no]-overlay' cannot be used with switching branches",
        ));
    }
    if args.ours || args.theirs {
        let nowhere = start.is_none() && create.is_none() && !common.detach;
        return Err(CliError::fatal(if nowhere {
            "'--ours/--theirs' needs the paths to check out"
        } else {
            "'--ours/--theirs' cannot be used with switching branches"
        }));
    }
    if common.force && args.merges() {
        return Err(CliError::fatal("'-f' cannot be used with '-m'"));
    }
    let tracks = common.track.is_some() || switching::follows_nothing(context);
    if common.detach && tracks {
        return Err(CliError::fatal("'--detach' cannot be used with '-t'"));
    }
    if let Some(start) = start.as_ref().filter(|start| start.commit.is_none()) {
        let message = format!("Cannot switch branch to a non-commit '{}'", start.name);
        return Err(CliError::fatal(message));
    }
    // `checkout -b NEW` alone only creates the branch.
    let skips_worktree_scan = args.create.is_some() && context.arguments.len() == 2;
    let mut options = Options::default();
    options.to = start;
    options.create = create;
    options.detach = common.detach;
    options.discard = common.force;
    options.overwrite_untracked = common.force;
    options.skips_worktree_scan = skips_worktree_scan;
    options.ignore_other_worktrees = common.ignore_other_worktrees;
    options.keep_ignored = common.overwrite_ignore == Some(false);
    options.empty = false;
    options.quiet = common.quiet;
    switching::switch(repository, context, common, &options, args.merges())
}

fn restore_paths(
    repository: &Repository,
    context: &mut Context,
    args: &Args,
    source: Option<StartPoint>,
    pathspec: Pathspec,
) -> Result<ExitCode, CliError> {
    let mut options = checkout_paths::Options::new(pathspec);
    options.source = source;
    options.overlay = args.overlay.unwrap_or(true);
    options.stage = match (args.ours, args.theirs) {
        (true, _) => Some(ConflictSide::Ours),
        (_, true) => Some(ConflictSide::Theirs),
        _ => None,
    };
    options.merge = style(args, repository)?;
    options.ignore_unmerged = args.common.force;
    options.index = true;
    options.worktree = true;
    options.ignore_skip_worktree = args.ignore_skip_worktree_bits;
    let reporting = Reporting {
        quiet: args.common.quiet,
        progress: args.common.progress,
        count: context.separator.is_none() && !args.plain.is_empty(),
    };
    restoring::restore(repository, context, &options, &reporting)
}
