//! Finds the submodules that a push or a fetch of their superproject affects
//! (`--recurse-submodules`).
//!
//! A commit of the superproject is useless to others if they cannot fetch the submodule commit that
//! it records. [`unpushed`] finds the submodules whose recorded commits are on no remote yet. Costs
//! a walk over the new commits, a comparison of each commit's tree with those of its parents, and
//! two walks in each changed submodule.

mod changed;
mod fetching;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;

use crate::environment::variables_of_repository;
use crate::gitmodules::Gitmodules;
use crate::push::{PushRemote, PushSpec, names_one_ref};
use crate::revision::RevisionParser;
use crate::walk::{CommitWalk, WalkOptions, WalkStart};
use crate::{Error, ErrorKind, Repository, Result, path};

pub use fetching::{FetchRecursion, FetchStep, FetchTask, Fetching};

/// The submodules that have commits to push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpushed {
    /// The paths of the submodules, sorted.
    pub paths: Vec<BString>,
    /// The submodules that were skipped because their path collides with a name.
    pub collisions: Vec<NameCollision>,
}

/// A submodule that has no name in `.gitmodules`, and whose path is the name of another submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameCollision {
    /// The commit of the superproject that records the submodule.
    pub commit: ObjectId,
    /// The path of the submodule.
    pub path: BString,
}

impl fmt::Display for NameCollision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NameCollision { commit, path } = self;
        write!(
            f,
            "Submodule in commit {commit} at path: '{path}' collides with a submodule named the same. \
             Skipping it."
        )
    }
}

/// Finds the submodules that must be pushed: commits that are new to `remote` record submodule
/// commits that no remote of the submodule has. `tips` are the new values of the refs of `remote`.
/// Commits that are reachable from the remote-tracking refs of `remote` are not new.
///
/// As in Git, a submodule is skipped if it is not checked out, if it lacks a recorded commit, if a
/// recorded commit is not reachable from its refs, or if it has no remote-tracking refs.
///
/// # Errors
/// - [`ErrorKind::Object`] if an object cannot be read, or if a recorded submodule object is not a
///   commit.
/// - [`ErrorKind::Hostile`] if the path of a submodule contains a symbolic link.
/// - `ErrorKind::Interrupted` if the operation is interrupted.
pub fn unpushed(
    repository: &Repository,
    tips: &[ObjectId],
    remote: &BStr,
    watch: &Watch<'_>,
) -> Result<Unpushed> {
    let top = repository.require_work_tree()?;
    let changed = changed::changed(repository, tips, remote, watch)?;
    let current = Gitmodules::read(top);
    let (names, mut paths) = (current.names(), BTreeSet::new());
    for (name, recorded) in &changed.modules {
        let place = match names.contains(&name.as_bstr()) {
            true => current.value(name.as_bstr(), "path"),
            false => Some(name.as_bstr()).filter(|name| is_populated(repository, name)),
        };
        let Some(place) = place else { continue };
        let Some(module) = open(repository, place)? else {
            continue;
        };
        if needs_pushing(&module, place, &recorded.commits, watch)? {
            paths.insert(place.to_owned());
        }
    }
    Ok(Unpushed {
        paths: paths.into_iter().collect(),
        collisions: changed.collisions,
    })
}

/// Opens the repository of the submodule that is checked out at `path` of the worktree. Returns
/// `None` if there is no repository.
///
/// # Errors
/// Fails with [`ErrorKind::Hostile`] if `path` contains a symbolic link, and with other kinds if
/// the repository cannot be opened.
pub fn open(repository: &Repository, path: &BStr) -> Result<Option<Repository>> {
    let top = repository.require_work_tree()?;
    let relative = path::borrow(path);
    let parts = relative.components();
    if path.is_empty() || parts.clone().any(|part| !is_plain(part)) {
        return Ok(None);
    }
    let mut place = top.to_owned();
    for part in parts {
        place.push(part);
        if place.is_symlink() {
            let shown = Path::new(&part).display();
            let message =
                format!("expected '{shown}' in submodule path '{path}' not to be a symbolic link");
            return Err(Error::new(ErrorKind::Hostile, message));
        }
    }
    if !is_populated(repository, path) {
        return Ok(None);
    }
    open_at(repository, &place, &place.join(".git")).map(Some)
}

/// Opens the git directory `git` of a submodule, with `place` as current directory.
fn open_at(repository: &Repository, place: &Path, git: &Path) -> Result<Repository> {
    let mut environment = repository.environment().clone();
    for variable in variables_of_repository() {
        environment.remove(variable);
    }
    environment.set_current_dir(place);
    Repository::open(git, &environment)
}

