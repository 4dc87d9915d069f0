//! `worktree`: manage linked worktrees.

mod add;
mod list;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use clap::ArgAction;
use pronto::Watch;
use pronto::worktrees::ExpiryAge;

use crate::{CliError, Context, ExitCode};

/// Arguments of `worktree`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "CONFIGURATION: `checkout.reflink` selects whether new files share their blocks with equal \
    files of other worktrees on file systems that support it (XFS, btrfs, bcachefs): `auto` (the default), \
    `always` or `never`. `checkout.workers` and `checkout.thresholdForParallelism` work as in git; if unset, \
    the number of workers follows measurements. `worktree.carry` (repeatable) has patterns that apply before those \
    of `--carry`; an empty pattern cancels all before it. `worktree.carryReflink` is the default of \
    `--carry-reflink`.\n\n\
    CARRYING: only ignored, untracked files of the current worktree are carried, and directories with all their \
    contents. Contents, permissions, modification times, symbolic links and empty directories are preserved. \
    Owners, extended attributes and hard links are not. Nothing in the new worktree is replaced, and no link is \
    followed. Files share their blocks with the originals until one of them is written, if the file system supports \
    that, and are copied otherwise (`--carry-reflink=auto`). With `always` the command fails instead of copying, and \
    `never` always copies."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Override checks: a branch or place in use; twice: a locked worktree (add, move, remove)
    #[arg(short, long, action = ArgAction::Count)]
    force: u8,
    /// Create a branch (add)
    #[arg(short = 'b', value_name = "BRANCH")]
    create: Option<OsString>,
    /// Create or reset a branch (add)
    #[arg(short = 'B', value_name = "BRANCH")]
    force_create: Option<OsString>,
    /// Detach HEAD (add)
    #[arg(short, long)]
    detach: bool,
    /// Create a branch without commits (add)
    #[arg(long)]
    orphan: bool,
    /// Do not check out files (add)
    #[arg(long)]
    no_checkout: bool,
    /// Keep the worktree locked (add)
    #[arg(long)]
    lock: bool,
    /// The reason of the lock (add, lock)
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    /// Print only errors (add)
    #[arg(short, long)]
    quiet: bool,
    /// Set the upstream of the new branch (add)
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "direct")]
    track: Option<String>,
    /// Use a remote branch with the name of the directory (add)
    #[arg(long)]
    guess_remote: Option<bool>,
    /// Carry ignored files that match, as in .gitignore; repeatable (add)
    #[arg(long, value_name = "PATTERN")]
    carry: Vec<OsString>,
    /// Whether carried files share blocks: `auto` (the default), `always` or `never` (add)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_missing_value = "always", require_equals = true)]
    carry_reflink: Option<String>,
    /// Check out the submodules from the objects that the current worktree has (add)
    #[arg(long)]
    recurse_submodules: Option<bool>,
    /// Print a format for scripts (list)
    #[arg(long)]
    porcelain: bool,
    /// Print the list as JSON (list)
    #[arg(long)]
    json: bool,
    /// Terminate lines with NUL (list)
    #[arg(short = 'z')]
    null: bool,
    /// Be more verbose (list, prune)
    #[arg(short, long)]
    verbose: bool,
    /// Process only worktrees unused since then (list, prune)
    #[arg(long, value_name = "TIME")]
    expire: Option<OsString>,
    /// Show what would be removed without removing it (prune)
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// `add`, `list`, `lock`, `move`, `prune`, `remove`, `repair` or `unlock`, and its operands
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// The permitted options of each subcommand, by name.
const OPTIONS: &[(&str, &[&str])] = &[
    (
        "add",
        &[
            "f",
            "force",
            "b",
            "B",
            "d",
            "detach",
            "orphan",
            "checkout",
            "lock",
            "reason",
            "q",
            "quiet",
            "track",
            "guess-remote",
            "carry",
            "carry-reflink",
            "recurse-submodules",
        ],
    ),
    (
        "list",
        &["json", "porcelain", "z", "v", "verbose", "expire"],
    ),
    ("lock", &["reason"]),
    ("move", &["f", "force"]),
    ("prune", &["n", "dry-run", "v", "verbose", "expire"]),
    ("remove", &["f", "force"]),
    ("repair", &[]),
    ("unlock", &[]),
];

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported = || CliError::unsupported("this combination of arguments of 'worktree'");
    let Some((command, words)) = args.words.split_first() else {
        return Err(unsupported());
    };
    let words: Vec<BString> = words.iter().map(|word| word.as_bytes().into()).collect();
    let command = command.to_str().unwrap_or_default();
    // As in Git, the subcommand precedes its options.
    let is_first = context
        .arguments
        .first()
        .is_some_and(|first| first == command);
    let known = OPTIONS.iter().find(|(name, _)| *name == command);
    let Some((_, known)) = known.filter(|_| is_first) else {
        return Err(unsupported());
    };
    if !args.given().all(|given| known.contains(&given)) {
        return Err(unsupported());
    }
    match (command, words.as_slice()) {
        ("add", [place]) => add::run(args, place, None, context),
        ("add", [place, commit]) => add::run(args, place, Some(commit), context),
        ("list", []) => list::run(args, context),
        ("lock", [place]) => {
            let reason = args.reason.as_ref().map(|reason| reason.as_bytes());
            let repository = context.repository()?;
            pronto::worktrees::lock(
                &repository,
                place.as_bstr(),
                reason.unwrap_or_default().as_bstr(),
            )?;
            Ok(ExitCode::SUCCESS)
        }
        ("unlock", [place]) => {
            let repository = context.repository()?;
            pronto::worktrees::unlock(&repository, place.as_bstr())?;
            Ok(ExitCode::SUCCESS)
        }
        ("move", [place, to]) => {
            let repository = context.repository()?;
            let moved =
                pronto::worktrees::relocate(&repository, place.as_bstr(), to.as_bstr(), args.force);
            context.report();
            moved.map(|()| ExitCode::SUCCESS).map_err(CliError::from)
        }
        ("prune", []) => prune(args, context),
        ("remove", [place]) => remove(args, place.as_bstr(), context),
        ("repair", places) => repair(places, context),
        _ => Err(unsupported()),
    }
}

