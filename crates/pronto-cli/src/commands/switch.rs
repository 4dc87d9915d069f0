//! `switch`: switch to another branch.

use std::ffi::OsString;

use pronto::refs::HeadValue;
use pronto::switch::Options;

use crate::commands::restoring;
use crate::commands::switching::{self, BranchCreation, SwitchOptions, Which, text};
use crate::{CliError, Context, ExitCode};

/// Arguments of `switch`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    common: SwitchOptions,
    /// Create this branch and switch to it
    #[arg(short, long, value_name = "BRANCH")]
    create: Option<OsString>,
    /// Create or reset this branch and switch to it
    #[arg(short = 'C', long, value_name = "BRANCH")]
    force_create: Option<OsString>,
    /// Discard local changes
    #[arg(long)]
    discard_changes: bool,
    /// Merge local changes into the new branch
    #[arg(short, long)]
    merge: bool,
    /// The style of conflicts in such a merge: merge, diff3, zdiff3
    #[arg(long, value_name = "STYLE")]
    conflict: Option<String>,
    /// The branch to switch to, or the start of the new one
    #[arg(value_name = "COMMIT")]
    plain: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let common = &args.common;
    let merges = args.merges();
    let repository = context.repository()?;
    if merges {
        restoring::style(args.conflict.as_deref(), &repository)?;
    }
    common.check_supported(&repository)?;
    repository.require_work_tree()?;
    let mut creation = args.creation(context);
    let creates = creation.plain.is_some() || creation.force.is_some() || common.orphan.is_some();
    let tracks = common.track.is_some() || creation.follows_nothing;
    if tracks && !creates {
        let first = args.plain.first().map(OsString::as_os_str);
        creation.plain = Some(switching::name_after_remote(first, Which::Switch)?);
    }
    if args.plain.len() > 1 {
        return Err(CliError::fatal("only one reference expected"));
    }
    let creates = creates || creation.plain.is_some();
    let may_guess = !creates && common.guesses(&repository)?;
    let rules = switching::ArgumentRules {
        which: Which::Switch,
        is_name: true,
        may_guess,
    };
    let meaning = switching::understand(&repository, context, &args.plain, rules)?;
    let start = meaning.start;
    if start.as_ref().is_some_and(|start| start.commit.is_none()) {
        let name = start.map(|start| start.name).unwrap_or_default();
        return Err(CliError::fatal(format!(
            "Cannot switch branch to a non-commit '{name}'"
        )));
    }
    args.refuse_merging()?;
    if common.orphan.is_some() && start.is_some() {
        return Err(CliError::fatal("'--orphan' cannot take <start-point>"));
    }
    let create = switching::creation(
        common,
        &creation,
        meaning.guessed,
        &repository,
        Which::Switch,
    )?;
    if start.is_none() && create.is_none() && !common.detach {
        return Err(CliError::fatal("missing branch or commit argument"));
    }
    if let (Some(start), None, false) = (&start, &create, common.detach)
        && start.branch.is_none()
    {
        return Err(expecting_a_branch(&repository, start)?);
    }
    pronto::switch::refuse_while_in_progress(&repository)?;
    context.report();
    let mut options = Options::default();
    options.to = start;
    options.create = create;
    options.detach = common.detach;
    options.discard = args.discard_changes || common.force;
    options.overwrite_untracked = common.force;
    options.skips_worktree_scan = true;
    options.ignore_other_worktrees = common.ignore_other_worktrees;
    options.keep_ignored = common.overwrite_ignore == Some(false);
    options.empty = common.orphan.is_some();
    options.quiet = common.quiet;
    switching::switch(&repository, context, common, &options, merges)
}

impl Args {
    fn merges(&self) -> bool {
        self.merge || self.conflict.is_some()
    }

    /// Refuses options that discard local changes beside `--merge`, which keeps them.
    fn refuse_merging(&self) -> Result<(), CliError> {
        if self.merges() && self.common.force {
            return Err(CliError::fatal("'-f' cannot be used with '-m'"));
        }
        if self.merges() && self.discard_changes {
            let message = "'--discard-changes' cannot be used with '--merge'";
            return Err(CliError::fatal(message));
        }
        Ok(())
    }

    /// Returns the branch to create. The branch that `--track` implies is not included.
    fn creation(&self, context: &Context) -> BranchCreation {
        BranchCreation {
            plain: text(self.create.as_ref()),
            force: text(self.force_create.as_ref()),
            log: false,
            follows_nothing: switching::follows_nothing(context),
        }
    }
}

fn expecting_a_branch(
    repository: &pronto::Repository,
    start: &pronto::switch::StartPoint,
) -> Result<CliError, CliError> {
    let branch = match start.reference.as_ref().map(|name| name.as_slice()) {
        Some(b"HEAD") => match repository.head().map_err(CliError::of)? {
            HeadValue::Branch { name, .. } => Some(name),
            _ => None,
        },
        _ => None,
    };
    let full = branch.as_ref().or(start.reference.as_ref());
    let full = full.map(|name| name.as_slice());
    let strip = |prefix: &[u8]| full.and_then(|name| name.strip_prefix(prefix));
    let show = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let message = if let Some(tag) = strip(b"refs/tags/") {
        format!("a branch is expected, got tag '{}'", show(tag))
    } else if let Some(remote) = strip(b"refs/remotes/") {
        format!("a branch is expected, got remote branch '{}'", show(remote))
    } else if let Some(full) = full {
        format!("a branch is expected, got '{}'", show(full))
    } else {
        format!("a branch is expected, got commit '{}'", start.name)
    };
    let error = CliError::fatal(message);
    if !switching::advises(repository, "suggestDetachingHead")? {
        return Ok(error);
    }
    Ok(error
        .with_hint("If you want to detach HEAD at the commit, try again with the --detach option."))
}