/// Checks that the remote and the refspecs of a recursive push are valid in the submodule `module`:
/// the remote is configured, each refspec for a single ref names exactly one ref, and a refspec
/// `HEAD` is used only if `HEAD` of the submodule is on the branch `head` of the superproject.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] and Git's message if the remote or a refspec is not valid, and
/// with other kinds if the refs cannot be read.
pub fn check_push(
    module: &Repository,
    head: Option<&BStr>,
    remote: &BStr,
    specs: &[PushSpec],
) -> Result<()> {
    let refuse = |message: String| Err(Error::new(ErrorKind::Refused, message));
    if !PushRemote::find(module, remote)?.is_named() {
        return refuse(format!("remote '{remote}' not configured"));
    }
    let own = module.refs().head()?;
    for spec in specs {
        let source = spec.source.as_bstr();
        let is_general = spec.is_pattern() || spec.matching || spec.negative;
        if is_general || names_one_ref(module, source)? {
            continue;
        }
        if source != "HEAD" {
            return refuse(format!("src refspec '{source}' must name a ref"));
        }
        if head.is_none() || own.name() != head {
            let message = "HEAD does not match the named branch in the superproject";
            return refuse(message.into());
        }
    }
    Ok(())
}

/// Whether the repository has remote-tracking refs.
///
/// # Errors
/// Fails if the refs cannot be read.
pub fn has_remote_refs(module: &Repository) -> Result<bool> {
    let mut has_any = false;
    module.refs().for_each("refs/remotes/", |_| {
        has_any = true;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(has_any)
}

/// Whether all `commits` are reachable from refs of `module`, but not all from its remote-tracking
/// refs.
fn needs_pushing(
    module: &Repository,
    path: &BStr,
    commits: &BTreeSet<ObjectId>,
    watch: &Watch<'_>,
) -> Result<bool> {
    let listed: Vec<ObjectId> = commits.iter().copied().collect();
    Ok(has_commits(module, path, commits, watch)?
        && has_remote_refs(module)?
        && leads_outside(module, &listed, "--remotes", watch)?)
}

/// Whether all `commits` exist and are reachable from refs of `module`.
fn has_commits(
    module: &Repository,
    path: &BStr,
    commits: &BTreeSet<ObjectId>,
    watch: &Watch<'_>,
) -> Result<bool> {
    let mut has_all = true;
    for id in commits {
        match module.kind_of(*id)? {
            Some(ObjectKind::Commit) => {}
            None => has_all = false,
            Some(kind) => {
                let message = format!("submodule entry '{path}' ({id}) is a {kind}, not a commit");
                return Err(Error::new(ErrorKind::Object, message));
            }
        }
    }
    let commits: Vec<ObjectId> = commits.iter().copied().collect();
    Ok(has_all && !leads_outside(module, &commits, "--all", watch)?)
}

/// Whether a commit reachable from `commits` is not reachable from the refs of `selection`.
fn leads_outside(
    module: &Repository,
    commits: &[ObjectId],
    selection: &str,
    watch: &Watch<'_>,
) -> Result<bool> {
    let mut walk = walk(module, commits, selection.into())?;
    Ok(walk.next(watch)?.is_some())
}

/// Starts a walk from `tips` that excludes commits reachable from the refs of `selection`, an
/// option of `git rev-list`.
fn walk<'a>(
    repository: &'a Repository,
    tips: &[ObjectId],
    selection: &BStr,
) -> Result<CommitWalk<'a>> {
    let mut parser = RevisionParser::new(repository);
    parser.option("--not".into())?;
    parser.option(selection)?;
    let known = parser.into_set().ids(true);
    walk_beyond(repository, tips, &known)
}

/// Starts a walk from `tips` that excludes commits reachable from `known`.
fn walk_beyond<'a>(
    repository: &'a Repository,
    tips: &[ObjectId],
    known: &[ObjectId],
) -> Result<CommitWalk<'a>> {
    let mut starts = Vec::new();
    for (ids, is_excluded) in [(tips, false), (known, true)] {
        for id in ids {
            let id = repository.peel_to(*id, ObjectKind::Commit)?;
            starts.extend(id.map(|id| WalkStart {
                id,
                is_excluded,
                is_left: false,
            }));
        }
    }
    CommitWalk::new(repository, &starts, WalkOptions::default())
}

/// Whether the submodule at `path` of the worktree is populated, that is, contains a repository.
fn is_populated(repository: &Repository, path: &BStr) -> bool {
    let relative = path::borrow(path);
    let Some(top) = repository.work_tree() else {
        return false;
    };
    let (git, environment) = (top.join(relative).join(".git"), repository.environment());
    let found = Repository::resolve_git_dir(git.as_os_str().as_bytes().into(), environment);
    relative.components().all(is_plain) && found.is_ok_and(|found| found.is_some())
}

fn is_plain(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}
