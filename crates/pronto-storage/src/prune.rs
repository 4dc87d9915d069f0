//! Deletes unreachable objects, and abandoned temporary files.
//!
//! Reachability is computed twice: first while other processes work, then again under the lock that
//! keeps writers out ([`pronto_odb::Store::begin_pruning`]), where only new objects are walked.
//! Objects are deleted in batches of limited duration, and each object before those that it names.
//! So every present object is complete at every moment, even after a crash.

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

pub(crate) use marks::Marks;

use pronto_repository::expiry::Expiry;
use pronto_repository::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

/// The default time that [`prune`](self::prune()) waits for processes that write.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time that the lock is held for deleting, besides checking what leads to objects.
const HOLD: Duration = Duration::from_millis(50);
/// The largest number of files deleted in one batch.
const BATCH: usize = 2_000;
/// The time for which writers are let through between two deletions.
const REST: Duration = Duration::from_millis(15);

/// Options for pruning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Only what was last written before this moment (`--expire`).
    pub expire: Expiry,
    /// Objects that are kept with all that they lead to, beside what references keep.
    pub heads: Vec<ObjectId>,
    /// Whether deletions are only reported.
    pub dry_run: bool,
    /// The total time to wait for processes that write, before the rest is kept.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            expire: Expiry::Now,
            heads: Vec::new(),
            dry_run: false,
            patience: PATIENCE,
        }
    }
}

/// Something that is deleted, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removed {
    /// An unreachable loose object, with its type if it can be read.
    Object(ObjectId, Option<Kind>),
    /// A loose object that a pack has, too.
    Duplicate(PathBuf),
    /// A temporary file that a process has left behind.
    TemporaryFile(PathBuf),
    /// A temporary directory that a process has left behind.
    TemporaryDirectory(PathBuf),
    /// A missing commit that is listed as shallow.
    Shallow(ObjectId),
    /// A file among loose objects that is none. It stays.
    Garbage(PathBuf),
}

/// The result of pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it may have ended early"]
#[non_exhaustive]
pub struct Outcome {
    /// The number of objects that were deleted, or would be.
    pub objects: u64,
    /// Whether others wrote all the time, so that something was kept.
    pub gave_up: bool,
}

/// Deletes unreachable loose objects, loose objects that are packed as well, temporary files,
/// and missing commits from the list of shallow commits. Calls `tell` before each deletion.
///
/// Objects are reachable from refs, `HEAD`, reflogs, the index and operations in progress of
/// all worktrees, from `options.heads`, and from objects younger than `options.expire`.
///
/// Costs reading every commit and tree, unless there are bitmaps or no loose objects; memory
/// for the id of every object.
///
/// # Errors
/// A reachable object is missing or malformed, or a root of reachability cannot be read: then
/// nothing more is deleted. Or it was interrupted.
pub fn prune(
    repository: &Repository,
    options: &Options,
    tell: &mut dyn FnMut(&Removed),
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut work = Work::new(repository, options.clone(), tell, watch)?;
    work.prune_loose()?;
    work.prune_packed(&())?;
    work.prune_temporary()?;
    work.prune_shallow()?;
    Ok(work.ended())
}

/// Deletes loose objects that are packed as well, and directories that become empty. Calls
/// `tell` before each deletion. Only the options `dry_run` and `patience` apply.
///
/// Costs a listing of all loose objects and a lookup in the index of each pack.
///
/// # Errors
/// An index or a directory cannot be read; or it was interrupted.
pub fn prune_packed(
    repository: &Repository,
    options: &Options,
    tell: &mut dyn FnMut(&Removed),
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut work = Work::new(repository, options.clone(), tell, watch)?;
    work.prune_packed(watch.progress())?;
    Ok(work.ended())
}

/// One run.
struct Work<'a> {
    repository: &'a Repository,
    options: Options,
    tell: &'a mut dyn FnMut(&Removed),
    watch: &'a Watch<'a>,
    objects: PathBuf,
    /// Made when it is first asked for.
    marks: Option<Marks<'a>>,
    outcome: Outcome,
}

impl<'a> Work<'a> {
    fn new(
        repository: &'a Repository,
        options: Options,
        tell: &'a mut dyn FnMut(&Removed),
        watch: &'a Watch<'a>,
    ) -> Result<Work<'a>> {
        Ok(Work {
            objects: repository.objects()?.path().to_owned(),
            repository,
            options,
            tell,
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

    /// Returns the reachable objects, walked at the first call.
    fn marks(&mut self) -> Result<&mut Marks<'a>> {
        if self.marks.is_none() {
            let meter = self.watch.progress().begin("Checking connectivity", None);
            let mut marks = Marks::new(self.repository, self.watch)?;
            marks.look_again()?;
            marks.lead_from(&self.options.heads)?;
            marks.lead_from_recent(self.options.expire)?;
            meter.finish();
            self.marks = Some(marks);
        }
        Ok(self.marks.as_mut().expect("made above"))
    }

    /// The right to delete; `None`, from then on, if others write for too long.
    fn begin(&mut self) -> Result<Option<Pruning>> {
        check(self.watch)?;
        if self.outcome.gave_up {
            return Ok(None);
        }
        let begun = begin_pruning(self.repository, &mut self.options.patience)?;
        self.outcome.gave_up = begun.is_none();
        Ok(begun)
    }

    /// Whether a file that was last written then has expired.
    fn has_expired(&self, modified: SystemTime) -> bool {
        has_expired(self.options.expire, modified)
    }
}

/// As [`pronto_odb::Store::begin_pruning`]; takes what the wait has cost from `patience`.
pub(crate) fn begin_pruning(
    repository: &Repository,
    patience: &mut Duration,
) -> Result<Option<Pruning>> {
    let since = std::time::Instant::now();
    let begun = repository.objects()?.begin_pruning(*patience);
    *patience = patience.saturating_sub(since.elapsed());
    Ok(begun)
}

/// Whether a file that was last written at `modified` has expired.
pub(crate) fn has_expired(expire: Expiry, modified: SystemTime) -> bool {
    match expire {
        Expiry::Now => true,
        Expiry::Before(moment) => {
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
