//! The receiving side. A thread indexes each segment while it is received into a quarantine, which
//! stays until all segments are received.
//!
//! Cost: each byte is copied once, into the piece that the indexer reads, and at most four such
//! pieces are queued. The indexer writes each byte once. Each segment takes two syncs, and five
//! renames or links. Bases of deltas outside of their segment are added to the pack.
//!
//! The size of segments, the size of objects in memory and the tables of the indexer limit the
//! memory, whatever a peer sends.

mod segment;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_netsync::message::{MAX_HELD, Resume, SegmentKind};
use pronto_odb::{Quarantine, Store};
use rustix::fs::{FlockOperation, flock};

use super::bases::{PermittedBases, Stores};
use super::state::TransferState;
use super::{failed, refused};
use pronto::objects::from_odb;
use pronto::{ErrorKind, Repository, Result};
use segment::{IncomingSegment, IndexedSegment, Indexer};

pub use segment::{MOST_PARENTS, MOST_PARENTS_OF_ALL};

type IncomingRefusal = pronto_netsync::Error;

/// The largest size in bytes of a segment, unless the segment is a single large object.
pub const MOST_SEGMENT_BYTES: u64 = 64 << 20;

/// The largest number of objects of a segment.
pub const MOST_SEGMENT_OBJECTS: u64 = 1 << 18;

/// The time for which a session waits for an earlier one with the same peer.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The largest size in bytes of an object that is held in memory, and of a delta.
pub const MOST_OBJECT_BYTES: u64 = 16 << 20;

/// The largest size in bytes of a blob that is the base or the result of a delta.
pub const MOST_DELTA_BYTES: u64 = 128 << 20;

/// The largest size in bytes of the delta bases that each store of a transfer keeps in memory.
const CACHED_BYTES: usize = 8 << 20;

/// The limits for received segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentLimits {
    /// The largest number of bytes that are received.
    pub(super) budget_bytes: u64,
    /// The number of threads that index a segment, or 0 for the number of cores, at most two.
    pub(super) threads: usize,
    /// Whether a segment is stored in a file until it is complete.
    pub(super) spools: bool,
}

/// The objects received from one peer.
pub(super) struct IncomingObjects {
    repository: Arc<Repository>,
    directory: PathBuf,
    quarantine: Quarantine,
    state: TransferState,
    /// Whether the quarantine contained objects of an earlier session.
    has_past: bool,
    bases: Arc<PermittedBases>,
    /// The number of bytes that may still be stored.
    left_bytes: u64,
    terms: SegmentLimits,
    current: Option<IncomingSegment>,
    /// The lock that excludes other sessions that receive from the same peer.
    _lock: File,
}

