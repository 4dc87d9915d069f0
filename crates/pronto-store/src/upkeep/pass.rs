//! A pass of upkeep over a repository.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pronto::Watch;
use pronto_io::cleanup::Guard;
use pronto_io::view::View;
use pronto_pack::mtimes::Mtimes;

use super::Deleted;
use super::due::due;
use super::repack::{Repacked, Work};
use crate::backend::Backend as _;
use crate::blocking::{Store, Stored};
use crate::clock::Clock as _;
use crate::manifest::FileKind;
use crate::repository::Generation;
use crate::{ErrorKind, Result};

/// The number of times that tables are merged in a pass.
const MERGES: u32 = 20;

/// The time by which the clock of this machine may be behind that of the store.
const MOST_BEHIND: Duration = Duration::from_secs(3600);

/// The largest file of times: of 250 million objects.
const MOST_TIMES_BYTES: u64 = 1 << 30;

/// Options of [`Store::keep_up`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpkeepOptions {
    /// The directory of temporary files. It needs room for the largest repository, twice.
    pub scratch: PathBuf,
    /// The directory of downloaded files, which are used again.
    pub cache: Option<PathBuf>,
    /// Whether packs are packed again where that is due, which the packs of the generation decide.
    pub repacks: bool,
    /// Whether expired generations and orphans are deleted. That lists all objects of the repository.
    pub deletes: bool,
    /// The time for which an unreachable Git object is kept after it was noticed; `None` for ever. When an object
    /// has expired, all packs are packed again.
    pub prune_after: Option<Duration>,
}

impl UpkeepOptions {
    /// Returns the options with which all is done, and unreachable objects are kept for two weeks.
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
pub struct Upkeep {
    /// The number of times that tables of refs were merged.
    pub merges: u32,
    /// The repack, if one was due.
    pub repacked: Option<Repacked>,
    /// The objects that were deleted.
    pub deleted: Deleted,
    /// Whether another process did a step, or refs changed during a deletion: the next pass continues.
    pub was_overtaken: bool,
}

impl fmt::Display for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(repacked) = self.repacked {
            let (before, after) = (repacked.packs_before, repacked.packs_after);
            parts.push(format!("{before} packs became {after}"));
        }
        if self.merges > 0 {
            parts.push(format!("tables of refs merged {} times", self.merges));
        }
        let deleted = self.deleted;
        let objects = deleted.dropped + deleted.orphans;
        if deleted.generations + objects > 0 {
            let generations = deleted.generations;
            parts.push(format!(
                "{generations} generations and {objects} objects deleted"
            ));
        }
        if self.was_overtaken {
            parts.push("another process changed the repository meanwhile".to_owned());
        }
        match parts.is_empty() {
            true => f.write_str("nothing to do"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

impl Store {
    /// Does the upkeep that is due for a repository: merges tables of refs, packs small packs again, and with
    /// enough of them all with a bitmap and a commit-graph, and deletes what has expired. Any number of
    /// processes may do it at the same time; each step is a commit.
    ///
    /// Costs a probe if nothing is due. A repack reads the packs, large ones by range, and writes the new ones.
    ///
    /// # Errors
    /// As for [`latest`](crate::Repository::latest), [`write_view`](crate::Repository::write_view) and
    /// [`commit`](crate::Repository::commit). [`ErrorKind::Clock`]. Each step is whole or not done.
    pub fn keep_up(
        &self,
        repository: &Arc<Stored>,
        options: &UpkeepOptions,
        watch: &Watch<'_>,
    ) -> Result<Upkeep> {
        let mut done = Upkeep::default();
        // Of a removed repository there is nothing to pack, and all to delete.
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

    fn merge_tables(&self, repository: &Stored, done: &mut Upkeep) -> Result<()> {
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
        repository: &Arc<Stored>,
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
        let work = Work {
            store: self,
            repository,
            generation: &newest,
            view: &view,
            files: options.cache.as_ref().unwrap_or(&files),
        };
        let _guard = Guard::new(&files);
        work.run(due, expiry, watch).map(Some)
    }

    /// Returns the time of the clock that is behind: of this machine or of the store. Objects that a repack finds
    /// unreachable get the time of this machine, so its clock must not be far behind. Costs two calls.
    ///
    /// # Errors
    /// [`ErrorKind::Clock`]: it is. Those of the store.
    fn time(&self, repository: &Stored) -> Result<Duration> {
        let stored = self.wait(repository.time())?;
        let own = repository.backend.clock().time();
        let behind = stored.saturating_sub(own);
        if behind <= MOST_BEHIND {
            return Ok(stored.min(own));
        }
        let seconds = behind.as_secs();
        let message = format!("the clock of this machine is {seconds} s behind that of the store");
        let hint = "set it, for instance with NTP: upkeep keeps unreachable objects by it";
        Err(crate::Error::new(ErrorKind::Clock, message).with_hint(hint))
    }

    /// Returns `before`, in seconds since 1970, if there are unreachable objects that were noticed earlier. Reads the
    /// times of all unreachable objects.
    fn expiry(
        &self,
        repository: &Stored,
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
            let opened = Mtimes::from_view(View::from_bytes(bytes), &path, hash, pack.objects);
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

/// Notes that another process was faster.
fn overtaken(error: crate::Error, done: &mut Upkeep) -> Result<()> {
    match error.kind() {
        ErrorKind::Conflict => {
            done.was_overtaken = true;
            Ok(())
        }
        _ => Err(error),
    }
}
