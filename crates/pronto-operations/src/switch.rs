//! Moves the worktree, the index and `HEAD` to another commit: `git switch`, and `git checkout` of
//! a branch. Files change first, then the index, then `HEAD`.

mod branch;
mod left_behind;
mod move_files;
mod remotes;
mod start;
mod state;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_diff::ChangeKind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_worktree::checkout::{CheckoutFailure, CheckoutWarning};
use pronto_worktree::unpack::Refusals;

use crate::refs::{ExpectedValue, HeadValue, RefName, bad_name, update_failed};
use crate::status::{self, TrackedUpstream};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result, hooks, in_progress};

pub(crate) use branch::invalid_name;
pub use branch::{NewBranch, Tracking, UpstreamSetup, set_upstream};
pub(crate) use branch::{check_tracking, create_branch_at};
pub use left_behind::{LeftBehind, Oneline};
pub use pronto_repository::in_progress::Cancelled;
pub use remotes::Candidates;
pub use remotes::remote_branches_named;
pub use start::StartPoint;
pub use start::start_at;
pub use state::refuse_while_in_progress;

pub(crate) use branch::Point;
pub(crate) use move_files::MovedFiles;

/// Options of `git switch`. By default, each flag is off, and `HEAD` stays where it is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The branch or commit to switch to; `None` for the commit of `HEAD`.
    pub to: Option<StartPoint>,
    /// The branch to create at `to` (`--create`, `--force-create`, `--orphan`).
    pub create: Option<NewBranch>,
    /// Detach `HEAD`, even if `to` is a branch (`--detach`).
    pub detach: bool,
    /// Discard local changes (`--discard-changes`, `--force`).
    pub discard: bool,
    /// With `discard`, also overwrite untracked files.
    pub overwrite_untracked: bool,
    /// Without `to`, do not examine files at all.
    pub skips_worktree_scan: bool,
    /// Allow a branch that is checked out in another worktree (`--ignore-other-worktrees`).
    pub ignore_other_worktrees: bool,
    /// Fail instead of overwriting ignored files (`--no-overwrite-ignore`).
    pub keep_ignored: bool,
    /// Start a new, unborn branch with an empty worktree (`git switch --orphan`, unlike
    /// `git checkout --orphan`).
    pub empty: bool,
    /// Do not collect data that are only used for messages (`--quiet`).
    pub quiet: bool,
}

/// The outcome of a switch.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Outcome {
    /// The switch is done.
    Done(Box<Report>),
    /// Local changes would be lost, so that nothing was changed.
    Refused(Refusals),
    /// The index is unmerged at these paths, so that nothing was changed.
    Unmerged(Vec<BString>),
}

/// The result of a switch.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The new state of `HEAD`.
    pub new_head: NewHead,
    /// Whether `HEAD` was on a branch before and is detached now.
    pub left_branch: bool,
    /// The commits that were reachable only from the old detached `HEAD`.
    pub left_behind: Option<LeftBehind>,
    /// The commit that is checked out now.
    pub commit: Option<Oneline>,
    /// The upstream of the new branch.
    pub set_up: Option<UpstreamSetup>,
    /// Files that differ from the new commit, in order.
    pub local_changes: Vec<LocalChange>,
    /// The new branch's relation to its upstream.
    pub upstream: Option<TrackedUpstream>,
    /// The operations in progress that were cancelled.
    pub cancelled: Vec<Cancelled>,
    /// The files that could not be written.
    pub failed: Vec<CheckoutFailure>,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
    /// The exit code of the hook `post-checkout`, if it ran.
    pub hook: Option<i32>,
}

/// A file with local changes, which a switch has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChange {
    /// The change from the new commit to the file.
    pub kind: ChangeKind,
    /// The path.
    pub path: BString,
}

/// The new state of `HEAD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NewHead {
    /// `HEAD` has not moved.
    #[default]
    Stayed,
    /// `HEAD` still points to the old unborn branch, because the change to the new branch name
    /// failed.
    NotRenamed,
    /// Detached at a commit, with the name that the caller used.
    Detached(BString),
    /// `HEAD` points to a branch, given without `refs/heads/`.
    Branch(BString, BranchChange),
}

/// The change of the branch to which `HEAD` points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchChange {
    /// `HEAD` pointed to the branch before.
    Already,
    /// `HEAD` pointed to the branch before, and the branch was reset.
    Reset,
    /// `HEAD` pointed to another branch or commit before.
    Switched,
    /// The branch is new.
    New,
    /// The branch existed and was reset, and `HEAD` pointed elsewhere before.
    ExistingReset,
}

