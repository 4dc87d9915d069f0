//! A received segment, which is indexed while it is received, or stored in a file until it is
//! complete.
//!
//! A client indexes immediately, in a thread. A server first stores the bytes in a file without a
//! name, so that the memory of the indexer is needed only while this side works, however slow the
//! peer is.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::error::IoContext as _;
use pronto_odb::Store;
use pronto_pack::indexer::{
    InFiles, IndexContext, IndexedObjects, Inspect, Options, Outcome, index_stream,
};

use super::{IncomingRefusal, MOST_DELTA_BYTES, MOST_OBJECT_BYTES};
use crate::bases::{CommitParents, PermittedBases, SegmentBases};
use crate::{failed, refused};
use pronto::Notice;
use pronto::fsck::{FsckInspector, InspectionScope, Levels};
use pronto::{ErrorKind, Repository, Result, packs};
use pronto_object::CommitLinks;

/// The largest number of pieces that are queued for the indexer.
const WAITING_PIECES: usize = 4;

/// The size in bytes above which blobs that are stored whole are processed in pieces, and other
/// blobs are reconstructed in files without a name.
const LARGE_BLOB_BYTES: u64 = 8 << 20;

/// The memory in bytes of the indexer for contents, and for deltas that wait for their base.
const KEPT_BYTES: usize = 8 << 20;

/// The largest number of threads that index a segment, unless the options set another number. Each
/// thread uses up to 24 MiB. The sender, which searches for deltas, needs more time than two
/// indexing threads.
const MOST_THREADS: usize = 2;

/// The largest number of parents of a commit. They are held in memory, and a pack can encode many
/// of them in few bytes.
pub const MOST_PARENTS: usize = 4096;

/// The largest total number of parents of the commits of a segment.
pub const MOST_PARENTS_OF_ALL: usize = 1 << 20;

/// A segment that is being received.
pub(super) struct IncomingSegment {
    pub(super) objects: u64,
    pub(super) bytes: u64,
    way: SegmentDestination,
}

/// The destination of the bytes of a segment.
enum SegmentDestination {
    /// An indexer in a thread.
    Thread {
        pieces: Option<SyncSender<Vec<u8>>>,
        indexer: Option<JoinHandle<IndexResult>>,
    },
    /// A file, which is indexed when it is complete.
    File { spool: File, indexer: Box<Indexer> },
}

/// An indexed segment.
pub(super) struct IndexedSegment {
    pub(super) outcome: Outcome,
    /// The checksum at the end of the received pack.
    pub(super) checksum: Vec<u8>,
    pub(super) links: Vec<CommitParents>,
}

type IndexResult = Result<IndexedSegment, IncomingRefusal>;

/// Indexes a segment.
pub(super) struct Indexer {
    pub(super) repository: Arc<Repository>,
    pub(super) store: Store,
    pub(super) bases: Arc<PermittedBases>,
    pub(super) directory: PathBuf,
    pub(super) bytes: u64,
    pub(super) threads: usize,
}

impl IncomingSegment {
    /// Starts a segment with `objects` objects. With `spools`, the segment is written to a file
    /// first.
    pub(super) fn begin(indexer: Indexer, objects: u64, spools: bool) -> Result<IncomingSegment> {
        let bytes = indexer.bytes;
        let way = match spools {
            true => SegmentDestination::File {
                spool: nameless(&indexer.directory)?,
                indexer: Box::new(indexer),
            },
            false => {
                let (pieces, receiver) = sync_channel(WAITING_PIECES);
                let directory = indexer.directory.clone();
                let work = move || indexer.run(PackPieces::new(receiver));
                let thread = std::thread::Builder::new()
                    .name("netsync".into())
                    .spawn(work);
                let thread = thread.context(ErrorKind::Io, "cannot start a thread", &directory);
                SegmentDestination::Thread {
                    pieces: Some(pieces),
                    indexer: Some(thread?),
                }
            }
        };
        Ok(IncomingSegment {
            objects,
            bytes,
            way,
        })
    }

    /// Processes the next bytes.
    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), IncomingRefusal> {
        match &mut self.way {
            SegmentDestination::Thread { pieces, .. } => {
                let sent = pieces.as_ref().map(|pieces| pieces.send(bytes.to_vec()));
                if let Some(Ok(())) = sent {
                    return Ok(());
                }
                // The indexer has stopped, and returns the reason.
                let why = self.finish().err();
                Err(why.unwrap_or_else(|| refused("the peer sent data after the end of the pack")))
            }
            SegmentDestination::File { spool, indexer } => spool
                .write_all(bytes)
                .context(
                    ErrorKind::Io,
                    "cannot write a segment to",
                    &indexer.directory,
                )
                .map_err(failed),
        }
    }

    /// Ends the segment: waits for the indexer, or indexes the file.
    pub(super) fn finish(&mut self) -> IndexResult {
        match &mut self.way {
            SegmentDestination::Thread { pieces, indexer } => {
                *pieces = None;
                let Some(indexer) = indexer.take() else {
                    return Err(refused("the segment has already failed"));
                };
                let died = || refused("cannot index a segment: the thread panicked");
                indexer.join().map_err(|_| died())?
            }
            SegmentDestination::File { spool, indexer } => {
                let rewound = spool.rewind();
                rewound
                    .context(
                        ErrorKind::Io,
                        "cannot read a segment in",
                        &indexer.directory,
                    )
                    .map_err(failed)?;
                indexer.run(&*spool)
            }
        }
    }
}

