//! Deletes unreachable objects and abandoned temporary files.
//!
//! Reachability is computed twice: first while other processes work, then again under the lock that
//! excludes writers ([`pronto_odb::Store::begin_pruning`]), when only new objects are walked. Objects
//! are deleted in batches of limited duration, and each object before the objects that it references.
//! At every moment, even after a crash, all objects that an existing object references exist as well.

mod loose;
mod marks;
mod named;
mod order;
mod packed;
mod shallow;
mod temporary;
mod tips;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_odb::Pruning;

pub(crate) use marks::ReachableMarks;

use pronto_repository::expiry::ExpiryAge;
use pronto_repository::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

/// The default time for which [`prune`](self::prune()) waits for writing processes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time for which the lock is held for deletions, in addition to the second check of
/// reachability.
const HOLD: Duration = Duration::from_millis(50);
/// The largest number of files deleted in one batch.
const BATCH: usize = 2_000;
/// The time between two batches in which other processes can write.
const REST: Duration = Duration::from_millis(15);

/// Options for pruning (`git prune`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Prune only objects older than this time (`--expire`).
    pub expire: ExpiryAge,
    /// Keep these objects and all objects reachable from them (`<head>...`).
    pub heads: Vec<ObjectId>,
    /// Report deletions without deleting (`--dry-run`).
    pub dry_run: bool,
    /// The total time to wait for writing processes, after which the remaining objects are kept.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            expire: ExpiryAge::Now,
            heads: Vec::new(),
            dry_run: false,
            patience: PATIENCE,
        }
    }
}

/// A deleted object or file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrunedFile {
    /// An unreachable loose object, and its type if it can be read.
    Object(ObjectId, Option<Kind>),
    /// A loose object that is also in a pack.
    Duplicate(PathBuf),
    /// A temporary file of a process that has ended.
    TemporaryFile(PathBuf),
    /// A temporary directory of a process that has ended.
    TemporaryDirectory(PathBuf),
    /// An entry of the file `shallow` for a missing commit.
    Shallow(ObjectId),
    /// A file in a directory of loose objects that is not a loose object. It is not deleted.
    Garbage(PathBuf),
}

/// The result of pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it may have ended early"]
#[non_exhaustive]
pub struct Outcome {
    /// The number of deleted objects (with [`Options::dry_run`], of objects to delete).
    pub objects: u64,
    /// Whether other processes wrote for so long that objects were kept.
    pub gave_up: bool,
}

/// Deletes unreachable loose objects, loose objects that are also packed, temporary files, and missing
/// commits in the file `shallow` (`git prune`). Calls `report` before each deletion.
///
/// Objects are reachable from refs, `HEAD`, reflogs, indexes and operations in progress of all
/// worktrees, from `options.heads`, and from objects newer than `options.expire`.
///
/// Costs reading every commit and tree, unless there are bitmaps or no loose objects. Memory holds the
/// id of every object.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a reachable object is missing or malformed, with
/// [`ErrorKind::Reference`] or [`ErrorKind::Io`] if the roots of reachability cannot be read, or with
/// [`ErrorKind::Interrupted`]. Nothing more is deleted then.
pub fn prune(
    repository: &Repository,
    options: &Options,
    report: &mut dyn FnMut(&PrunedFile),
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut work = PruneRun::new(repository, options.clone(), report, watch)?;
    work.prune_loose()?;
    work.prune_packed(&())?;
    work.prune_temporary()?;
    work.prune_shallow()?;
    Ok(work.ended())
}

/// Deletes loose objects that are also packed, and directories that become empty (`git prune-packed`).
/// Calls `report` before each deletion. Only the options `dry_run` and `patience` apply.
///
/// Costs a listing of all loose objects and a lookup in the index of each pack.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a pack index or a directory cannot be read,
/// or with [`ErrorKind::Interrupted`].
pub fn prune_packed(
    repository: &Repository,
    options: &Options,
    report: &mut dyn FnMut(&PrunedFile),
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut work = PruneRun::new(repository, options.clone(), report, watch)?;
    work.prune_packed(watch.progress())?;
    Ok(work.ended())
}

/// One run of pruning.
struct PruneRun<'a> {
    repository: &'a Repository,
    options: Options,
    report: &'a mut dyn FnMut(&PrunedFile),
    watch: &'a Watch<'a>,
    objects: PathBuf,
    /// The reachable objects, computed on first use.
    marks: Option<ReachableMarks<'a>>,
    outcome: Outcome,
}

impl<'a> PruneRun<'a> {
    fn new(
        repository: &'a Repository,
        options: Options,
        report: &'a mut dyn FnMut(&PrunedFile),
        watch: &'a Watch<'a>,
    ) -> Result<PruneRun<'a>> {
        let store = repository.objects()?;
        store.use_alternates();
        Ok(PruneRun {
            objects: store.path().to_owned(),
            repository,
            options,
            report,
            watch,
            marks: None,
            outcome: Outcome::default(),
        })
    }

    fn ended(self) -> Outcome {
        if self.outcome.gave_up {
            let notice = PackNotice::PruningGivenUp;
            self.repository.notify(Notice::Packs(notice));
        }
        self.outcome
    }

    /// Returns the reachable objects, and computes them on first use.
    fn marks(&mut self) -> Result<&mut ReachableMarks<'a>> {
        if self.marks.is_none() {
            let meter = self.watch.progress().begin("Checking connectivity", None);
            let mut marks = ReachableMarks::new(self.repository, self.watch)?;
            marks.look_again()?;
            marks.lead_from(&self.options.heads)?;
            marks.lead_from_recent(self.options.expire)?;
            meter.finish();
            self.marks = Some(marks);
        }
        Ok(self.marks.as_mut().expect("made above"))
    }

    /// Takes the lock for deletions. Returns `None`, also in all later calls, if other processes write
    /// for too long.
    fn begin(&mut self) -> Result<Option<Pruning>> {
        check(self.watch)?;
        if self.outcome.gave_up {
            return Ok(None);
        }
        let begun = begin_pruning(self.repository, &mut self.options.patience)?;
        self.outcome.gave_up = begun.is_none();
        Ok(begun)
    }

    /// Returns whether a file that was last modified at `modified` has expired.
    fn has_expired(&self, modified: SystemTime) -> bool {
        has_expired(self.options.expire, modified)
    }
}

/// Takes the lock as [`pronto_odb::Store::begin_pruning`] does, and subtracts the waiting time from
/// `patience`.
pub(crate) fn begin_pruning(
    repository: &Repository,
    patience: &mut Duration,
) -> Result<Option<Pruning>> {
    let since = std::time::Instant::now();
    let begun = repository.objects()?.begin_pruning(*patience);
    *patience = patience.saturating_sub(since.elapsed());
    Ok(begun)
}

/// Returns whether a file that was last modified at `modified` has expired.
pub(crate) fn has_expired(expire: ExpiryAge, modified: SystemTime) -> bool {
    match expire {
        ExpiryAge::Now => true,
        ExpiryAge::Before(moment) => {
            let since = modified.duration_since(SystemTime::UNIX_EPOCH);
            let seconds = since.map_or(0, |since| since.as_secs());
            i64::try_from(seconds).is_ok_and(|seconds| seconds <= moment)
        }
    }
}

fn check(watch: &Watch<'_>) -> Result<()> {
    let interrupted = |reason: pronto_io::interrupt::Interrupted| {
        Error::new(ErrorKind::Interrupted, reason.to_string())
    };
    watch.interrupt().check().map_err(interrupted)
}
