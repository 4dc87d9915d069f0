//! Maintenance that commands start automatically.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::conditions;
use super::conditions::Need;
use super::gc::is_pointless;
use super::log;
use super::{Occasion, Settings, Task};
use crate::{Repository, Result};

/// The number of refs that are read before the background process decides whether the commit-graph
/// is to be written.
const REFERENCES: usize = 2_000;

/// Where it is remembered which tasks did not help, below the common directory.
const TRIED: &str = "pronto-maintenance";

/// How maintenance is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// Whether in the background (`maintenance.autoDetach`, `gc.autoDetach`).
    pub detach: bool,
}

/// Returns whether a command that is about to end should start maintenance: automatic
/// maintenance is enabled (`maintenance.auto`, `gc.auto`), no other process runs it, it did not
/// just fail, and there is work to do.
///
/// Costs a listing of the packs and of the loose refs, a fraction of the loose objects, and a
/// lookup of up to 2,000 refs; no program is started.
///
/// # Errors
/// A configured value is not of its type, or refs cannot be read.
pub fn automatic(repository: &Repository) -> Result<Option<Automatic>> {
    let config = repository.config();
    let is_on = match config.bool("maintenance.auto")? {
        Some(is_on) => is_on,
        None => config.i32("gc.auto")?.is_none_or(|limit| limit > 0),
    };
    if !is_on {
        return Ok(None);
    }
    let settings = Settings::of(repository)?;
    let lock = repository.objects_dir().join("maintenance.lock");
    if pronto_io::lock_file::is_held(&lock)
        || log::gc_log(repository, settings.log_expires_before)?.is_some()
    {
        return Ok(None);
    }
    let mut is_needed = false;
    for task in super::tasks(repository, Occasion::Manual)? {
        if conditions::need(repository, task, &settings, REFERENCES)? != Need::No
            && !is_vain(repository, task, &settings)?
        {
            is_needed = true;
            break;
        }
    }
    if !is_needed {
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
fn is_vain(repository: &Repository, task: Task, settings: &Settings) -> Result<bool> {
    if was_tried(repository, task, settings) || is_pointless(task, repository.config())? {
        return Ok(true);
    }
    Ok(task == Task::CommitGraph && !repository.has_plain_history()?)
}

/// Whether `task` ran lately without changing that it is due.
pub(super) fn was_tried(repository: &Repository, task: Task, settings: &Settings) -> bool {
    let modified = std::fs::metadata(tried(repository, task)).and_then(|file| file.modified());
    let modified = modified
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let since = u64::try_from(settings.log_expires_before).unwrap_or(0);
    modified.is_some_and(|modified| modified >= Duration::from_secs(since))
}

/// Remembers those of the tasks that have run and are due still. One that is always due is not
/// remembered.
pub(super) fn remember_tasks(
    repository: &Repository,
    ran: &[Task],
    settings: &Settings,
) -> Result<()> {
    if ran.is_empty() {
        return Ok(());
    }
    // What this one knows of packs and the commit-graph is older than the tasks.
    let environment = repository.environment();
    let fresh = Repository::discover(environment.current_dir(), environment)?;
    let directory = repository.common_dir().join(TRIED);
    for &task in ran {
        let is_due = conditions::need(&fresh, task, settings, usize::MAX)? != Need::No;
        if is_due && !conditions::is_always_due(repository, task)? {
            // What cannot be remembered is tried again.
            let _ = std::fs::create_dir_all(&directory);
            let _ = std::fs::write(tried(repository, task), b"");
        } else {
            // One that is not there need not go.
            let _ = std::fs::remove_file(tried(repository, task));
        }
    }
    // It stays if it is not empty.
    let _ = std::fs::remove_dir(&directory);
    Ok(())
}

fn tried(repository: &Repository, task: Task) -> PathBuf {
    repository.common_dir().join(TRIED).join(task.name())
}
