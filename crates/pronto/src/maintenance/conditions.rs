//! Checks whether the state of a repository needs a task: Git's conditions for
//! `git maintenance run --auto`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_pack::midx::MultiIndex;
use pronto_pack::midx::chain;

use super::loose::{has_many_loose_objects, loose_in};
use super::packs::OwnPacks;
use super::repacking::automatic_repacking;
use super::{MaintenanceTask, Settings, settings};
use crate::expiry::ExpiryAge;
use crate::hooks::{self, HookCall};
use crate::refs::PackRefsOptions;
use crate::{Error, ErrorKind, Repository, Result, worktrees};

/// Whether a task is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskNeed {
    /// The task is not due.
    No,
    /// The task is due.
    Yes,
    /// The check would read more refs than the caller allows.
    Unknown,
}

impl From<bool> for TaskNeed {
    fn from(is_needed: bool) -> Self {
        if is_needed {
            TaskNeed::Yes
        } else {
            TaskNeed::No
        }
    }
}

/// The value of `maintenance.TASK.auto`, a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Never,
    Always,
    From(i64),
}

/// Returns whether the state of the repository needs `task`, like `git maintenance run --auto`. For
/// [`MaintenanceTask::Gc`] the hook `pre-auto-gc` has the final decision.
///
/// Costs at most a listing of the packs and, up to a limit, of the loose objects; for the
/// commit-graph, a lookup of each ref.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting has an invalid value, with `ErrorKind::Hook` if
/// the hook cannot be run, or with other kinds if refs cannot be read.
pub fn is_needed(
    repository: &Repository,
    task: MaintenanceTask,
    settings: &Settings,
) -> Result<bool> {
    let is_needed = need(repository, task, settings, usize::MAX)? == TaskNeed::Yes;
    Ok(is_needed && (task != MaintenanceTask::Gc || may_collect_garbage(repository)?))
}

/// Runs the hook `pre-auto-gc`, and returns whether the hook permits automatic garbage collection.
///
/// # Errors
/// Fails with `ErrorKind::Hook` if the hook cannot be started.
pub(super) fn may_collect_garbage(repository: &Repository) -> Result<bool> {
    let code = hooks::run(repository, "pre-auto-gc", &HookCall::default())?;
    Ok(code.is_none_or(|code| code == 0))
}

/// Does the same as [`is_needed`](is_needed), but does not run the hook and reads at most
/// `references` refs.
pub(super) fn need(
    repository: &Repository,
    task: MaintenanceTask,
    settings: &Settings,
    references: usize,
) -> Result<TaskNeed> {
    Ok(match task {
        MaintenanceTask::Prefetch => TaskNeed::No,
        MaintenanceTask::LooseObjects => has_loose_objects(repository)?.into(),
        MaintenanceTask::IncrementalRepack => has_new_packs(repository)?.into(),
        MaintenanceTask::GeometricRepack => breaks_progression(repository)?.into(),
        MaintenanceTask::Gc => has_garbage(repository, settings)?.into(),
        MaintenanceTask::CommitGraph => lacks_commit_graph(repository, references)?,
        MaintenanceTask::PackRefs => {
            let mut options = PackRefsOptions::all();
            options.auto = true;
            repository.should_pack_refs(&options)?.into()
        }
        MaintenanceTask::ReflogExpire => has_old_reflog(repository)?.into(),
        MaintenanceTask::WorktreePrune => has_gone_work_trees(repository, settings)?.into(),
        MaintenanceTask::RerereGc => has_resolutions(repository)?.into(),
    })
}

fn limit_of(repository: &Repository, task: MaintenanceTask, default: i64) -> Result<Limit> {
    let key = format!("maintenance.{}.auto", task.name());
    let limit = repository.config().i32(key)?.map_or(default, i64::from);
    Ok(match limit {
        0 => Limit::Never,
        ..0 => Limit::Always,
        limit => Limit::From(limit),
    })
}