/// Switches to a branch or commit, like `git switch`.
///
/// # Errors
/// Fails if the branch is checked out in another worktree, if a name is invalid, if an object is
/// missing, or if files of the repository cannot be read or written. Fails with
/// [`ErrorKind::Unsupported`] before any change. A loss of local changes is no error: see
/// [`Outcome`]. If `HEAD` cannot be moved, the report describes the switch of the files and the
/// index, which precedes the update of `HEAD`.
pub fn switch(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome, PartialFailure<Report>> {
    support::require(repository, Operation::Switch)?;
    let head = repository.head()?;
    check_branches(repository, options, &head)?;
    if let (None, Some(create), true) = (&options.to, &options.create, is_unborn(&head)) {
        return Ok(Outcome::Done(Box::new(rename_unborn(repository, create)?)));
    }
    let old = with_commit(repository, head)?;
    if options.to.is_none() && old.id().is_none_or(|id| id.is_null()) && !options.empty {
        let message = "You are on a branch yet to be born";
        return Err(Error::new(ErrorKind::InvalidInput, message).into());
    }
    let new_head = SwitchTarget::new(options, &old);
    repository.check_log_identity()?;
    let mut report = Report::default();
    if !(options.to.is_none() && options.skips_worktree_scan && !options.empty) {
        match move_files::move_files(repository, old.id(), &new_head, options, watch)? {
            MovedFiles::Done(outcome) => {
                report.failed = outcome.failed;
                report.warnings = outcome.warnings;
            }
            MovedFiles::Refused(refusals) => return Ok(Outcome::Refused(refusals)),
            MovedFiles::Unmerged(paths) => return Ok(Outcome::Unmerged(paths)),
        }
        // This step precedes the update of `HEAD`, because a broken submodule ends the switch here.
        if let (false, false, Some(commit)) = (options.quiet, options.discard, new_head.commit) {
            report.local_changes = move_files::local_changes(repository, commit, watch)?;
        }
    }
    if let (HeadValue::Detached { id }, false) = (&old, options.quiet)
        && new_head.commit != Some(*id)
        && !id.is_null()
    {
        report.left_behind = Some(left_behind::left_behind(
            repository,
            *id,
            new_head.commit,
            watch,
        )?);
    }
    if let Err(error) = move_head(repository, options, &old, new_head, &mut report) {
        return Err(PartialFailure::new(error, report));
    }
    find_upstream(repository, options, &mut report, watch)?;
    run_post_checkout(repository, old.id(), &mut report)?;
    Ok(Outcome::Done(Box::new(report)))
}

/// Returns whether `head` is unborn. A branch with the null object id is unborn, too.
fn is_unborn(head: &HeadValue) -> bool {
    match head {
        HeadValue::Unborn { .. } => true,
        HeadValue::Branch { id, .. } => id.is_null(),
        HeadValue::Detached { .. } => false,
    }
}

/// Returns `head` with a tag peeled to its commit. The id is null if the object is missing or
/// cannot be peeled to a commit.
fn with_commit(repository: &Repository, head: HeadValue) -> Result<HeadValue> {
    let commit = |id| -> Result<ObjectId> {
        let commit = repository.peel_to(id, Kind::Commit)?;
        Ok(commit.unwrap_or(repository.object_hash().null()))
    };
    Ok(match head {
        HeadValue::Branch { name, id } => HeadValue::Branch {
            name,
            id: commit(id)?,
        },
        HeadValue::Detached { id } => HeadValue::Detached { id: commit(id)? },
        HeadValue::Unborn { .. } => head,
    })
}

fn check_branches(repository: &Repository, options: &Options, old: &HeadValue) -> Result<()> {
    let check = |name: &BStr| {
        if options.ignore_other_worktrees || old.name() == Some(name) {
            return Ok(());
        }
        repository.refuse_branch_in_use(name, false)
    };
    if let Some(create) = &options.create {
        branch::check_new_branch(repository, create)?;
        return if create.force {
            check(create.full_name().as_bstr())
        } else {
            Ok(())
        };
    }
    match options.to.as_ref().and_then(|start| start.branch.as_ref()) {
        Some(branch) if !options.detach => check(branch.as_bstr()),
        _ => Ok(()),
    }
}

/// Switches from an unborn branch to a new one: only the name changes.
fn rename_unborn(
    repository: &Repository,
    create: &NewBranch,
) -> Result<Report, PartialFailure<Report>> {
    let mut transaction = repository.transaction();
    transaction.set_symbolic(
        "HEAD",
        RefName::new(create.full_name()).map_err(bad_name)?,
        Some(b"checkout -b".as_bstr()),
    );
    if let Err(error) = transaction.commit() {
        let report = Report {
            new_head: NewHead::NotRenamed,
            ..Report::default()
        };
        return Err(PartialFailure::new(error, report));
    }
    Ok(Report {
        new_head: NewHead::Branch(create.name.clone(), BranchChange::New),
        ..Report::default()
    })
}

/// Updates refs and reflogs.
fn move_head(
    repository: &Repository,
    options: &Options,
    old: &HeadValue,
    mut to: SwitchTarget,
    report: &mut Report,
) -> Result<()> {
    let mut existed = false;
    if let Some(create) = &options.create {
        let full = create.full_name();
        existed = repository.refs().id_of(&full)?.is_some();
        if !create.orphan {
            report.set_up = branch::create_branch(repository, create, &to)?;
        }
        to.name.clone_from(&create.name);
        to.branch = Some(full);
    }
    let message = switch_message(repository, old, to.name.as_bstr());
    let detaches = options.detach || to.branch.is_none();
    if to.name == "HEAD" && to.branch.is_none() && !options.detach {
        // `HEAD` does not move.
    } else if let (true, Some(commit)) = (detaches, to.commit) {
        let mut transaction = repository.transaction();
        transaction.detach("HEAD", commit, ExpectedValue::Anything, &message);
        let moved = transaction.commit();
        moved.map_err(|error| update_failed("HEAD", error))?;
        report.left_branch = old.name().is_some();
        report.new_head = NewHead::Detached(to.name.clone());
    } else if let Some(branch) = &to.branch {
        let mut transaction = repository.transaction();
        let target = RefName::new(branch.clone()).map_err(bad_name)?;
        transaction.set_symbolic("HEAD", target, Some(message.as_bstr()));
        transaction.commit().map_err(|error| match error.kind() {
            kind if kind.ends_command() => error,
            kind => Error::new(kind, "unable to update HEAD").reported_after(error.to_string()),
        })?;
        let change = match (&options.create, old.name() == Some(branch.as_bstr())) {
            (Some(create), true) if create.force => BranchChange::Reset,
            (_, true) => BranchChange::Already,
            (Some(_), false) if existed => BranchChange::ExistingReset,
            (Some(_), false) => BranchChange::New,
            (None, false) => BranchChange::Switched,
        };
        forget_log_of_unborn(repository, old)?;
        report.new_head = NewHead::Branch(to.name.clone(), change);
    }
    report.cancelled = in_progress::cancel(repository)?;
    if let Some(commit) = to.commit {
        report.commit = Some(Oneline::read(repository, commit)?);
    }
    Ok(())
}

fn switch_message(repository: &Repository, old: &HeadValue, to: &BStr) -> BString {
    if let Some(action) = repository.environment().bytes("GIT_REFLOG_ACTION") {
        return action.into();
    }
    let from: BString = match (old.branch(), old.id()) {
        (Some(branch), _) => branch.to_owned(),
        (None, Some(id)) if !id.is_null() => id.to_string().into(),
        (None, _) => "(invalid)".into(),
    };
    format!("checkout: moving from {from} to {to}").into()
}

/// Removes the reflog of an unborn branch that `HEAD` no longer points to. The branch ceases to
/// exist.
fn forget_log_of_unborn(repository: &Repository, old: &HeadValue) -> Result<()> {
    if let HeadValue::Unborn { name } = old
        && repository.refs().has_log(name)
        && repository.refs().id_of(name)?.is_none()
    {
        // A leftover reflog does no harm.
        let _ = repository.drop_log(name.as_bstr());
    }
    Ok(())
}

/// Compares the branch with its upstream, for messages.
fn find_upstream(
    repository: &Repository,
    options: &Options,
    report: &mut Report,
    watch: &Watch<'_>,
) -> Result<()> {
    if options.quiet || options.detach {
        return Ok(());
    }
    let head = repository.head()?;
    if let (Some(name), Some(id)) = (head.name(), head.id()) {
        report.upstream = status::upstream(repository, name, Some(id), true, watch)?;
    }
    Ok(())
}

fn run_post_checkout(
    repository: &Repository,
    old: Option<ObjectId>,
    report: &mut Report,
) -> Result<()> {
    let new = repository.head()?.id();
    report.hook = run_post_checkout_hook(repository, old, new, true)?;
    Ok(())
}

/// Runs the hook `post-checkout`, with an argument that is `1` if a branch was switched.
///
/// # Errors
/// Fails with [`ErrorKind::Hook`] if the hook cannot be started.
pub fn run_post_checkout_hook(
    repository: &Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    switched: bool,
) -> Result<Option<i32>> {
    let hex = |id: Option<ObjectId>| id.unwrap_or(repository.object_hash().null()).to_string();
    let (old, new) = (hex(old), hex(new));
    let call = hooks::HookCall {
        arguments: vec![
            old.as_ref(),
            new.as_ref(),
            if switched { "1".as_ref() } else { "0".as_ref() },
        ],
        ..hooks::HookCall::default()
    };
    hooks::run(repository, "post-checkout", &call)
}

/// The resolved target of `HEAD`.
#[derive(Clone, Debug)]
pub(crate) struct SwitchTarget {
    /// The name that the caller used.
    pub(crate) name: BString,
    /// The full name of the branch, if the target is a branch.
    pub(crate) branch: Option<BString>,
    /// The full name of the named ref.
    pub(crate) reference: Option<BString>,
    pub(crate) commit: Option<ObjectId>,
}

impl SwitchTarget {
    fn new(options: &Options, old: &HeadValue) -> Self {
        match &options.to {
            _ if options.empty => SwitchTarget {
                name: "(empty)".into(),
                branch: None,
                reference: None,
                commit: None,
            },
            Some(start) => SwitchTarget {
                name: start.name.clone(),
                branch: start.branch.clone(),
                reference: start.reference.clone(),
                commit: start.commit,
            },
            None => SwitchTarget {
                name: "HEAD".into(),
                branch: None,
                reference: old.name().map(ToOwned::to_owned),
                commit: old.id(),
            },
        }
    }
}
