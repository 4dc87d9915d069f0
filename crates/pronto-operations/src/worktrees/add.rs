//! Creating worktrees.
//!
//! Names are resolved first ([`plan`]), so that a front end can show what
//! will be created. Then the worktree is created ([`add`](add())).

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
use super::locks::Mark;
use super::refused;
use super::relocate;
use crate::refs::name;
use crate::revision::Want;
use crate::support::{self, Operation};
use crate::switch::{self, NewBranch, Point, Tracking, UpstreamSetup, invalid_name};
use crate::{Error, ErrorKind, Repository, Result, reset};
use start::Start;
use target::Target;

const UPSTREAM_ADVICE: &str = "\nIf you are planning on basing your work on an upstream\n\
    branch that already exists at the remote, you may need to\n\
    run \"git fetch\" to retrieve it.\n\n\
    If you are planning to push out a new local branch that\n\
    will track its remote counterpart, you may want to use\n\
    \"git push -u\" to set the upstream config as you push.\n\
    Disable this message with \"git config advice.setUpstreamFailure false\"";

/// Options for a new worktree.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AddOptions {
    /// The path, as the user wrote it.
    pub place: BString,
    /// The commit to check out, as the user wrote it.
    pub commit: Option<BString>,
    /// On which branch.
    pub branching: Branching,
    /// The upstream of a new branch; `None` if unspecified.
    pub tracking: Option<Tracking>,
    /// Take a branch of a remote for one that is not there (`worktree.guessRemote`).
    pub guess_remote: bool,
    /// The number of checks to override: with one, a branch that another worktree has; with two,
    /// also the path of a locked worktree.
    pub force: u8,
    /// Write no files.
    pub no_checkout: bool,
    /// The reason with which the worktree stays locked.
    pub lock: Option<BString>,
    /// Whether messages about upstreams are omitted.
    pub quiet: bool,
    /// The ignored files of this worktree that the new one gets, too.
    pub carry: Carry,
    /// Whether to copy the existing repositories of submodules, so that `submodule update` in the new
    /// worktree contacts no remote for their objects.
    pub share_submodules: bool,
}

/// The branch of a new worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Branching {
    /// The one that was named; else one with the name of the directory, new if need be.
    #[default]
    Guess,
    /// A new one.
    New(BString),
    /// A new one, or one that is moved.
    Force(BString),
    /// None.
    Detach,
    /// A new one without commits, by its name or by that of the directory.
    Orphan(Option<BString>),
}

/// A worktree to be created, with all names resolved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Addition {
    options: AddOptions,
    /// The branch to be made, and whether one may be moved.
    new_branch: Option<(BString, bool)>,
    /// The start of the branch, or the commit to check out.
    start: BString,
    orphan: bool,
    /// The step that is about to happen.
    pub preparation: Preparation,
}

/// The step that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// A branch is made.
    NewBranch(BString),
    /// A branch is moved, which was at this commit, its id short.
    Reset(BString, String),
    /// A branch is checked out.
    Branch(BString),
    /// A commit, its id short.
    Detached(String),
}

/// The result of creating a worktree.
#[derive(Debug)]
#[non_exhaustive]
pub enum AddOutcome {
    /// The branch could not be made: nothing was done.
    NoBranch(Error),
    /// The worktree is made, unless files could not be written.
    Added(Box<Added>),
}

/// The new worktree.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Added {
    /// The upstream of the new branch.
    pub set_up: Option<UpstreamSetup>,
    /// The results for files, unless no files were requested.
    pub reset: Option<reset::Outcome>,
    /// The exit code of the hook `post-checkout`, if it ran.
    pub hook: Option<i32>,
    /// Whether there are submodules, which were asked for and have no files yet.
    pub has_submodules: bool,
}

impl Added {
    /// Returns whether writing the files failed. In that case there is no worktree.
    pub fn has_failed(&self) -> bool {
        match &self.reset {
            None => false,
            Some(reset::Outcome::Done(report)) => !report.failed.is_empty(),
            Some(_) => true,
        }
    }
}

/// Settles what `options` mean. Nothing is changed.
///
/// # Errors
/// A branch is checked out elsewhere, a name means nothing, or
/// [`Unsupported`](ErrorKind::Unsupported).
pub fn plan(repository: &Repository, options: AddOptions) -> Result<Addition> {
    support::require(Operation::Worktrees, repository)?;
    switch::check_tracking(repository, options.tracking.unwrap_or_default())?;
    let spoken = super::spoken_argument(repository, options.place.as_bstr());
    let Start {
        start,
        new_branch,
        orphan,
    } = start::choose(repository, &options, spoken.as_bstr())?;
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
    options: &AddOptions,
    new_branch: Option<&(BString, bool)>,
    start: &BStr,
) -> Result<Preparation> {
    if let Some((name, force)) = new_branch {
        let old = match force {
            true => commit_named(repository, name.as_bstr())?,
            false => None,
        };
        return Ok(match old {
            Some(old) => Preparation::Reset(name.clone(), repository.abbreviate(&old)?),
            None => Preparation::NewBranch(name.clone()),
        });
    }
    if options.branching != Branching::Detach && existing_branch(repository, start)?.is_some() {
        return Ok(Preparation::Branch(start.to_owned()));
    }
    match commit_named(repository, start)? {
        Some(commit) => Ok(Preparation::Detached(repository.abbreviate(&commit)?)),
        None => Err(invalid_reference(start)),
    }
}

