//! Maintenance of a repository (`git maintenance`): its tasks, the conditions for them, and their
//! execution.
//!
//! A task is a job that Git's commands do (`repack`, `pack-refs`, …), in Git's order. This module
//! determines which tasks the configuration selects ([`tasks`]) and whether the state of the
//! repository needs a task ([`is_needed`]), and runs the tasks one after another under a lock
//! ([`maintain`]). A [`CommandRunner`] runs each command in its own process, so that a command that fails
//! or uses much memory harms neither the others nor the caller.

mod automatic;
mod conditions;
mod gc;
mod log;
mod loose;
mod packs;
mod register;
mod repacking;
mod run;
mod runner;
mod schedulers;
mod settings;

pub use automatic::{Automatic, automatic, configured};
pub use conditions::is_needed;
pub use gc::{Busy, GcLock, GcOptions, Repacking};
pub use gc::{
    gc_background, gc_foreground, has_loose_objects_left, lock_gc, plan_gc, writes_graph_in_gc,
};
pub use log::LogFile;
pub use log::{begin_gc_log, gc_log, remove_gc_log};
pub use register::MaintenanceList;
pub use register::{maintained_path, register, unregister};
pub use run::maintain;
pub use run::{Outcome, RunOptions};
pub use runner::{CommandCall, CommandRunner};
pub use schedulers::schedules;
pub use schedulers::{Scheduler, Schedules};
pub use settings::Settings;

use bstr::BStr;

use crate::{Error, ErrorKind, Repository, Result};

/// A task of `git maintenance run --task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MaintenanceTask {
    /// Fetch from all remotes into `refs/prefetch/` (`prefetch`).
    Prefetch,
    /// Delete loose objects that are packed, and pack the other loose objects (`loose-objects`).
    LooseObjects,
    /// Write a multi-pack-index and use it to repack small packs (`incremental-repack`).
    IncrementalRepack,
    /// Merge packs until their sizes form a geometric progression (`geometric-repack`).
    GeometricRepack,
    /// Run `git gc` (`gc`).
    Gc,
    /// Write the commit-graph (`commit-graph`).
    CommitGraph,
    /// Pack refs (`pack-refs`).
    PackRefs,
    /// Expire reflog entries (`reflog-expire`).
    ReflogExpire,
    /// Prune the administrative files of deleted worktrees (`worktree-prune`).
    WorktreePrune,
    /// Prune old recorded conflict resolutions (`rerere-gc`).
    RerereGc,
}

/// The frequency of scheduled maintenance (`--schedule`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frequency {
    /// Weekly.
    Weekly,
    /// Daily.
    Daily,
    /// Hourly.
    Hourly,
}

/// The event that starts maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A user or a command starts maintenance.
    Manual,
    /// A scheduler starts maintenance (`--schedule`).
    Scheduled(Frequency),
}

impl MaintenanceTask {
    /// All tasks, in the order in which they run.
    pub const ALL: [MaintenanceTask; 10] = [
        MaintenanceTask::Prefetch,
        MaintenanceTask::LooseObjects,
        MaintenanceTask::IncrementalRepack,
        MaintenanceTask::GeometricRepack,
        MaintenanceTask::Gc,
        MaintenanceTask::CommitGraph,
        MaintenanceTask::PackRefs,
        MaintenanceTask::ReflogExpire,
        MaintenanceTask::WorktreePrune,
        MaintenanceTask::RerereGc,
    ];

    /// Returns the name of the task.
    pub fn name(self) -> &'static str {
        match self {
            MaintenanceTask::Prefetch => "prefetch",
            MaintenanceTask::LooseObjects => "loose-objects",
            MaintenanceTask::IncrementalRepack => "incremental-repack",
            MaintenanceTask::GeometricRepack => "geometric-repack",
            MaintenanceTask::Gc => "gc",
            MaintenanceTask::CommitGraph => "commit-graph",
            MaintenanceTask::PackRefs => "pack-refs",
            MaintenanceTask::ReflogExpire => "reflog-expire",
            MaintenanceTask::WorktreePrune => "worktree-prune",
            MaintenanceTask::RerereGc => "rerere-gc",
        }
    }

    /// Returns the task called `name`, ignoring case.
    pub fn named(name: &BStr) -> Option<Self> {
        let is_called = |task: &MaintenanceTask| name.eq_ignore_ascii_case(task.name().as_bytes());
        MaintenanceTask::ALL.into_iter().find(is_called)
    }
}

impl Frequency {
    /// All frequencies, in the order in which they are registered with schedulers.
    pub const ALL: [Frequency; 3] = [Frequency::Hourly, Frequency::Daily, Frequency::Weekly];

    /// Returns the name of the frequency.
    pub fn name(self) -> &'static str {
        match self {
            Frequency::Hourly => "hourly",
            Frequency::Daily => "daily",
            Frequency::Weekly => "weekly",
        }
    }

    /// Returns the frequency called `name`, ignoring case.
    pub fn named(name: &BStr) -> Option<Self> {
        let is_called =
            |frequency: &Frequency| name.eq_ignore_ascii_case(frequency.name().as_bytes());
        Frequency::ALL.into_iter().find(is_called)
    }
}

