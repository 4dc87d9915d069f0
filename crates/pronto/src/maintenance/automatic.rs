//! Automatic maintenance, which commands start at their end (`git maintenance run --auto`).

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::conditions;
use super::conditions::TaskNeed;
use super::gc::is_pointless;
use super::log;
use super::{MaintenanceTask, Occasion, Settings};
use crate::{Repository, Result};

/// The number of refs that are read to decide whether the commit-graph is due. With more refs, the
/// background process decides.
const REFERENCES: usize = 2_000;

/// The directory below the common directory that records the tasks that had no effect.
const TRIED: &str = "pronto-maintenance";

/// The mode in which automatic maintenance starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// Run in the background (`maintenance.autoDetach`, `gc.autoDetach`).
    pub detach: bool,
}

/// Decides whether a command that is about to end should start maintenance. This is the case if
/// automatic maintenance is enabled (`maintenance.auto`, `gc.auto`), no other process runs it, the
/// last run did not fail recently, and a task is due. Returns `None` if not.
///
/// Costs a listing of the packs and of the loose refs, a listing of a fraction of the loose
/// objects, and a lookup of up to 2,000 refs. Starts no program.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting has an invalid value, or with other kinds if
/// refs cannot be read.
pub fn automatic(repository: &Repository) -> Result<Option<Automatic>> {
    let Some(configured) = configured(repository)? else {
        return Ok(None);
    };
    let settings = Settings::of(repository)?;
    let lock = repository.objects_dir().join("maintenance.lock");
    if pronto_io::lock_file::is_held(&lock)
        || log::gc_log(repository, settings.log_expires_before)?.is_some()
    {
        return Ok(None);
    }
    let mut is_needed = false;
    for task in super::tasks(repository, Occasion::Manual)? {
        if conditions::need(repository, task, &settings, REFERENCES)? != TaskNeed::No
            && !is_vain(repository, task, &settings)?
        {
            is_needed = true;
            break;
        }
    }
    Ok(is_needed.then_some(configured))
}

/// Returns the configured mode of automatic maintenance, regardless of whether a task is due;
/// `None` if automatic maintenance is disabled.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting has an invalid value.
pub fn configured(repository: &Repository) -> Result<Option<Automatic>> {
    let config = repository.config();
    let is_on = match config.bool("maintenance.auto")? {
        Some(is_on) => is_on,
        None => config.i32("gc.auto")?.is_none_or(|limit| limit > 0),
    };
    if !is_on {
        return Ok(None);
    }
    let detach = match config.bool("maintenance.autodetach")? {
        Some(detach) => Some(detach),
        None => config.bool("gc.autodetach")?,
    };
    let by_default = || (repository.environment()).boolean("GIT_TEST_MAINT_AUTO_DETACH", true);
    let detach = detach.map_or_else(by_default, Ok)?;
    Ok(Some(Automatic { detach }))
}

/// Whether `task` would run without an effect.
fn is_vain(repository: &Repository, task: MaintenanceTask, settings: &Settings) -> Result<bool> {
    if was_tried(repository, task, settings) || is_pointless(task, repository.config())? {
        return Ok(true);
    }
    Ok(task == MaintenanceTask::CommitGraph && !repository.has_plain_history()?)
}

/// Whether `task` ran recently and is still due.
pub(super) fn was_tried(
    repository: &Repository,
    task: MaintenanceTask,
    settings: &Settings,
) -> bool {
    let modified = std::fs::metadata(tried(repository, task)).and_then(|file| file.modified());
    let modified = modified
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let since = u64::try_from(settings.log_expires_before).unwrap_or(0);
    modified.is_some_and(|modified| modified >= Duration::from_secs(since))
}

/// Records the tasks among `ran` that are still due. A task that the configuration makes always due
/// is not recorded.
pub(super) fn remember_tasks(
    repository: &Repository,
    ran: &[MaintenanceTask],
    settings: &Settings,
) -> Result<()> {
    if ran.is_empty() {
        return Ok(());
    }
    // The packs and the commit-graph that `repository` has loaded are older than the tasks.
    let environment = repository.environment();
    let fresh = Repository::discover(environment.current_dir(), environment)?;
    let directory = repository.common_dir().join(TRIED);
    for &task in ran {
        let is_due = conditions::need(&fresh, task, settings, usize::MAX)? != TaskNeed::No;
        if is_due && !conditions::is_always_due(repository, task)? {
            // A task that cannot be recorded is only tried again.
            let _ = std::fs::create_dir_all(&directory);
            let _ = std::fs::write(tried(repository, task), b"");
        } else {
            // A missing file is no error.
            let _ = std::fs::remove_file(tried(repository, task));
        }
    }
    // Removing the directory fails if it is not empty.
    let _ = std::fs::remove_dir(&directory);
    Ok(())
}

fn tried(repository: &Repository, task: MaintenanceTask) -> PathBuf {
    repository.common_dir().join(TRIED).join(task.name())
}
