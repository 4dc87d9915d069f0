//! What comes: each segment is indexed while it arrives, in a thread of its own, into a quarantine
//! that stays until everything has come.
//!
//! Budget: each byte is copied once, into the piece that the indexer reads, and at most four such
//! pieces wait; the indexer writes it once. Two syncs and five renames or links for each segment.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bstr::ByteSlice;
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_netsync::message::{MARK_BYTES, MAX_HELD, Resume};
use pronto_odb::{Quarantine, Store};
use pronto_pack::indexer::{Contents, Context, Inspect, Outcome, index_stream};
use rustix::fs::{FlockOperation, flock};

use super::{failed, refused};
use crate::fsck::{Inspector, Levels, Scope};
use crate::objects::from_odb;
use crate::revision::parse_commit;
use crate::{ErrorKind, Repository, Result, packs};

type Refusal = pronto_netsync::Error;

/// How many pieces may wait for the indexer.
const WAITING_PIECES: usize = 4;

/// What has come of one peer.
pub(super) struct Incoming {
    repository: Arc<Repository>,
    directory: PathBuf,
    quarantine: Quarantine,
    state: State,
    current: Option<Segment>,
    /// Held as long as this is: one session at a time receives from a peer.
    _lock: File,
}

/// How far it has come.
#[derive(Clone, Debug, Default)]
struct State {
    resume: Option<Resume>,
    /// Commits in quarantine that are no parents of others there.
    heads: Vec<ObjectId>,
}

/// A segment while it comes.
struct Segment {
    objects: u64,
    pieces: Option<SyncSender<Vec<u8>>>,
    indexer: Option<JoinHandle<Indexed>>,
}

/// A commit and what it builds on.
type Link = (ObjectId, Vec<ObjectId>);

/// What has come of a segment.
type Indexed = Result<(Outcome, Vec<Link>), Refusal>;

