//! Maintenance of a repository: its tasks, which of them are due, and how they run.
//!
//! A task is work that Git's commands do (`repack`, `pack-refs`, …), in Git's order. This module
//! knows which tasks the configuration selects ([`Repository::maintenance_tasks`]) and whether the
//! state of the repository needs one ([`Repository::needs_maintenance`]), and runs them one after
//! another under a lock ([`Repository::maintain`]). A [`Runner`] runs the commands, each in a
//! process of its own, so that one that fails or takes much memory harms neither the others nor the
//! caller.

mod automatic;
mod conditions;
mod gc;
mod log;
mod packs;
mod register;
mod run;
mod schedulers;
mod settings;

pub use automatic::Automatic;
pub use automatic::automatic;
pub use conditions::is_needed;
pub use gc::{Busy, GcLock, GcOptions, Repacking};
pub use gc::{
    gc_background, gc_foreground, has_loose_objects_left, lock_gc, plan_gc, writes_graph_in_gc,
};
pub use log::LogFile;
pub use log::{begin_gc_log, gc_log, remove_gc_log};
pub use register::Registration;
pub use register::{maintained_path, register, unregister};
pub use run::maintain;
pub use run::{Outcome, Run, Runner, Step};
pub use schedulers::schedules;
pub use schedulers::{Scheduler, Schedules};
pub use settings::Settings;

use bstr::BStr;

use crate::{Error, ErrorKind, Repository, Result};

/// A task of maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// Fetch from all remotes into `refs/prefetch/`.
    Prefetch,
    /// Remove loose objects that are packed, and pack those that are not.
    LooseObjects,
    /// Write a multi-pack-index, and put small packs together by it.
    IncrementalRepack,
    /// Put packs together until they form a geometric progression.
    GeometricRepack,
    /// All that `gc` does.
    Gc,
    /// Write the commit-graph.
    CommitGraph,
    /// Pack references.
    PackRefs,
    /// Remove old entries of reflogs.
    ReflogExpire,
    /// Remove the data of worktrees that no longer exist.
    WorktreePrune,
    /// Remove old recorded resolutions of conflicts.
    RerereGc,
}

/// How often scheduled maintenance runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frequency {
    /// Every week.
    Weekly,
    /// Every day.
    Daily,
    /// Every hour.
    Hourly,
}

/// What maintenance runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Requested by a user or a command.
    Manual,
    /// A scheduler does.
    Scheduled(Frequency),
}

impl Task {
    /// All tasks, in the order in which they run.
    pub const ALL: [Task; 10] = [
        Task::Prefetch,
        Task::LooseObjects,
        Task::IncrementalRepack,
        Task::GeometricRepack,
        Task::Gc,
        Task::CommitGraph,
        Task::PackRefs,
        Task::ReflogExpire,
        Task::WorktreePrune,
        Task::RerereGc,
    ];

    /// The name of the task.
    pub fn name(self) -> &'static str {
        match self {
            Task::Prefetch => "prefetch",
            Task::LooseObjects => "loose-objects",
            Task::IncrementalRepack => "incremental-repack",
            Task::GeometricRepack => "geometric-repack",
            Task::Gc => "gc",
            Task::CommitGraph => "commit-graph",
            Task::PackRefs => "pack-refs",
            Task::ReflogExpire => "reflog-expire",
            Task::WorktreePrune => "worktree-prune",
            Task::RerereGc => "rerere-gc",
        }
    }

    /// The task called `name`, in any case of letters.
    pub fn named(name: &BStr) -> Option<Self> {
        let is_called = |task: &Task| name.eq_ignore_ascii_case(task.name().as_bytes());
        Task::ALL.into_iter().find(is_called)
    }
}

impl Frequency {
    /// All frequencies, in the order in which they are registered with schedulers.
    pub const ALL: [Frequency; 3] = [Frequency::Hourly, Frequency::Daily, Frequency::Weekly];

    /// The name of the frequency.
    pub fn name(self) -> &'static str {
        match self {
            Frequency::Hourly => "hourly",
            Frequency::Daily => "daily",
            Frequency::Weekly => "weekly",
        }
    }

    /// The frequency called `name`, in any case of letters.
    pub fn named(name: &BStr) -> Option<Self> {
        let is_called =
            |frequency: &Frequency| name.eq_ignore_ascii_case(frequency.name().as_bytes());
        Frequency::ALL.into_iter().find(is_called)
    }
}

/// What a strategy says of one task.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    is_manual: bool,
    is_scheduled: bool,
    frequency: Option<Frequency>,
}

/// What `maintenance.strategy` can be, and what is in force without it.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    None,
    Gc,
    Incremental,
    Geometric,
}

impl Strategy {
    fn part(self, task: Task) -> Part {
        let both = |frequency| Part {
            is_manual: true,
            is_scheduled: true,
            frequency: Some(frequency),
        };
        let scheduled = |frequency| Part {
            is_manual: false,
            ..both(frequency)
        };
        match (self, task) {
            (Strategy::Gc, Task::Gc) => both(Frequency::Daily),
            (Strategy::Incremental, Task::CommitGraph | Task::Prefetch) => {
                scheduled(Frequency::Hourly)
            }
            (Strategy::Incremental, Task::IncrementalRepack | Task::LooseObjects) => {
                scheduled(Frequency::Daily)
            }
            (Strategy::Incremental, Task::PackRefs) => scheduled(Frequency::Weekly),
            (Strategy::Incremental, Task::Gc) => Part {
                is_manual: true,
                ..Part::default()
            },
            (Strategy::Geometric, Task::CommitGraph) => both(Frequency::Hourly),
            (Strategy::Geometric, Task::GeometricRepack | Task::PackRefs) => both(Frequency::Daily),
            (Strategy::Geometric, Task::RerereGc | Task::ReflogExpire | Task::WorktreePrune) => {
                both(Frequency::Weekly)
            }
            _ => Part::default(),
        }
    }

    /// The strategy called `name`. There is no way to ask for none.
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

/// Returns the tasks that the configuration selects for this occasion (`maintenance.strategy`,
/// `maintenance.TASK.enabled`, `maintenance.TASK.schedule`), in the order in which they run.
///
/// # Errors
/// A configured value is not of its type, or the strategy is unknown.
pub fn tasks(repository: &Repository, occasion: Occasion) -> Result<Vec<Task>> {
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
    for task in Task::ALL {
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
        for task in Task::ALL {
            let name = task.name().to_ascii_uppercase();
            assert_eq!(Task::named(name.as_str().into()), Some(task));
        }
        assert_eq!(Task::named("".into()), None);
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
