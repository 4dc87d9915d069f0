//! Runs maintenance tasks one after another.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use super::automatic;
use super::conditions;
use super::conditions::failed;
use super::gc;
use super::gc::is_pointless;
use super::packs::OwnPacks;
use super::repacking::repack_all;
use super::runner::{CommandCall, CommandRunner};
use super::{MaintenanceTask, Settings};
use crate::lock::Lock;
use crate::remote::Remote;
use crate::{ErrorKind, Repository, Result};
use pronto_storage::pack_objects::loose_objects;

/// Options of `git maintenance run`.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[non_exhaustive]
pub struct RunOptions {
    /// The tasks to run, in this order (`--task`).
    pub tasks: Vec<MaintenanceTask>,
    /// Run a task only if the state of the repository needs it (`--auto`).
    pub auto: bool,
    /// Suppress progress (`--quiet`).
    pub quiet: bool,
    /// Continue in the background after the foreground phase (`--detach`).
    pub detach: bool,
    /// Skip the foreground phase, which is done already.
    pub skips_foreground: bool,
    /// Whether a command started this run because a task was due. Tasks that recently had no effect
    /// are skipped and recorded then.
    pub is_automatic: bool,
    /// The settings of garbage collection (`gc.*`).
    pub settings: Settings,
}

impl RunOptions {
    /// Returns a run of `tasks` in the foreground, in every state of the repository.
    pub fn new(tasks: Vec<MaintenanceTask>, settings: Settings) -> Self {
        RunOptions {
            tasks,
            auto: false,
            quiet: false,
            detach: false,
            skips_foreground: false,
            is_automatic: false,
            settings,
        }
    }
}

/// The result of maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Outcome {
    /// All tasks that are due have succeeded.
    Done,
    /// At least one task failed; each failure was reported to the runner.
    Failed,
    /// Another process maintains the repository and holds the lock of this file.
    Busy(PathBuf),
    /// A background process continues the run.
    Detached,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MaintenancePhase {
    Foreground,
    Background,
}

/// Runs maintenance (`git maintenance run`). A lock ensures that only one process maintains a
/// repository.
///
/// The lock file is `objects/maintenance.lock`. A command that runs under the lock inherits it, and
/// keeps it until the command ends, even if this process is killed.
///
/// # Errors
/// - `ErrorKind::ConfigValue` if a setting has an invalid value.
/// - `ErrorKind::Io` if the lock file cannot be created.
/// - The error of `runner` if a command cannot be started, or the process is interrupted.
pub fn maintain(
    repository: &Repository,
    run: &RunOptions,
    runner: &mut dyn CommandRunner,
) -> Result<Outcome> {
    let target = repository.objects_dir().join("maintenance");
    let lock = match Lock::acquire(&target, Duration::ZERO) {
        Ok(lock) => lock.recorded(repository.config()),
        Err(error) if error.kind() == ErrorKind::Locked => return Ok(Outcome::Busy(target)),
        Err(error) => return Err(error),
    };
    if let Some(file) = lock.file() {
        // If children cannot inherit the lock, it ends a little too early.
        let _ = rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty());
    }
    let mut is_failed = false;
    let mut ran = Vec::new();
    if !run.skips_foreground {
        is_failed |= !run_phase(
            repository,
            run,
            MaintenancePhase::Foreground,
            &mut ran,
            runner,
        )?;
    }
    if run.detach {
        let _region = pronto_io::region!("maintenance", "detach");
        // The background process acquires the lock itself.
        drop(lock);
        if runner.detach() {
            return Ok(if is_failed {
                Outcome::Failed
            } else {
                Outcome::Detached
            });
        }
        let rest = RunOptions {
            detach: false,
            skips_foreground: true,
            ..run.clone()
        };
        return match maintain(repository, &rest, runner)? {
            Outcome::Done if is_failed => Ok(Outcome::Failed),
            outcome => Ok(outcome),
        };
    }
    is_failed |= !run_phase(
        repository,
        run,
        MaintenancePhase::Background,
        &mut ran,
        runner,
    )?;
    if run.is_automatic {
        automatic::remember_tasks(repository, &ran, &run.settings)?;
    }
    Ok(match is_failed {
        true => Outcome::Failed,
        false => Outcome::Done,
    })
}