impl Args {
    /// Returns the names of the given options.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.force > 0, "force"),
            (self.create.is_some(), "b"),
            (self.force_create.is_some(), "B"),
            (self.detach, "detach"),
            (self.orphan, "orphan"),
            (self.no_checkout, "checkout"),
            (self.lock, "lock"),
            (self.reason.is_some(), "reason"),
            (self.quiet, "quiet"),
            (self.track.is_some(), "track"),
            (self.guess_remote.is_some(), "guess-remote"),
            (!self.carry.is_empty(), "carry"),
            (self.carry_reflink.is_some(), "carry-reflink"),
            (self.recurse_submodules.is_some(), "recurse-submodules"),
            (self.json, "json"),
            (self.porcelain, "porcelain"),
            (self.null, "z"),
            (self.verbose, "verbose"),
            (self.expire.is_some(), "expire"),
            (self.dry_run, "dry-run"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
    }

    fn expiry(&self) -> Result<ExpiryAge, CliError> {
        super::prune::expiry(self.expire.as_deref())
    }
}

fn prune(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let pruned = pronto::worktrees::prune(&repository, args.expiry()?, args.dry_run)?;
    for gone in &pruned {
        if args.dry_run || args.verbose {
            let (id, reason) = (&gone.id, &gone.reason);
            context.remark(&format!("Removing worktrees/{id}: {reason}"));
        }
        if let Some(failure) = &gone.failure {
            context.report_error(&failure.to_string());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &Args, place: &BStr, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let interrupt = context.interrupt.clone();
    let removed =
        pronto::worktrees::remove(&repository, place, args.force, &Watch::from(&interrupt))
            .map_err(CliError::of)?;
    for failure in &removed.failures {
        context.report_error(&failure.to_string());
    }
    Ok(match removed.failures.is_empty() {
        true => ExitCode::SUCCESS,
        // Git's exit code is -1.
        false => ExitCode::new(255),
    })
}

fn repair(places: &[BString], context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut code = ExitCode::SUCCESS;
    for repair in pronto::worktrees::repair(&repository, places)? {
        let (defect, place) = (repair.defect, &repair.place);
        if repair.is_done {
            context.remark(&format!("repair: {defect}: {place}"));
        } else {
            context.report_error(&format!("{defect}: {place}"));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
