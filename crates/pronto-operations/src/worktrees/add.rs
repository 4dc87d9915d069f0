//! Creates worktrees: `git worktree add`.
//!
//! Names are resolved first ([`plan`]), so that a front end can show the planned steps. Then the
//! worktree is created ([`add`](add())).

mod make;
mod modules;
mod start;
mod target;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;

use super::carry;
use super::carry::Carry;
use super::locks::CreationMark;
use super::refused;
use super::relocate;
use crate::refs::name;
use crate::revision::ExpectedType;
use crate::support::{self, Operation};
use crate::switch::{self, NewBranch, Point, Tracking, UpstreamSetup, invalid_name};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result, reset};
use start::AddMeaning;
use target::HeadTarget;

const UPSTREAM_ADVICE: &str = "\nIf you are planning on basing your work on an upstream\n\
    branch that already exists at the remote, you may need to\n\
    run \"git fetch\" to retrieve it.\n\n\
    If you are planning to push out a new local branch that\n\
    will track its remote counterpart, you may want to use\n\
    \"git push -u\" to set the upstream config as you push.\n\
    Disable this message with \"git config advice.setUpstreamFailure false\"";

/// Options of `git worktree add`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AddWorktreeOptions {
    /// The path of the new worktree, as the user wrote it.
    pub place: BString,
    /// The commit or branch to check out, as the user wrote it.
    pub commit: Option<BString>,
    /// The branch of the new worktree (`-b`, `-B`, `--detach`, `--orphan`).
    pub branching: Branching,
    /// The upstream of a new branch (`--track`, `--no-track`); `None` if unspecified.
    pub tracking: Option<Tracking>,
    /// Create a missing branch from the remote-tracking branch of the same name (`--guess-remote`,
    /// `worktree.guessRemote`).
    pub guess_remote: bool,
    /// The number of `--force` options. One allows a branch that is checked out in another
    /// worktree; two also allow the path of a locked, missing worktree.
    pub force: u8,
    /// Do not check out files (`--no-checkout`).
    pub no_checkout: bool,
    /// The reason with which the new worktree is locked (`--lock`, `--reason`).
    pub lock: Option<BString>,
    /// Suppress messages about upstreams (`--quiet`).
    pub quiet: bool,
    /// The ignored files of the current worktree to copy to the new one.
    pub carry: Carry,
    /// Copy the existing repositories of submodules, so that `git submodule update` in the new
    /// worktree fetches no objects.
    pub share_submodules: bool,
}

/// The branch of a new worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Branching {
    /// The branch that `commit` names; otherwise the branch with the name of the directory, created
    /// if needed.
    #[default]
    Guess,
    /// Create this branch (`-b`).
    New(BString),
    /// Create or reset this branch (`-B`).
    Force(BString),
    /// Detach `HEAD` (`--detach`).
    Detach,
    /// Create an unborn branch with this name, or with the name of the directory (`--orphan`).
    Orphan(Option<BString>),
}

/// A worktree to create, with all names resolved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Addition {
    options: AddWorktreeOptions,
    /// The branch to create, and whether an existing branch may be reset.
    new_branch: Option<(BString, bool)>,
    /// The starting point of the branch, or the commit to check out.
    start: BString,
    orphan: bool,
    /// The first step, for a message.
    pub preparation: AddStep,
}

/// The first step of creating a worktree, as Git announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddStep {
    /// This branch will be created.
    NewBranch(BString),
    /// This branch will be reset. Contains the abbreviated id of its old commit.
    Reset(BString, String),
    /// This branch will be checked out.
    Branch(BString),
    /// The commit with this abbreviated id will be checked out with a detached `HEAD`.
    Detached(String),
}

/// The new worktree.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct AddedWorktree {
    /// The upstream that was configured for the new branch.
    pub set_up: Option<UpstreamSetup>,
    /// The result of the checkout; `None` with `--no-checkout`.
    pub reset: Option<reset::Outcome>,
    /// The exit code of the hook `post-checkout`, if it ran.
    pub hook: Option<i32>,
    /// Whether `share_submodules` was requested and there are submodules, which are not checked out
    /// yet.
    pub has_submodules: bool,
    /// Whether the new branch could not be created. In this case nothing was changed.
    pub lacks_branch: bool,
}

