//! A pass of upkeep over a repository.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pronto::Watch;
use pronto_io::cleanup::Guard;
use pronto_io::view::FileView;
use pronto_pack::mtimes::Mtimes;

use super::Deleted;
use super::due::due;
use super::repack::{GenerationRepack, Repacked};
use crate::backend::StoreBackend as _;
use crate::blocking::{BlockingStore, StoredRepository};
use crate::clock::Clock as _;
use crate::manifest::FileKind;
use crate::repository::Generation;
use crate::{ErrorKind, Result};

/// The largest number of table merges in a pass.
const MERGES: u32 = 20;

/// The time by which the clock of this machine may be behind the clock of the store.
const MOST_BEHIND: Duration = Duration::from_secs(3600);

/// The largest size in bytes of an `.mtimes` file, which fits 250 million objects.
const MOST_TIMES_BYTES: u64 = 1 << 30;

/// The options of [`BlockingStore::keep_up`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpkeepOptions {
    /// The directory of temporary files, which needs space for twice the size of the largest
    /// repository.
    pub scratch: PathBuf,
    /// The cache directory of downloaded files, which later passes use again.
    pub cache: Option<PathBuf>,
    /// Repack packs, if the packs of the generation need a repack.
    pub repacks: bool,
    /// Delete expired generations and orphans, which lists all objects of the repository.
    pub deletes: bool,
    /// The time for which an unreachable Git object is kept after it was detected. With `None`,
    /// unreachable objects are kept forever. When an object has expired, all packs are repacked.
    pub prune_after: Option<Duration>,
}

impl UpkeepOptions {
    /// Returns the options for a complete pass that keeps unreachable objects for two weeks.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        UpkeepOptions {
            scratch: scratch.into(),
            cache: None,
            repacks: true,
            deletes: true,
            prune_after: Some(Duration::from_secs(14 * 24 * 3600)),
        }
    }
}

/// The effects of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpkeepPass {
    /// The number of merges of ref tables.
    pub merges: u32,
    /// The repack, if the packs needed one.
    pub repacked: Option<Repacked>,
    /// The numbers of deleted objects.
    pub deleted: Deleted,
    /// Whether another process did a step first, or refs changed during a deletion. The next pass
    /// continues in this case.
    pub was_overtaken: bool,
}