/// Whether a negative `maintenance.TASK.auto` makes `task` due in every state of the repository.
pub(super) fn is_always_due(repository: &Repository, task: MaintenanceTask) -> Result<bool> {
    let has_limit = !matches!(
        task,
        MaintenanceTask::Prefetch | MaintenanceTask::Gc | MaintenanceTask::PackRefs
    );
    Ok(has_limit && limit_of(repository, task, 1)? == Limit::Always)
}

fn has_new_packs(repository: &Repository) -> Result<bool> {
    if !repository.config().bool_or("core.multipackindex", true)? {
        return Ok(false);
    }
    let limit = match limit_of(repository, MaintenanceTask::IncrementalRepack, 10)? {
        Limit::Never => return Ok(false),
        Limit::Always => return Ok(true),
        Limit::From(limit) => limit,
    };
    let store = repository.objects()?;
    let own = std::iter::once(store.path());
    let mut count = 0;
    for objects in own.chain(store.alternates().iter().map(|path| path.as_path())) {
        let known = packs_in_multi_index(repository, &objects.join("pack"));
        let packs = OwnPacks::in_objects(objects);
        let is_new = |stem: &std::ffi::OsString| {
            let name = Path::new(stem).with_extension("idx");
            name.to_str().is_none_or(|name| !known.contains(name))
        };
        count += packs.stems().filter(|stem| is_new(stem)).count() as i64;
    }
    Ok(count >= limit)
}

/// Returns the names of the pack indexes that the multi-pack-index of `directory`, or a chain of
/// them, covers.
fn packs_in_multi_index(repository: &Repository, directory: &Path) -> HashSet<String> {
    let kind = repository.object_hash();
    let single = vec![directory.join("multi-pack-index")];
    let files = match single[0].exists() {
        true => single,
        false => chain::files(directory, kind).map_or(Vec::new(), |(files, _)| files),
    };
    let access = repository.objects().map(|store| store.options().access);
    let mut names = HashSet::new();
    for file in files {
        // An unreadable multi-pack-index covers no pack.
        if let Ok(access) = access
            && let Ok(index) = MultiIndex::open(&file, kind, access)
        {
            names.extend(index.pack_names().iter().cloned());
        }
    }
    names
}

/// Returns the configured factor of a geometric repack
/// (`maintenance.geometric-repack.splitFactor`).
pub(super) fn split_factor(repository: &Repository) -> Result<u32> {
    let factor = repository
        .config()
        .i32("maintenance.geometric-repack.splitfactor")?;
    Ok(factor.map_or(2, |factor| u32::try_from(factor).unwrap_or(0)))
}

fn has_loose_objects(repository: &Repository) -> Result<bool> {
    let limit = match limit_of(repository, MaintenanceTask::LooseObjects, 100)? {
        Limit::Never => return Ok(false),
        Limit::Always => return Ok(true),
        Limit::From(limit) => limit,
    };
    let objects = repository.objects_dir();
    let mut count = 0;
    for byte in 0..=u8::MAX {
        count += loose_in(&objects, byte, repository.object_hash().len_in_hex());
        if count >= limit {
            return Ok(true);
        }
    }
    Ok(false)
}

fn breaks_progression(repository: &Repository) -> Result<bool> {
    let limit = match limit_of(repository, MaintenanceTask::GeometricRepack, 100)? {
        Limit::Never => return Ok(false),
        Limit::Always => return Ok(true),
        Limit::From(limit) => limit,
    };
    // The result does not depend on the order. This check is the cheaper one.
    if has_many_loose_objects(repository, limit) {
        return Ok(true);
    }
    let progression = OwnPacks::of(repository).progression(split_factor(repository)?)?;
    Ok(progression.split > 0)
}

fn has_garbage(repository: &Repository, settings: &Settings) -> Result<bool> {
    Ok(automatic_repacking(repository, settings).is_some())
}