impl AddedWorktree {
    /// Returns whether writing the files failed. In that case the worktree was removed again.
    pub fn has_failed(&self) -> bool {
        match &self.reset {
            None => false,
            Some(reset::Outcome::Done(report)) => !report.failed.is_empty(),
            Some(_) => true,
        }
    }
}

/// Resolves the names in `options`. Changes nothing.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if options contradict each other, with
/// [`ErrorKind::UnknownRevision`] if a name cannot be resolved, with [`ErrorKind::Refused`] if a
/// branch is checked out in another worktree or a name is invalid, and with
/// [`Unsupported`](ErrorKind::Unsupported) for cases that pronto lacks.
pub fn plan(repository: &Repository, options: AddWorktreeOptions) -> Result<Addition> {
    support::require(repository, Operation::Worktrees)?;
    switch::check_tracking(repository, options.tracking.unwrap_or_default())?;
    let display_path = super::display_argument(repository, options.place.as_bstr());
    let AddMeaning {
        start,
        new_branch,
        orphan,
    } = start::choose(repository, &options, display_path.as_bstr())?;
    let preparation = preparation(repository, &options, new_branch.as_ref(), start.as_bstr())?;
    Ok(Addition {
        options,
        new_branch,
        start,
        orphan,
        preparation,
    })
}

fn preparation(
    repository: &Repository,
    options: &AddWorktreeOptions,
    new_branch: Option<&(BString, bool)>,
    start: &BStr,
) -> Result<AddStep> {
    if let Some((name, force)) = new_branch {
        let old = match force {
            true => commit_named(repository, name.as_bstr())?,
            false => None,
        };
        return Ok(match old {
            Some(old) => AddStep::Reset(name.clone(), repository.abbreviate(&old)?),
            None => AddStep::NewBranch(name.clone()),
        });
    }
    if options.branching != Branching::Detach && existing_branch(repository, start)?.is_some() {
        return Ok(AddStep::Branch(start.to_owned()));
    }
    match commit_named(repository, start)? {
        Some(commit) => Ok(AddStep::Detached(repository.abbreviate(&commit)?)),
        None => Err(invalid_reference(start)),
    }
}

/// Creates a worktree: its branch, its administrative directory, its files, and its index. On a
/// failure or an interruption, everything but the branch is removed again. If the process is
/// killed, [`prune`](crate::worktrees::prune) removes the administrative directory later.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if the path is in use or a branch is checked out in another
/// worktree, and with other kinds if a branch cannot be created or files of the repository cannot
/// be written. Files of the worktree that cannot be written are no error: see
/// [`AddedWorktree::has_failed`].
pub fn add(
    repository: &Repository,
    addition: &Addition,
    watch: &Watch<'_>,
) -> Result<AddedWorktree, PartialFailure<AddedWorktree>> {
    let options = &addition.options;
    carry::check_carry(repository, &options.carry)?;
    let mut added = AddedWorktree::default();
    let mut checked_out = addition.start.clone();
    match &addition.new_branch {
        Some((name, _)) if addition.orphan => checked_out = name.clone(),
        Some((name, force)) => {
            match make_branch(repository, name, *force, addition) {
                Ok(set_up) => added.set_up = set_up,
                Err(error) => return Err(without_branch(error)),
            }
            checked_out = name.clone();
        }
        None if options.tracking.is_some() => return Err(tracking_without_branch().into()),
        None => {}
    }
    let display_path = super::display_argument(repository, options.place.as_bstr());
    let place = super::place_of(repository, options.place.as_bstr());
    relocate::check_candidate(
        repository,
        display_path.as_bstr(),
        &place,
        &repository.work_trees()?,
        options.force,
        "add",
    )?;
    let target = target(repository, addition, checked_out.as_bstr())?;
    let (own_dir, guard) = make::make_own_dir(repository, display_path.as_bstr())?;
    let mark = CreationMark::set(&own_dir)?;
    let (inside, place_guard) = make::open_new(repository, &place, &own_dir)?;
    make::make_refs_dir(&own_dir)?;
    target.write(&inside)?;
    if !repository.refs().wants_log(BStr::new("HEAD")) {
        // The setting of the current repository decides here, that of the new worktree later.
        let _ = std::fs::remove_file(inside.git_path("logs/HEAD"));
    }
    make::connect(&place, &own_dir)?;
    if let (HeadTarget::Commit(..) | HeadTarget::Branch(..), false) = (&target, options.no_checkout)
    {
        match fill(&inside, watch) {
            Ok(outcome) => added.reset = Some(outcome),
            Err(failure) => return Err(not_filled(failure, added)),
        }
        if added.has_failed() {
            return Ok(added);
        }
        carry::carry(repository, &options.carry, &inside, watch)?;
        if options.share_submodules {
            added.has_submodules = modules::share_submodules(repository, &inside, watch)?;
        }
    }
    if let (HeadTarget::Unborn(_), false) = (&target, options.no_checkout) {
        // There are no files, but an index.
        let _ = fill(&inside, watch).map_err(Error::from)?;
    }
    place_guard.keep();
    guard.keep();
    mark.clear(options.lock.as_ref().map(|reason| reason.as_bstr()))?;
    if let (Some(commit), true) = (target.commit(), added.reset.is_some()) {
        added.hook = make::run_hook_there(repository, &place, commit)?;
    }
    Ok(added)
}