/// Takes the lock. Returns `false` if another session holds the lock for long. A previous session
/// may have ended for the peer, but not yet on this side.
fn lock_soon(file: &File) -> bool {
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Instant::now() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl IncomingObjects {
    /// Opens the quarantine of a peer in `directory`. Both sides have the commits `known`.
    pub(super) fn open(
        repository: &Arc<Repository>,
        directory: &Path,
        known: &[ObjectId],
        terms: SegmentLimits,
    ) -> Result<Self, IncomingRefusal> {
        let store = repository.objects().map_err(failed)?.without_replacements();
        let prepare = || -> Result<File> {
            std::fs::create_dir_all(directory).context(
                ErrorKind::Io,
                "cannot create",
                directory,
            )?;
            let path = directory.join("lock");
            File::create(&path).context(ErrorKind::Io, "cannot create", &path)
        };
        let lock = prepare().map_err(failed)?;
        if !lock_soon(&lock) {
            let message = "another session with this peer is running";
            return Err(IncomingRefusal::new(
                pronto_netsync::ErrorKind::Busy,
                message,
            ));
        }
        let quarantine = Quarantine::keep(&store, &directory.join("objects"));
        let quarantine = quarantine.map_err(from_odb).map_err(failed)?;
        remove_temporary(&quarantine.pack_directory());
        let state = TransferState::read(&directory.join("state")).unwrap_or_default();
        let stores = Stores {
            all: quarantine.store().clone(),
            arrived: only(&quarantine).map_err(failed)?,
        };
        stores.all.lower_base_cache(CACHED_BYTES);
        let edges = state.edges.clone();
        let bases = PermittedBases::new(Arc::clone(repository), stores, known.to_vec(), edges);
        Ok(IncomingObjects {
            repository: Arc::clone(repository),
            directory: directory.to_owned(),
            quarantine,
            has_past: state.resume.is_some(),
            state,
            bases: Arc::new(bases.map_err(failed)?),
            left_bytes: terms.budget_bytes,
            terms,
            current: None,
            _lock: lock,
        })
    }

    pub(super) fn held(&self) -> Vec<ObjectId> {
        let store = self.quarantine.store();
        let heads = self.state.heads.iter().copied();
        heads
            .filter(|id| store.contains(id).unwrap_or(false))
            .collect()
    }

    pub(super) fn resume(&self) -> Option<Resume> {
        self.state.resume
    }

    /// Returns the store of all objects of this repository, including the received ones.
    pub(super) fn store(&self) -> &Store {
        self.quarantine.store()
    }

    /// Opens the store of the received objects only.
    pub(super) fn only(&self) -> Result<Store> {
        only(&self.quarantine)
    }

    pub(super) fn begin(
        &mut self,
        kind: SegmentKind,
        objects: u64,
        bytes: u64,
    ) -> Result<(), IncomingRefusal> {
        let is_bounded = match kind {
            SegmentKind::Pack => bytes <= MOST_SEGMENT_BYTES && objects <= MOST_SEGMENT_OBJECTS,
            SegmentKind::LargeBlob => objects == 1,
        };
        if !is_bounded {
            return Err(refused(format!(
                "a segment is too large: {objects} objects and {bytes} bytes"
            )));
        }
        let left = self.left_bytes.checked_sub(bytes);
        self.left_bytes = left.ok_or_else(quota)?;
        self.bases.limit(self.left_bytes);
        let indexer = Indexer {
            repository: Arc::clone(&self.repository),
            store: self.quarantine.store().clone(),
            bases: Arc::clone(&self.bases),
            directory: self.quarantine.pack_directory(),
            bytes,
            threads: self.terms.threads,
        };
        let segment = IncomingSegment::begin(indexer, objects, self.terms.spools);
        self.current = Some(segment.map_err(failed)?);
        Ok(())
    }

    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), IncomingRefusal> {
        let Some(segment) = &mut self.current else {
            return Err(refused("the peer sent data outside of a segment"));
        };
        match segment.data(bytes) {
            Ok(()) => Ok(()),
            Err(why) => Err(self.spoiled(why)),
        }
    }

    pub(super) fn end(
        &mut self,
        checksum: &ObjectId,
        resume: Resume,
    ) -> Result<(), IncomingRefusal> {
        let Some(mut segment) = self.current.take() else {
            return Err(refused("the peer ended a segment that it had not begun"));
        };
        let arrived = segment.finish().map_err(|error| self.spoiled(error))?;
        let IndexedSegment { outcome, links, .. } = arrived;
        let objects = u64::from(outcome.objects - outcome.added);
        if objects != segment.objects || arrived.checksum != checksum.as_slice() {
            let reverse = outcome.pack.with_extension("rev");
            for path in [&outcome.index, &reverse, &outcome.pack] {
                let _ = std::fs::remove_file(path);
            }
            return Err(refused(format!(
                "a segment has {objects} objects, but {} were announced, or its checksum differs",
                segment.objects
            )));
        }
        let size = std::fs::metadata(&outcome.pack);
        let size = size.context(ErrorKind::Io, "cannot stat", &outcome.pack);
        let added = size.map_err(failed)?.len().saturating_sub(segment.bytes);
        self.left_bytes = self.left_bytes.checked_sub(added).ok_or_else(quota)?;
        self.quarantine
            .store()
            .refresh()
            .map_err(from_odb)
            .map_err(failed)?;
        let parents: HashSet<&ObjectId> = links.iter().flat_map(|link| &link.parents).collect();
        let heads = &mut self.state.heads;
        heads.extend(links.iter().map(|link| link.commit));
        heads.retain(|id| !parents.contains(id));
        let surplus = self.state.heads.len().saturating_sub(MAX_HELD);
        self.state.heads.drain(..surplus);
        self.bases.arrive(&links).map_err(failed)?;
        self.bases.refresh().map_err(failed)?;
        self.state.edges = self.bases.edges();
        self.state.resume = Some(resume);
        self.state
            .write(&self.directory.join("state"))
            .map_err(failed)
    }

    /// Returns the directory of the received objects.
    pub(super) fn path(&self) -> &Path {
        self.quarantine.path()
    }

    /// Moves the received objects into the repository.
    pub(super) fn publish(self) -> Result<()> {
        let path = self.quarantine.path().to_owned();
        self.quarantine.publish().map_err(from_odb)?;
        let _ = std::fs::remove_file(self.directory.join("state"));
        std::fs::remove_dir_all(&path).context(ErrorKind::Io, "cannot remove", &path)
    }

    /// Discards the received objects, because they are inconsistent.
    pub(super) fn discard(self) {
        self.forget();
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(self.directory.join("state"));
        let _ = std::fs::remove_dir_all(self.quarantine.path());
    }

    /// Handles a segment that is inconsistent with the segments of an earlier session, so that the
    /// next session starts again.
    fn spoiled(&self, error: IncomingRefusal) -> IncomingRefusal {
        if self.has_past && error.kind() == pronto_netsync::ErrorKind::Malformed {
            self.forget();
        }
        error
    }
}

fn quota() -> IncomingRefusal {
    let message = "the peer sent more than this side accepts in one session";
    IncomingRefusal::new(pronto_netsync::ErrorKind::Quota, message)
}

/// Opens the store of the received objects only.
fn only(quarantine: &Quarantine) -> Result<Store> {
    let mut options = quarantine.store().options().clone();
    options.alternates = Vec::new();
    let cached = &mut options.delta_base_cache_bytes;
    *cached = CACHED_BYTES.min(*cached);
    Store::open(quarantine.path(), options).map_err(from_odb)
}

/// Removes unfinished files of a killed process. The lock excludes other processes.
fn remove_temporary(directory: &Path) {
    for file in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if file.file_name().as_encoded_bytes().starts_with(b"tmp_") {
            let _ = std::fs::remove_file(file.path());
        }
    }
}