/// Returns whether enough commits at the tips of refs are missing from the commit-graph. Examines
/// at most `references` refs; returns `Unknown` if there are more.
fn lacks_commit_graph(repository: &Repository, references: usize) -> Result<TaskNeed> {
    let limit = match limit_of(repository, MaintenanceTask::CommitGraph, 100)? {
        Limit::Never => return Ok(TaskNeed::No),
        Limit::Always => return Ok(TaskNeed::Yes),
        Limit::From(limit) => limit,
    };
    let graph = repository.commit_graph()?;
    let is_known = |id: &ObjectId| graph.is_some_and(|it| matches!(it.find(id), Ok(Some(_))));
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let mut looked_at = 0;
    let mut missing = 0;
    let mut need = TaskNeed::No;
    let mut buffer = Vec::new();
    repository.refs().for_each("refs/", |reference| {
        looked_at += 1;
        if looked_at > references {
            need = TaskNeed::Unknown;
            return Ok(ControlFlow::Break(()));
        }
        let id = reference.peeled.unwrap_or(reference.id);
        if is_known(&id) {
            return Ok(ControlFlow::Continue(()));
        }
        // Other commands report a broken ref.
        let Ok(Some(id)) = repository.peel_tags(id) else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if is_known(&id) || !seen.insert(id) {
                continue;
            }
            let Ok(links) = repository.commit_links(&id, &mut buffer) else {
                continue;
            };
            missing += 1;
            if missing >= limit {
                need = TaskNeed::Yes;
                return Ok(ControlFlow::Break(()));
            }
            stack.extend(links.parents);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(need)
}

/// Whether the reflog of `HEAD` has enough expired entries for the task.
fn has_old_reflog(repository: &Repository) -> Result<bool> {
    let limit = match limit_of(repository, MaintenanceTask::ReflogExpire, 100)? {
        Limit::Never => return Ok(false),
        Limit::Always => return Ok(true),
        Limit::From(limit) => limit,
    };
    let age = |key: &str, days: i64| -> Result<i64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs() as i64);
        match repository.config().string(key)? {
            Some(text) => settings::moment(text),
            None => Ok(now - days * 24 * 60 * 60),
        }
    };
    let total = age("gc.reflogexpire", 90)?;
    let unreachable = age("gc.reflogexpireunreachable", 30)?;
    let Some(log) = repository.refs().log("HEAD")? else {
        return Ok(false);
    };
    let mut count = 0;
    for line in log.oldest_first() {
        let is_something = !line.old.is_null() || !line.new.is_null();
        // The reachability of an entry would cost a walk. All entries count as unreachable here.
        if line.seconds < total || line.seconds < unreachable && is_something {
            count += 1;
        }
        if count >= limit {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_gone_work_trees(repository: &Repository, settings: &Settings) -> Result<bool> {
    let limit = match limit_of(repository, MaintenanceTask::WorktreePrune, 1)? {
        Limit::Never => return Ok(false),
        Limit::Always => return Ok(true),
        Limit::From(limit) => limit,
    };
    if !repository.common_dir().join("worktrees").exists() {
        return Ok(false);
    }
    let expiry = match settings::moment(settings.worktree_prune_expire.as_bstr())? {
        i64::MAX => ExpiryAge::Now,
        moment => ExpiryAge::Before(moment),
    };
    Ok(worktrees::prune(repository, expiry, true)?.len() as i64 >= limit)
}

fn has_resolutions(repository: &Repository) -> Result<bool> {
    Ok(match limit_of(repository, MaintenanceTask::RerereGc, 1)? {
        Limit::Never => false,
        Limit::Always => true,
        Limit::From(_) => {
            let entries = std::fs::read_dir(repository.common_dir().join("rr-cache"));
            entries.is_ok_and(|mut entries| entries.next().is_some())
        }
    })
}

/// Returns the error for a failed command. [`maintain`](super::maintain) reports the error and
/// continues.
pub(super) fn failed(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, what)
}