fn tracking_without_branch() -> Error {
    let message = "--[no-]track can only be used if a new branch is created";
    Error::new(ErrorKind::InvalidInput, message)
}

/// Returns the full name of the existing branch called `name`, if there is one.
fn existing_branch(repository: &Repository, name: &BStr) -> Result<Option<BString>> {
    let full = branch_called(repository, name)?;
    match full {
        Some(full) if repository.refs().resolve(&full)?.is_some() => Ok(Some(full)),
        _ => Ok(None),
    }
}

/// Returns the full name of a branch called `name`, if the name is valid.
fn branch_called(repository: &Repository, name: &BStr) -> Result<Option<BString>> {
    let is_literal = name == "@";
    let meant = repository.interpret_branch_name(name).ok().flatten();
    let meant = meant.filter(|_| !is_literal);
    let short = match &meant {
        Some(full) => full.strip_prefix(b"refs/heads/").unwrap_or(full).as_bstr(),
        None => name,
    };
    let full: BString = [b"refs/heads/", short.as_bytes()].concat().into();
    let is_valid = !name.starts_with(b"-")
        && full != "refs/heads/HEAD"
        && name::is_valid(full.as_bstr(), name::Form::Full);
    Ok(is_valid.then_some(full))
}

fn commit_named(repository: &Repository, name: &BStr) -> Result<Option<ObjectId>> {
    match repository.try_resolve(name, ExpectedType::Committish)? {
        Some(id) => repository.peel_to(id, Kind::Commit),
        None => Ok(None),
    }
}

/// Checks the name of an unborn branch.
fn check_unborn(repository: &Repository, name: &BStr) -> Result<()> {
    match branch_called(repository, name)? {
        None => Err(invalid_name(repository, name, ErrorKind::Refused)?),
        Some(full) if repository.refs().resolve(&full)?.is_some() => {
            Err(refused(format!("a branch named '{name}' already exists")))
        }
        Some(_) => Ok(()),
    }
}

/// Creates the branch `name`, as `git branch` does.
fn make_branch(
    repository: &Repository,
    name: &BString,
    force: bool,
    addition: &Addition,
) -> Result<Option<UpstreamSetup>> {
    let Some(full) = branch_called(repository, name.as_bstr())? else {
        return Err(invalid_name(
            repository,
            name.as_bstr(),
            ErrorKind::Refused,
        )?);
    };
    let short = full.strip_prefix(b"refs/heads/").unwrap_or(&full).as_bstr();
    if repository.refs().resolve(&full)?.is_some() {
        if !force {
            return Err(refused(format!("a branch named '{short}' already exists")));
        }
        if let Some(place) = repository.work_tree_using(full.as_bstr(), true) {
            let place = place.display();
            return Err(refused(format!(
                "cannot force update the branch '{short}' used by worktree at '{place}'"
            )));
        }
    }
    let start = addition.start.as_bstr();
    let tracking = addition.options.tracking.unwrap_or_default();
    let Some(id) = repository.try_resolve(start, ExpectedType::Anything)? else {
        return Err(match tracking {
            Tracking::Direct => no_upstream(repository, start)?,
            _ => refused(format!("not a valid object name: '{start}'")),
        });
    };
    let Some(commit) = repository.peel_to(id, Kind::Commit)? else {
        return Err(refused(format!("not a valid branch point: '{start}'")));
    };
    let reference = repository.find_reference(start)?.map(|found| found.name);
    let reference = match reference {
        Some(name) if name == "HEAD" => repository.head()?.name().map(ToOwned::to_owned),
        other => other,
    };
    let create = NewBranch {
        name: short.to_owned(),
        force,
        tracking,
        ..NewBranch::default()
    };
    let point = Point {
        name: start,
        reference: reference.as_ref().map(|name| name.as_bstr()),
        commit,
    };
    switch::create_branch_at(repository, &create, &point)
}