impl Incoming {
    /// Opens what is kept in `directory`.
    pub(super) fn open(repository: &Arc<Repository>, directory: &Path) -> Result<Self, Refusal> {
        let store = repository.objects().map_err(failed)?.without_replacements();
        let prepare = || -> Result<File> {
            std::fs::create_dir_all(directory).context(ErrorKind::Io, "cannot make", directory)?;
            let path = directory.join("lock");
            File::create(&path).context(ErrorKind::Io, "cannot make", &path)
        };
        let lock = prepare().map_err(failed)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let message = "another session with this peer is under way";
            return Err(Refusal::new(pronto_netsync::ErrorKind::Busy, message));
        }
        let quarantine = Quarantine::keep(&store, &directory.join("objects"));
        let quarantine = quarantine.map_err(from_odb).map_err(failed)?;
        remove_temporary(&quarantine.pack_directory());
        Ok(Incoming {
            repository: Arc::clone(repository),
            directory: directory.to_owned(),
            quarantine,
            state: State::read(&directory.join("state")).unwrap_or_default(),
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
        let mut options = self.quarantine.store().options().clone();
        options.alternates = Vec::new();
        Store::open(self.quarantine.path(), options).map_err(from_odb)
    }

    pub(super) fn begin(&mut self, objects: u64, bytes: u64) -> Result<(), Refusal> {
        let (pieces, receiver) = sync_channel(WAITING_PIECES);
        let repository = Arc::clone(&self.repository);
        let store = self.quarantine.store().clone();
        let directory = self.quarantine.pack_directory();
        let work = move || index(&repository, &store, &directory, bytes, receiver);
        let indexer = std::thread::Builder::new()
            .name("netsync".into())
            .spawn(work);
        let indexer = indexer.context(ErrorKind::Io, "cannot start a thread", &self.directory);
        self.current = Some(Segment {
            objects,
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
            _ => Err(segment
                .finish()
                .err()
                .unwrap_or_else(|| refused("data behind a pack"))),
        }
    }

    pub(super) fn end(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Refusal> {
        let Some(mut segment) = self.current.take() else {
            return Err(refused("the end of no segment"));
        };
        let (outcome, links) = segment.finish()?;
        if u64::from(outcome.objects) != segment.objects || outcome.checksum != *checksum {
            let reverse = outcome.pack.with_extension("rev");
            for path in [&outcome.index, &reverse, &outcome.pack] {
                let _ = std::fs::remove_file(path);
            }
            return Err(refused(format!(
                "a segment of {} objects where {} were announced, or of another checksum",
                outcome.objects, segment.objects
            )));
        }
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
        let _ = std::fs::remove_file(self.directory.join("state"));
        let _ = std::fs::remove_dir_all(self.quarantine.path());
    }
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

/// Indexes a pack, checked as `transfer.fsckObjects` has it checked, whatever is configured.
fn index(
    repository: &Repository,
    store: &Store,
    directory: &Path,
    bytes: u64,
    pieces: Receiver<Vec<u8>>,
) -> Indexed {
    let config = repository.config();
    let prepare = || -> Result<_> {
        let mut options = packs::indexer_options(config, repository.object_hash())?;
        options.max_input_size_bytes = Some(bytes);
        options.must_end = true;
        options.sync = true;
        options.forbid_duplicates = true;
        options.reverse_index = config.bool_or("pack.writereverseindex", true)?;
        let mut levels = Levels::strict();
        let home = repository.environment().home();
        let warn = &mut |warning| repository.warn(warning);
        levels.configure(config, "fetch.fsck.", home, warn)?;
        Ok((options, levels))
    };
    let (options, levels) = prepare().map_err(failed)?;
    let scope = Scope {
        objects: true,
        store: Some(store),
        ..Scope::default()
    };
    let look = Look {
        inspector: Inspector::new(options.kind, &levels, scope),
        links: Mutex::default(),
    };
    // No bases: what a delta builds on is in its own pack. A peer could make its own else what
    // it only knows the name of.
    let context = Context {
        existing: Some(store),
        inspect: Some(&look),
        ..Context::default()
    };
    let mut input = Pieces {
        receiver: pieces,
        piece: Vec::new(),
        at: 0,
    };
    let outcome = index_stream(&mut input, directory, &options, &context);
    let reports = look.inspector.take_reports();
    let outcome = outcome.map_err(|error| {
        let found = reports.iter().find(|report| report.is_error);
        let found = found.map_or_else(String::new, |report| format!(": {}", report.text));
        match error.kind() {
            pronto_pack::ErrorKind::Io => failed(packs::from_pack(error)),
            _ => refused(format!("a segment is refused: {}{found}", error.message())),
        }
    })?;
    let links = look
        .links
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok((outcome, links))
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
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.receiver.recv() {
                Ok(piece) => (self.piece, self.at) = (piece, 0),
                Err(_) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl State {
    /// None if there is none, or it is not one: then what is there is sent again.
    fn read(path: &Path) -> Option<State> {
        let content = std::fs::read(path).ok()?;
        let mut lines = content.lines();
        let objects = lines
            .next()?
            .strip_prefix(b"objects ")?
            .to_str()
            .ok()?
            .parse()
            .ok()?;
        // As many hexadecimal digits as an id of SHA-256 has.
        let mark = ObjectId::from_hex(lines.next()?.strip_prefix(b"mark ")?).ok()?;
        let heads = lines.map(|line| ObjectId::from_hex(line.strip_prefix(b"head ")?).ok());
        Some(State {
            resume: Some(Resume {
                objects,
                mark: <[u8; MARK_BYTES]>::try_from(mark.as_slice()).ok()?,
            }),
            heads: heads.collect::<Option<_>>()?,
        })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let Some(resume) = self.resume else {
            return Ok(());
        };
        let mark = resume.mark.iter().map(|byte| format!("{byte:02x}"));
        let mut text = format!(
            "objects {}\nmark {}\n",
            resume.objects,
            mark.collect::<String>()
        );
        for head in &self.heads {
            text.push_str(&format!("head {head}\n"));
        }
        let new = path.with_extension("new");
        std::fs::write(&new, text).context(ErrorKind::Io, "cannot write", &new)?;
        std::fs::rename(&new, path).context(ErrorKind::Io, "cannot rename", &new)
    }
}