/// The settings of a strategy for one task.
#[derive(Clone, Copy, Debug, Default)]
struct TaskSchedule {
    is_manual: bool,
    is_scheduled: bool,
    frequency: Option<Frequency>,
}

/// A value of `maintenance.strategy`, or the default.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    None,
    Gc,
    Incremental,
    Geometric,
}

impl Strategy {
    fn part(self, task: MaintenanceTask) -> TaskSchedule {
        let both = |frequency| TaskSchedule {
            is_manual: true,
            is_scheduled: true,
            frequency: Some(frequency),
        };
        let scheduled = |frequency| TaskSchedule {
            is_manual: false,
            ..both(frequency)
        };
        match (self, task) {
            (Strategy::Gc, MaintenanceTask::Gc) => both(Frequency::Daily),
            (Strategy::Incremental, MaintenanceTask::CommitGraph | MaintenanceTask::Prefetch) => {
                scheduled(Frequency::Hourly)
            }
            (
                Strategy::Incremental,
                MaintenanceTask::IncrementalRepack | MaintenanceTask::LooseObjects,
            ) => scheduled(Frequency::Daily),
            (Strategy::Incremental, MaintenanceTask::PackRefs) => scheduled(Frequency::Weekly),
            (Strategy::Incremental, MaintenanceTask::Gc) => TaskSchedule {
                is_manual: true,
                ..TaskSchedule::default()
            },
            (Strategy::Geometric, MaintenanceTask::CommitGraph) => both(Frequency::Hourly),
            (Strategy::Geometric, MaintenanceTask::GeometricRepack | MaintenanceTask::PackRefs) => {
                both(Frequency::Daily)
            }
            (
                Strategy::Geometric,
                MaintenanceTask::RerereGc
                | MaintenanceTask::ReflogExpire
                | MaintenanceTask::WorktreePrune,
            ) => both(Frequency::Weekly),
            _ => TaskSchedule::default(),
        }
    }

    /// Returns the strategy called `name`. The strategy `none` cannot be selected by name.
    fn named(name: &BStr) -> Option<Self> {
        let known = [
            ("incremental", Strategy::Incremental),
            ("gc", Strategy::Gc),
            ("geometric", Strategy::Geometric),
        ];
        let is_called = |(known, _): &(&str, Strategy)| name.eq_ignore_ascii_case(known.as_bytes());
        known.into_iter().find(is_called).map(|(_, it)| it)
    }
}

/// Returns the tasks that the configuration selects for `occasion` (`maintenance.strategy`,
/// `maintenance.TASK.enabled`, `maintenance.TASK.schedule`), in the order in which they run.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a setting has an invalid value or the strategy is
/// unknown.
pub fn tasks(repository: &Repository, occasion: Occasion) -> Result<Vec<MaintenanceTask>> {
    let config = repository.config();
    let strategy = match config.string("maintenance.strategy")? {
        Some(name) => Strategy::named(name).ok_or_else(|| {
            let message = format!("unknown maintenance strategy: '{name}'");
            Error::new(ErrorKind::ConfigValue, message)
        })?,
        None if occasion == Occasion::Manual => Strategy::Geometric,
        None => Strategy::None,
    };
    let mut tasks = Vec::new();
    for task in MaintenanceTask::ALL {
        let part = strategy.part(task);
        let key = |variable: &str| format!("maintenance.{}.{variable}", task.name());
        let by_strategy = match occasion {
            Occasion::Manual => part.is_manual,
            Occasion::Scheduled(_) => part.is_scheduled,
        };
        if !config.bool(key("enabled"))?.unwrap_or(by_strategy) {
            continue;
        }
        if let Occasion::Scheduled(wanted) = occasion {
            let frequency = match config.string(key("schedule"))? {
                Some(name) => Frequency::named(name),
                None => part.frequency,
            };
            if frequency.is_none_or(|frequency| frequency < wanted) {
                continue;
            }
        }
        tasks.push(task);
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for task in MaintenanceTask::ALL {
            let name = task.name().to_ascii_uppercase();
            assert_eq!(MaintenanceTask::named(name.as_str().into()), Some(task));
        }
        assert_eq!(MaintenanceTask::named("".into()), None);
        assert_eq!(Frequency::named("Daily".into()), Some(Frequency::Daily));
        assert_eq!(Frequency::named("yearly".into()), None);
        assert!(Strategy::named("none".into()).is_none());
        assert!(Strategy::named("GC".into()).is_some());
    }

    #[test]
    fn scheduled_tasks_are_those_that_are_due_at_least_so_often() {
        assert!(Frequency::Weekly < Frequency::Daily && Frequency::Daily < Frequency::Hourly);
    }
}