fn no_upstream(repository: &Repository, start: &BStr) -> Result<Error> {
    let error = refused(format!(
        "the requested upstream branch '{start}' does not exist"
    ));
    Ok(match repository.advice("setupstreamfailure")? {
        Some(false) => error,
        _ => error.with_hint(UPSTREAM_ADVICE),
    })
}

/// Returns the target of the new worktree's `HEAD`.
fn target(repository: &Repository, addition: &Addition, name: &BStr) -> Result<HeadTarget> {
    if addition.orphan {
        let full = branch_called(repository, name)?;
        return full
            .map(HeadTarget::Unborn)
            .ok_or_else(|| invalid_reference(name));
    }
    let branch = match addition.options.branching {
        Branching::Detach => None,
        _ => existing_branch(repository, name)?,
    };
    if let (Some(full), 0) = (&branch, addition.options.force) {
        repository.refuse_branch_in_use(full.as_bstr(), true)?;
    }
    let commit = commit_named(repository, name)?.ok_or_else(|| invalid_reference(name))?;
    Ok(match branch {
        Some(full) => HeadTarget::Branch(full, commit),
        None => HeadTarget::Commit(commit),
    })
}

/// Checks out all files.
fn fill(
    inside: &Repository,
    watch: &Watch<'_>,
) -> Result<reset::Outcome, PartialFailure<reset::Report>> {
    crate::remote::fetch_on_demand(inside, watch)?;
    let options = reset::Options {
        to: reset::target(inside, "HEAD".into(), false)?,
        mode: reset::Mode::Hard,
        pathspec: crate::status::Pathspec::default(),
        intent_to_add: false,
        no_refresh: true,
    };
    reset::reset(inside, &options, watch)
}

/// Returns the failure to create the new branch, which is the first change of the operation.
fn without_branch(error: Error) -> PartialFailure<AddedWorktree> {
    let added = AddedWorktree {
        lacks_branch: true,
        ..AddedWorktree::default()
    };
    PartialFailure::new(error, added)
}

fn not_filled(
    failure: PartialFailure<reset::Report>,
    added: AddedWorktree,
) -> PartialFailure<AddedWorktree> {
    match failure.report {
        Some(_) => PartialFailure::new(failure.error, added),
        None => failure.error.into(),
    }
}

fn invalid_reference(name: &BStr) -> Error {
    Error::new(
        ErrorKind::UnknownRevision,
        format!("invalid reference: {name}"),
    )
}

/// Returns the last component of a path, without trailing slashes.
fn base_name_of(place: &BStr) -> &BStr {
    let end = place.trim_end_with(|c| c == '/');
    let start = end.rfind_byte(b'/').map_or(0, |slash| slash + 1);
    end[start..].as_bstr()
}

/// Returns the name of the branch for a worktree at `place`. As in Git, a trailing slash of a path
/// with several components is part of the name.
fn base_name(place: &BStr) -> BString {
    let length = place.trim_end_with(|c| c == '/').len();
    let start = length - base_name_of(place).len();
    let rest = &place[start..];
    rest[..rest.len().min(length)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_named_after_directories() {
        for (place, branch) in [("a", "a"), ("../a", "a"), ("a/", "a"), ("../a/", "a/")] {
            assert_eq!(base_name(place.into()), branch, "{place}");
        }
    }
}