/// Creates a worktree: its branch, its data in the repository, its files, and its index. If it
/// fails or is interrupted, everything but the branch is removed again. If the process is
/// killed, [`prune`](crate::worktrees::prune) removes the data later.
///
/// # Errors
/// The place is taken, a branch cannot be created or is checked out elsewhere, or files of the
/// repository cannot be written. Files that cannot be written are no error: see
/// [`Added::has_failed`].
pub fn add(repository: &Repository, addition: &Addition, watch: &Watch<'_>) -> Result<AddOutcome> {
    let options = &addition.options;
    carry::check_carry(repository, &options.carry)?;
    let mut added = Added::default();
    let mut checked_out = addition.start.clone();
    match &addition.new_branch {
        Some((name, _)) if addition.orphan => checked_out = name.clone(),
        Some((name, force)) => {
            match make_branch(repository, name, *force, addition) {
                Ok(set_up) => added.set_up = set_up,
                Err(error) => return Ok(AddOutcome::NoBranch(error)),
            }
            checked_out = name.clone();
        }
        None if options.tracking.is_some() => {
            let message = "--[no-]track can only be used if a new branch is created";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        None => {}
    }
    let spoken = super::spoken_argument(repository, options.place.as_bstr());
    let place = super::place_of(repository, options.place.as_bstr());
    let all = repository.work_trees()?;
    relocate::check_candidate(
        repository,
        spoken.as_bstr(),
        &place,
        &all,
        options.force,
        "add",
    )?;
    let target = target(repository, addition, checked_out.as_bstr())?;
    let (own_dir, guard) = make::make_own_dir(repository, spoken.as_bstr())?;
    let mark = Mark::set(&own_dir)?;
    let (inside, place_guard) = make::open_new(repository, &place, &own_dir)?;
    make::make_refs_dir(&own_dir)?;
    target.write(&inside)?;
    if !repository.refs().wants_log(BStr::new("HEAD")) {
        // The repository in which Git runs decides here, and the worktree later.
        let _ = std::fs::remove_file(inside.git_path("logs/HEAD"));
    }
    make::connect(&place, &own_dir)?;
    if let (Target::Commit(..) | Target::Branch(..), false) = (&target, options.no_checkout) {
        added.reset = Some(fill(&inside, watch)?);
        collect_remarks(repository, &inside);
        if added.has_failed() {
            return Ok(AddOutcome::Added(Box::new(added)));
        }
        carry::carry(repository, &options.carry, &inside, watch)?;
        if options.share_submodules {
            added.has_submodules = modules::share_submodules(repository, &inside, watch)?;
        }
    }
    if let (Target::Unborn(_), false) = (&target, options.no_checkout) {
        // There are no files, but an index.
        fill(&inside, watch)?;
    }
    place_guard.keep();
    guard.keep();
    mark.clear(options.lock.as_ref().map(|reason| reason.as_bstr()))?;
    if let (Some(commit), true) = (target.commit(), added.reset.is_some()) {
        added.hook = make::run_hook_there(repository, &place, commit)?;
    }
    Ok(AddOutcome::Added(Box::new(added)))
}

fn collect_remarks(repository: &Repository, inside: &Repository) {
    for notice in inside.take_notices() {
        repository.notify(notice);
    }
}

/// The full name of the branch that `name` means, if there is one.
fn existing_branch(repository: &Repository, name: &BStr) -> Result<Option<BString>> {
    let full = branch_called(repository, name)?;
    match full {
        Some(full) if repository.refs().resolve(&full)?.is_some() => Ok(Some(full)),
        _ => Ok(None),
    }
}

/// The full name of a branch called `name`, if that can be a name.
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
    match repository.try_resolve(name, Want::Committish)? {
        Some(id) => repository.peel_to(id, Kind::Commit),
        None => Ok(None),
    }
}

/// Refuses a name for a branch without commits.
fn check_unborn(repository: &Repository, name: &BStr) -> Result<()> {
    match branch_called(repository, name)? {
        None => Err(invalid_name(repository, name, ErrorKind::Refused)?),
        Some(full) if repository.refs().resolve(&full)?.is_some() => {
            Err(refused(format!("a branch named '{name}' already exists")))
        }
        Some(_) => Ok(()),
    }
}

/// Makes the branch `name`, as `git branch` does.
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
    let Some(id) = repository.try_resolve(start, Want::Anything)? else {
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
fn target(repository: &Repository, addition: &Addition, name: &BStr) -> Result<Target> {
    if addition.orphan {
        let full = branch_called(repository, name)?;
        return full
            .map(Target::Unborn)
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
        Some(full) => Target::Branch(full, commit),
        None => Target::Commit(commit),
    })
}

/// Writes all files.
fn fill(inside: &Repository, watch: &Watch<'_>) -> Result<reset::Outcome> {
    crate::remote::fetch_on_demand(inside, watch.interrupt())?;
    let options = reset::Options {
        to: reset::target(inside, "HEAD".into(), false)?,
        mode: reset::Mode::Hard,
        pathspec: crate::status::Pathspec::default(),
        intent_to_add: false,
        refresh: false,
    };
    reset::reset(inside, &options, watch)
}

fn invalid_reference(name: &BStr) -> Error {
    Error::new(
        ErrorKind::UnknownRevision,
        format!("invalid reference: {name}"),
    )
}

/// The last component of a path, slashes at its end left out.
fn base_name_of(place: &BStr) -> &BStr {
    let end = place.trim_end_with(|c| c == '/');
    let start = end.rfind_byte(b'/').map_or(0, |slash| slash + 1);
    end[start..].as_bstr()
}

/// Returns the name of the branch that is created for a worktree at `place`. As in Git, a slash at
/// the end of a path with several components is part of it.
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