/// Runs the part of the tasks that belongs to `phase`, adds these tasks to `ran`, and returns
/// whether all succeeded.
fn run_phase(
    repository: &Repository,
    run: &RunOptions,
    phase: MaintenancePhase,
    ran: &mut Vec<MaintenanceTask>,
    runner: &mut dyn CommandRunner,
) -> Result<bool> {
    let mut is_well = true;
    for &task in &run.tasks {
        if !has_phase(task, phase) || run.auto && !is_due(repository, task, run)? {
            continue;
        }
        ran.push(task);
        match run_task(repository, task, run, phase, runner) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Refused => {
                runner.report_failure(task, &error);
                is_well = false;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(is_well)
}

fn is_due(repository: &Repository, task: MaintenanceTask, run: &RunOptions) -> Result<bool> {
    if run.is_automatic && automatic::was_tried(repository, task, &run.settings) {
        return Ok(false);
    }
    conditions::is_needed(repository, task, &run.settings)
}

fn run_task(
    repository: &Repository,
    task: MaintenanceTask,
    run: &RunOptions,
    phase: MaintenancePhase,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    match task {
        MaintenanceTask::Prefetch => prefetch(repository, run, runner),
        MaintenanceTask::LooseObjects => pack_loose_objects(repository, run, runner),
        MaintenanceTask::IncrementalRepack => repack_incrementally(repository, run, runner),
        MaintenanceTask::GeometricRepack => repack_geometrically(repository, run, runner),
        MaintenanceTask::Gc if phase == MaintenancePhase::Foreground => {
            gc::gc_foreground(run.auto, &run.settings, runner)
        }
        MaintenanceTask::Gc => {
            let mut step = CommandCall::of(&["gc"]);
            if run.auto {
                step.push("--auto");
            }
            step.push(if run.quiet { "--quiet" } else { "--no-quiet" });
            step.push("--no-detach");
            step.push("--skip-foreground-tasks");
            expect(runner.run(&step)?, "")
        }
        MaintenanceTask::CommitGraph => {
            if is_pointless(task, repository.config())? {
                return Ok(());
            }
            let mut step = CommandCall::of(&["commit-graph", "write", "--split", "--reachable"]);
            step.push(progress(run));
            expect(runner.run(&step)?, "failed to write commit-graph")
        }
        MaintenanceTask::PackRefs => expect(runner.run(&CommandCall::pack_refs(run.auto))?, ""),
        MaintenanceTask::ReflogExpire => expect(
            runner.run(&CommandCall::of(&["reflog", "expire", "--all"]))?,
            "",
        ),
        MaintenanceTask::WorktreePrune => expect(
            runner.run(&CommandCall::prune_work_trees(&run.settings))?,
            "",
        ),
        MaintenanceTask::RerereGc => expect(runner.run(&CommandCall::of(&["rerere", "gc"]))?, ""),
    }
}

fn prefetch(
    repository: &Repository,
    run: &RunOptions,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    for name in repository.config().subsections("remote") {
        if Remote::configured(repository.config(), name)?.skip_fetch_all {
            continue;
        }
        let mut step = CommandCall::of(&["fetch"]);
        step.push(OsString::from_vec(name.to_vec()));
        let options = ["--prefetch", "--prune", "--no-tags"];
        options.iter().for_each(|option| step.push(*option));
        step.push("--no-write-fetch-head");
        step.push("--recurse-submodules=no");
        if run.quiet {
            step.push("--quiet");
        }
        expect(runner.run(&step)?, "failed to prefetch remotes")?;
    }
    Ok(())
}

/// Deletes loose objects that are packed, and packs a limited number of the others.
fn pack_loose_objects(
    repository: &Repository,
    run: &RunOptions,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    let mut prune = CommandCall::of(&["prune-packed"]);
    if run.quiet {
        prune.push("--quiet");
    }
    expect(runner.run(&prune)?, "")?;
    let objects = repository.objects_dir();
    let mut ids = loose_objects(&objects)?;
    if ids.is_empty() {
        return Ok(());
    }
    let batch = repository
        .config()
        .i32("maintenance.loose-objects.batchsize")?;
    let batch = match batch.unwrap_or(50_000) {
        0 => usize::MAX,
        batch => usize::try_from(batch).unwrap_or(1),
    };
    ids.truncate(batch);
    let mut list = String::new();
    for id in &ids {
        // Writing to a `String` cannot fail.
        let _ = writeln!(list, "{id}");
    }
    let mut step = CommandCall::of(&["pack-objects"]);
    step.push(if run.quiet { "--quiet" } else { "--no-quiet" });
    step.push(objects.join("pack/loose"));
    step.input = Some(list.into_bytes());
    let message = "failed to finish 'git pack-objects' process";
    expect(runner.run(&step)?, message)
}

fn repack_incrementally(
    repository: &Repository,
    run: &RunOptions,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    if !repository.config().bool_or("core.multipackindex", true)? {
        runner.report_no_multi_pack_index();
        return Ok(());
    }
    let step = |command: &str| CommandCall::of(&["multi-pack-index", command, progress(run)]);
    let message = "failed to write multi-pack-index";
    expect(runner.run(&step("write"))?, message)?;
    let message = "'git multi-pack-index expire' failed";
    expect(runner.run(&step("expire"))?, message)?;
    let mut repack = step("repack");
    repack.push(format!("--batch-size={}", batch_bytes(repository)?));
    let message = "'git multi-pack-index repack' failed";
    expect(runner.run(&repack)?, message)
}

/// Returns the `--batch-size` of the incremental repack: one more than the size of the second
/// largest pack, so that at least two of three packs are merged, and at most 2 GiB.
fn batch_bytes(repository: &Repository) -> Result<u64> {
    const LARGEST: u64 = i32::MAX as u64;
    let store = repository.objects()?;
    let own = std::iter::once(store.path());
    let (mut largest, mut second) = (0, 0);
    for objects in own.chain(store.alternates().iter().map(PathBuf::as_path)) {
        let packs = OwnPacks::in_objects(objects);
        for size in packs.stems().map(|stem| packs.size(stem)) {
            if size > largest {
                (largest, second) = (size, largest);
            } else {
                second = second.max(size);
            }
        }
    }
    Ok((second + 1).min(LARGEST))
}

fn repack_geometrically(
    repository: &Repository,
    run: &RunOptions,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    let factor = conditions::split_factor(repository)?;
    let progression = OwnPacks::of(repository).progression(factor)?;
    let mut step = CommandCall::of(&["repack", "-d", "-l"]);
    match progression.split < progression.packs {
        true => step.push(format!("--geometric={factor}")),
        false => step.arguments.extend(repack_all(&run.settings, &[])),
    }
    if run.quiet {
        step.push("--quiet");
    }
    if repository.config().bool_or("core.multipackindex", true)? {
        step.push("--write-midx");
    }
    expect(runner.run(&step)?, "failed to perform geometric repack")
}

fn progress(run: &RunOptions) -> &'static str {
    match run.quiet {
        true => "--no-progress",
        false => "--progress",
    }
}

fn expect(is_well: bool, message: &str) -> Result<()> {
    match is_well {
        true => Ok(()),
        false => Err(failed(message)),
    }
}

fn has_phase(task: MaintenanceTask, phase: MaintenancePhase) -> bool {
    match task {
        MaintenanceTask::Gc => true,
        MaintenanceTask::PackRefs | MaintenanceTask::ReflogExpire => {
            phase == MaintenancePhase::Foreground
        }
        _ => phase == MaintenancePhase::Background,
    }
}
