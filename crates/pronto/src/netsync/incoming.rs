//! What comes: each segment is indexed while it arrives, in a thread of its own, into a quarantine
//! that stays until everything has come.
//!
//! Budget: each byte is copied once, into the piece that the indexer reads, and at most four such
//! pieces wait; the indexer writes it once. Two syncs and five renames or links for each segment. What
//! deltas build on that is not in their own segment is put into the pack, too.
//!
//! Memory is bounded whatever a peer sends: by the size of segments and of objects that are held,
//! and by what the indexer keeps.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_netsync::message::{MAX_HELD, Resume, SegmentKind};
use pronto_odb::{Quarantine, Store};
use pronto_pack::indexer::{Contents, Context, InFiles, Inspect, Options, Outcome, index_stream};
use rustix::fs::{FlockOperation, flock};

use super::bases::{Bases, Link, SegmentBases};
use super::state::State;
use super::{failed, refused};
use crate::fsck::{Inspector, Levels, Scope};
use crate::objects::from_odb;
use crate::revision::parse_commit;
use crate::{ErrorKind, Repository, Result, packs};

type Refusal = pronto_netsync::Error;

/// How many pieces may wait for the indexer.
const WAITING_PIECES: usize = 4;

/// The most that a segment may have that is not a single large object.
const MOST_BYTES: u64 = 64 << 20;
const MOST_OBJECTS: u64 = 1 << 18;

/// Blobs above this that are stored whole pass through in pieces, others are made in files without a
/// name.
const LARGE_BLOB_BYTES: u64 = 8 << 20;

/// How long a session waits for an earlier one with the same peer to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The largest object that is held, and the largest delta.
pub(super) const MOST_OBJECT_BYTES: u64 = 16 << 20;

/// The largest blob that a delta may make, or be made of.
pub(super) const MOST_DELTA_BYTES: u64 = 128 << 20;

/// What the indexer may keep of contents, and of deltas that wait for their base.
const KEPT_BYTES: usize = 8 << 20;

/// What has come of one peer.
pub(super) struct Incoming {
    repository: Arc<Repository>,
    directory: PathBuf,
    quarantine: Quarantine,
    state: State,
    /// Whether something was there before this session.
    has_past: bool,
    bases: Arc<Bases>,
    /// What may still be stored.
    left_bytes: u64,
    threads: usize,
    current: Option<Segment>,
    /// Held as long as this is: one session at a time receives from a peer.
    _lock: File,
}

/// A segment while it comes.
struct Segment {
    objects: u64,
    bytes: u64,
    pieces: Option<SyncSender<Vec<u8>>>,
    indexer: Option<JoinHandle<Indexed>>,
}

/// What has come of a segment.
struct Arrived {
    outcome: Outcome,
    /// The checksum that it came with.
    checksum: Vec<u8>,
    links: Vec<Link>,
}

type Indexed = Result<Arrived, Refusal>;

/// What a segment is indexed with.
struct Indexer {
    repository: Arc<Repository>,
    store: Store,
    bases: Arc<Bases>,
    directory: PathBuf,
    bytes: u64,
    threads: usize,
}

/// Takes the lock; `false` if somebody else has it for long. The end of a session that is over for
/// the peer may not have come here yet.
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