impl fmt::Display for UpkeepPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(repacked) = self.repacked {
            let (before, after) = (repacked.packs_before, repacked.packs_after);
            parts.push(format!("repacked from {before} to {after} packs"));
        }
        if self.merges > 0 {
            parts.push(format!("merges of ref tables: {}", self.merges));
        }
        let deleted = self.deleted;
        let objects = deleted.dropped + deleted.orphans;
        if deleted.generations + objects > 0 {
            let generations = deleted.generations;
            parts.push(format!(
                "deleted generations: {generations}, deleted objects: {objects}"
            ));
        }
        if self.was_overtaken {
            parts.push("stopped because another process changed the repository".to_owned());
        }
        match parts.is_empty() {
            true => f.write_str("nothing to do"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

impl BlockingStore {
    /// Does the pending upkeep of a repository: merges tables of refs, repacks small packs, repacks
    /// all packs with a bitmap and a commit-graph if there are enough of them, and deletes expired
    /// data. Any number of processes may do this concurrently. Each step is a commit.
    ///
    /// If nothing is pending, the cost is a probe. A repack reads the packs, large ones by range,
    /// and writes the new ones.
    ///
    /// # Errors
    /// Fails for the same reasons as [`latest`](crate::StoreRepository::latest),
    /// [`write_view`](crate::StoreRepository::write_view) and [`commit`](crate::StoreRepository::commit), and
    /// with [`ErrorKind::Clock`] if the clock of this machine is far behind. Each step is atomic.
    pub fn keep_up(
        &self,
        repository: &Arc<StoredRepository>,
        options: &UpkeepOptions,
        watch: &Watch<'_>,
    ) -> Result<UpkeepPass> {
        let mut done = UpkeepPass::default();
        // A removed repository has no packs to repack, and all its objects to delete.
        if !self.wait(repository.tip())?.manifest.is_removed {
            self.merge_tables(repository, &mut done)?;
            match self.repack(repository, options, watch) {
                Ok(repacked) => done.repacked = repacked,
                Err(error) => overtaken(error, &mut done)?,
            }
        }
        if options.deletes {
            let expired = self.wait(repository.expire())?;
            let swept = self.wait(repository.sweep())?;
            done.deleted = Deleted {
                orphans: swept.orphans,
                ..expired
            };
        }
        Ok(done)
    }

    fn merge_tables(&self, repository: &StoredRepository, done: &mut UpkeepPass) -> Result<()> {
        while done.merges < MERGES {
            match self.wait(repository.merge_tables()) {
                Ok(true) => done.merges += 1,
                Ok(false) => break,
                Err(error) => return overtaken(error, done),
            }
        }
        Ok(())
    }

    fn repack(
        &self,
        repository: &Arc<StoredRepository>,
        options: &UpkeepOptions,
        watch: &Watch<'_>,
    ) -> Result<Option<Repacked>> {
        let newest = self.wait(repository.latest())?;
        let due = due(&newest.manifest).filter(|_| options.repacks);
        if due.is_none() && options.prune_after.is_none() {
            return Ok(None);
        }
        let now = self.time(repository)?;
        let expiry = match options.prune_after {
            Some(after) => self.expiry(repository, &newest, now.saturating_sub(after))?,
            None => None,
        };
        if due.is_none() && expiry.is_none() {
            return Ok(None);
        }
        let name = format!("pronto-upkeep-{}", repository.upload_id());
        let view = options.scratch.join(name);
        let files = view.with_extension("files");
        let work = GenerationRepack {
            store: self,
            repository,
            generation: &newest,
            view: &view,
            files: options.cache.as_ref().unwrap_or(&files),
        };
        let _guard = Guard::new(&files);
        work.run(due, expiry, watch).map(Some)
    }

    /// Returns the earlier time of the clock of this machine and the clock of the store. Objects
    /// that a repack finds unreachable get the time of this machine, so its clock must not be far
    /// behind. The cost is two calls.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Clock`] if the clock of this machine is far behind, and with the
    /// errors of the store.
    fn time(&self, repository: &StoredRepository) -> Result<Duration> {
        let stored = self.wait(repository.time())?;
        let own = repository.backend.clock().time();
        let behind = stored.saturating_sub(own);
        if behind <= MOST_BEHIND {
            return Ok(stored.min(own));
        }
        let seconds = behind.as_secs();
        let message =
            format!("the clock of this machine is {seconds} s behind the clock of the store");
        let hint = "set the clock, for example with NTP: upkeep uses it to decide which \
                    unreachable objects to delete";
        Err(crate::Error::new(ErrorKind::Clock, message).with_hint(hint))
    }

    /// Returns `before`, in seconds since 1970, if unreachable objects were detected earlier. Reads
    /// the times of all unreachable objects.
    fn expiry(
        &self,
        repository: &StoredRepository,
        generation: &Generation,
        before: Duration,
    ) -> Result<Option<i64>> {
        let before = before.as_secs();
        for pack in &generation.manifest.packs {
            let mut objects = pack.objects().zip(&pack.files);
            let Some((times, _)) = objects.find(|(_, file)| file.kind == FileKind::Times) else {
                continue;
            };
            let bytes = self.wait(repository.object(&times, MOST_TIMES_BYTES))?;
            let path = PathBuf::from(&times.name);
            let hash = generation.manifest.hash;
            let opened = Mtimes::from_view(FileView::from_bytes(bytes), &path, hash, pack.objects);
            let opened = opened.map_err(|error| error.map_kind(|_| ErrorKind::Corrupt))?;
            for row in 0..pack.objects {
                let time = opened.at(row);
                let time = time.map_err(|error| error.map_kind(|_| ErrorKind::Corrupt))?;
                if u64::from(time) < before {
                    return Ok(i64::try_from(before).ok());
                }
            }
        }
        Ok(None)
    }
}

/// Records that another process did the step first.
fn overtaken(error: crate::Error, done: &mut UpkeepPass) -> Result<()> {
    match error.kind() {
        ErrorKind::Conflict => {
            done.was_overtaken = true;
            Ok(())
        }
        _ => Err(error),
    }
}