impl Drop for IncomingSegment {
    fn drop(&mut self) {
        if let SegmentDestination::Thread {
            indexer: Some(_), ..
        } = self.way
        {
            let _ = self.finish();
        }
    }
}

/// Creates a file without a name, which is deleted when its last handle is closed.
fn nameless(directory: &Path) -> Result<File> {
    let path = directory.join("tmp_segment");
    let make = || {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let _ = std::fs::remove_file(&path);
        file
    };
    make().context(ErrorKind::Io, "cannot create", &path)
}

impl Indexer {
    /// Indexes a pack, with the checks of `transfer.fsckObjects`, whatever the configuration is.
    fn run(&self, input: impl Read) -> IndexResult {
        let (options, levels) = self.options().map_err(failed)?;
        let scope = InspectionScope {
            objects: true,
            ..InspectionScope::default()
        };
        let look = SegmentInspector {
            inspector: FsckInspector::new(options.kind, &levels, scope),
            bases: &self.bases,
            links: Mutex::default(),
            parents: Mutex::new(0),
        };
        let bases = SegmentBases {
            bases: &self.bases,
            links: &look.links,
        };
        let context = IndexContext {
            existing: Some(&self.store),
            bases: Some(&bases),
            inspect: Some(&look),
            ..IndexContext::default()
        };
        let mut input = ChecksumReader {
            input,
            id_bytes: options.kind.len_in_bytes(),
            last: Vec::new(),
        };
        let outcome = index_stream(&mut input, &self.directory, &options, &context);
        let reports = look.inspector.take_reports();
        let outcome = outcome.map_err(|error| {
            let found = reports.iter().find(|report| report.is_error);
            let found = found.map_or_else(String::new, |report| format!(": {report}"));
            match error.kind() {
                pronto_pack::ErrorKind::Io => failed(packs::from_pack(error)),
                _ => refused(format!("invalid segment: {}{found}", error.message())),
            }
        })?;
        let (checksum, links) = (input.last, look.links.into_inner());
        let links = links.unwrap_or_else(PoisonError::into_inner);
        Ok(IndexedSegment {
            outcome,
            checksum,
            links,
        })
    }

    fn options(&self) -> Result<(Options, Levels)> {
        let config = self.repository.config();
        let mut options = packs::indexer_options(config, self.repository.object_hash())?;
        options.threads = match self.threads {
            0 => MOST_THREADS.min(pronto_io::pool::cores()),
            threads => threads,
        };
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
        let mut levels = Levels::strict();
        let home = self.repository.environment().home();
        let warn = &mut |check| self.repository.notify(Notice::UnknownFsckCheck(check));
        levels.configure(config, "fetch.fsck.", home, warn)?;
        Ok((options, levels))
    }
}

/// Checks objects, and collects commits.
struct SegmentInspector<'a> {
    inspector: FsckInspector<'a>,
    bases: &'a PermittedBases,
    links: Mutex<Vec<CommitParents>>,
    /// The total number of parents in the links.
    parents: Mutex<usize>,
}

impl Inspect for SegmentInspector<'_> {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        if kind == ObjectKind::Commit
            && let Some(links) = CommitLinks::parse(content)
        {
            let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
            *parents += links.parents.len();
            if links.parents.len() > MOST_PARENTS || *parents > MOST_PARENTS_OF_ALL {
                let message = "a commit has too many parents";
                return Err(pronto_pack::Error::new(
                    pronto_pack::ErrorKind::Limit,
                    message,
                ));
            }
            let mut found = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(CommitParents {
                commit: *id,
                parents: links.parents,
            });
        }
        self.inspector.object(kind, id, content)
    }

    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), pronto_pack::Error> {
        self.inspector.large_blob(id, size_bytes)
    }

    fn complete(&self, contents: &dyn IndexedObjects) -> Result<(), pronto_pack::Error> {
        let bases = SegmentBases {
            bases: self.bases,
            links: &self.links,
        };
        self.inspector.complete(&Visible { contents, bases })
    }
}

/// The objects of a pack, and the objects that are visible to the peer. Other objects of this
/// repository are hidden, so that no response depends on them.
struct Visible<'a> {
    contents: &'a dyn IndexedObjects,
    bases: SegmentBases<'a>,
}

impl IndexedObjects for Visible<'_> {
    fn kind(&self, id: &oid) -> Option<ObjectKind> {
        self.contents.kind(id)
    }

    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, pronto_pack::Error> {
        match self.contents.find(id, out)? {
            Some(kind) => Ok(Some(kind)),
            None => self.bases.look(id, out),
        }
    }
}

/// A stream of the pieces of a pack, which ends when the sender is dropped.
struct PackPieces {
    receiver: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl PackPieces {
    fn new(receiver: Receiver<Vec<u8>>) -> Self {
        PackPieces {
            receiver,
            piece: Vec::new(),
            at: 0,
        }
    }
}

impl Read for PackPieces {
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

/// A stream that keeps its last bytes, which are the checksum of the pack.
struct ChecksumReader<R> {
    input: R,
    /// The length of the checksum in bytes.
    id_bytes: usize,
    /// The last bytes of the stream, at most `id_bytes` of them.
    last: Vec<u8>,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let start = count.saturating_sub(self.id_bytes);
        self.last.extend_from_slice(&buffer[start..count]);
        let surplus = self.last.len().saturating_sub(self.id_bytes);
        self.last.drain(..surplus);
        Ok(count)
    }
}