impl Incoming {
    /// Opens what is kept in `directory` of a peer with whom the commits `known` are shared.
    pub(super) fn open(
        repository: &Arc<Repository>,
        directory: &Path,
        known: &[ObjectId],
        (budget_bytes, threads): (u64, usize),
    ) -> Result<Self, Refusal> {
        let store = repository.objects().map_err(failed)?.without_replacements();
        let prepare = || -> Result<File> {
            std::fs::create_dir_all(directory).context(ErrorKind::Io, "cannot make", directory)?;
            let path = directory.join("lock");
            File::create(&path).context(ErrorKind::Io, "cannot make", &path)
        };
        let lock = prepare().map_err(failed)?;
        if !lock_soon(&lock) {
            let message = "another session with this peer is under way";
            return Err(Refusal::new(pronto_netsync::ErrorKind::Busy, message));
        }
        let quarantine = Quarantine::keep(&store, &directory.join("objects"));
        let quarantine = quarantine.map_err(from_odb).map_err(failed)?;
        remove_temporary(&quarantine.pack_directory());
        let state = State::read(&directory.join("state")).unwrap_or_default();
        let stores = (
            quarantine.store().clone(),
            only(&quarantine).map_err(failed)?,
        );
        let edges = state.edges.clone();
        let bases = Bases::new(Arc::clone(repository), stores, known.to_vec(), edges);
        Ok(Incoming {
            repository: Arc::clone(repository),
            directory: directory.to_owned(),
            quarantine,
            has_past: state.resume.is_some(),
            state,
            bases: Arc::new(bases.map_err(failed)?),
            left_bytes: budget_bytes,
            threads,
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

    /// All that is here, and what has come.
    pub(super) fn store(&self) -> &Store {
        self.quarantine.store()
    }

    /// A store of nothing but what has come.
    pub(super) fn only(&self) -> Result<Store> {
        only(&self.quarantine)
    }

    pub(super) fn begin(
        &mut self,
        kind: SegmentKind,
        objects: u64,
        bytes: u64,
    ) -> Result<(), Refusal> {
        let is_bounded = match kind {
            SegmentKind::Pack => bytes <= MOST_BYTES && objects <= MOST_OBJECTS,
            SegmentKind::LargeBlob => objects == 1,
        };
        if !is_bounded {
            return Err(refused(format!(
                "a segment of {objects} objects and {bytes} bytes"
            )));
        }
        let left = self.left_bytes.checked_sub(bytes);
        self.left_bytes = left.ok_or_else(quota)?;
        self.bases.limit(self.left_bytes);
        let (pieces, receiver) = sync_channel(WAITING_PIECES);
        let indexer = Indexer {
            repository: Arc::clone(&self.repository),
            store: self.quarantine.store().clone(),
            bases: Arc::clone(&self.bases),
            directory: self.quarantine.pack_directory(),
            bytes,
            threads: self.threads,
        };
        let work = move || indexer.run(receiver);
        let indexer = std::thread::Builder::new()
            .name("netsync".into())
            .spawn(work);
        let indexer = indexer.context(ErrorKind::Io, "cannot start a thread", &self.directory);
        self.current = Some(Segment {
            objects,
            bytes,
            pieces: Some(pieces),
            indexer: Some(indexer.map_err(failed)?),
        });
        Ok(())
    }

    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let Some(segment) = &mut self.current else {
            return Err(refused("data without a segment"));
        };
        let sent = segment
            .pieces
            .as_ref()
            .map(|pieces| pieces.send(bytes.to_vec()));
        match sent {
            Some(Ok(())) => Ok(()),
            // The indexer has stopped, and says why.
            _ => {
                let why = segment.finish().err();
                Err(self.spoiled(why.unwrap_or_else(|| refused("data behind a pack"))))
            }
        }
    }

    pub(super) fn end(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Refusal> {
        let Some(mut segment) = self.current.take() else {
            return Err(refused("the end of no segment"));
        };
        let arrived = segment.finish().map_err(|error| self.spoiled(error))?;
        let Arrived { outcome, links, .. } = arrived;
        let objects = u64::from(outcome.objects - outcome.added);
        if objects != segment.objects || arrived.checksum != checksum.as_slice() {
            let reverse = outcome.pack.with_extension("rev");
            for path in [&outcome.index, &reverse, &outcome.pack] {
                let _ = std::fs::remove_file(path);
            }
            return Err(refused(format!(
                "a segment of {objects} objects where {} were announced, or of another checksum",
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
        let parents = |id: &ObjectId| links.iter().any(|(_, parents)| parents.contains(id));
        self.state.heads.retain(|id| !parents(id));
        let parents: std::collections::HashSet<&ObjectId> =
            links.iter().flat_map(|(_, parents)| parents).collect();
        let heads = links
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| !parents.contains(id));
        self.state.heads.extend(heads);
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

    /// Moves in all that has come.
    pub(super) fn publish(self) -> Result<()> {
        let path = self.quarantine.path().to_owned();
        self.quarantine.publish().map_err(from_odb)?;
        let _ = std::fs::remove_file(self.directory.join("state"));
        std::fs::remove_dir_all(&path).context(ErrorKind::Io, "cannot remove", &path)
    }

    /// Throws away what has come: it does not hold together.
    pub(super) fn discard(self) {
        self.forget();
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(self.directory.join("state"));
        let _ = std::fs::remove_dir_all(self.quarantine.path());
    }

    /// A segment that does not fit with what came in an earlier session: the next one begins anew.
    fn spoiled(&self, error: Refusal) -> Refusal {
        if self.has_past && *error.kind() == pronto_netsync::ErrorKind::Malformed {
            self.forget();
        }
        error
    }
}

fn quota() -> Refusal {
    let message = "more was sent than is taken at once";
    Refusal::new(pronto_netsync::ErrorKind::Quota, message)
}

/// A store of nothing but what has come.
fn only(quarantine: &Quarantine) -> Result<Store> {
    let mut options = quarantine.store().options().clone();
    options.alternates = Vec::new();
    Store::open(quarantine.path(), options).map_err(from_odb)
}

/// Removes what a process that was killed left half written. Nobody else is at it.
fn remove_temporary(directory: &Path) {
    for file in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if file.file_name().as_encoded_bytes().starts_with(b"tmp_") {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

impl Segment {
    /// Waits for the indexer.
    fn finish(&mut self) -> Indexed {
        self.pieces = None;
        let Some(indexer) = self.indexer.take() else {
            return Err(refused("a segment that has failed"));
        };
        let died = || refused("a segment could not be indexed");
        indexer.join().map_err(|_| died())?
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.indexer.is_some() {
            let _ = self.finish();
        }
    }
}

impl Indexer {
    /// Indexes a pack, checked as `transfer.fsckObjects` has it checked, whatever is configured.
    fn run(&self, pieces: Receiver<Vec<u8>>) -> Indexed {
        let (options, levels) = self.options().map_err(failed)?;
        let scope = Scope {
            objects: true,
            store: Some(&self.store),
            ..Scope::default()
        };
        let look = Look {
            inspector: Inspector::new(options.kind, &levels, scope),
            links: Mutex::default(),
        };
        let bases = SegmentBases {
            bases: &self.bases,
            links: &look.links,
        };
        let context = Context {
            existing: Some(&self.store),
            bases: Some(&bases),
            inspect: Some(&look),
            ..Context::default()
        };
        let mut input = Pieces {
            receiver: pieces,
            piece: Vec::new(),
            at: 0,
            id_bytes: options.kind.len_in_bytes(),
            last: Vec::new(),
        };
        let outcome = index_stream(&mut input, &self.directory, &options, &context);
        let reports = look.inspector.take_reports();
        let outcome = outcome.map_err(|error| {
            let found = reports.iter().find(|report| report.is_error);
            let found = found.map_or_else(String::new, |report| format!(": {}", report.text));
            match error.kind() {
                pronto_pack::ErrorKind::Io => failed(packs::from_pack(error)),
                _ => refused(format!("a segment is refused: {}{found}", error.message())),
            }
        })?;
        let (checksum, links) = (input.last, look.links.into_inner());
        let links = links.unwrap_or_else(PoisonError::into_inner);
        Ok(Arrived {
            outcome,
            checksum,
            links,
        })
    }

    fn options(&self) -> Result<(Options, Levels)> {
        let config = self.repository.config();
        let mut options = packs::indexer_options(config, self.repository.object_hash())?;
        options.threads = self.threads;
        options.max_input_size_bytes = Some(self.bytes);
        options.big_file_threshold_bytes = options.big_file_threshold_bytes.min(LARGE_BLOB_BYTES);
        options.max_object_size_bytes = Some(MOST_OBJECT_BYTES);
        options.in_files = Some(InFiles {
            directory: self.directory.clone(),
            from_bytes: LARGE_BLOB_BYTES,
            most_bytes: MOST_DELTA_BYTES,
        });
        options.base_cache_bytes = KEPT_BYTES;
        options.kept_deltas_bytes = KEPT_BYTES;
        options.must_end = true;
        options.fix_thin = true;
        options.forbid_duplicates = true;
        options.reverse_index = config.bool_or("pack.writereverseindex", true)?;
        let mut levels = Levels::strict();
        let home = self.repository.environment().home();
        let warn = &mut |warning| self.repository.warn(warning);
        levels.configure(config, "fetch.fsck.", home, warn)?;
        Ok((options, levels))
    }
}

/// Sees that objects are sound, and which commits there are.
struct Look<'a> {
    inspector: Inspector<'a>,
    links: Mutex<Vec<Link>>,
}

impl Inspect for Look<'_> {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        if kind == ObjectKind::Commit
            && let Some(links) = parse_commit(content)
        {
            let mut found = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((*id, links.parents));
        }
        self.inspector.object(kind, id, content)
    }

    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), pronto_pack::Error> {
        self.inspector.large_blob(id, size_bytes)
    }

    fn complete(&self, contents: &dyn Contents) -> Result<(), pronto_pack::Error> {
        self.inspector.complete(contents)
    }
}

/// Pieces of a pack as one stream, which ends when nobody sends any more.
struct Pieces {
    receiver: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
    /// How many bytes a checksum has, and the last so many bytes.
    id_bytes: usize,
    last: Vec<u8>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.receiver.recv() {
                Ok(piece) => {
                    let start = piece.len().saturating_sub(self.id_bytes);
                    self.last.extend_from_slice(&piece[start..]);
                    let surplus = self.last.len().saturating_sub(self.id_bytes);
                    self.last.drain(..surplus);
                    (self.piece, self.at) = (piece, 0);
                }
                Err(_) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
