//! Indexes a pack as it arrives (`git index-pack --stdin`): in one pass, the bytes are written,
//! inflated, hashed and resolved at the same time. See `docs/design/index-pack.md`.
//!
//! ```
//! use pronto_pack::indexer::{IndexContext, Options, index_stream};
//! # let directory = std::env::temp_dir().join(format!("pronto-indexer-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! // The pack that holds nothing.
//! let mut pack = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
//! let mut digester = pronto_hash::TrailerDigester::new(pronto_hash::Kind::Sha1);
//! digester.update(&pack);
//! pack.extend_from_slice(digester.finish().as_slice());
//!
//! let options = Options::default();
//! let outcome = index_stream(&mut &pack[..], &directory, &options, &IndexContext::default())?;
//! assert_eq!(outcome.objects, 0);
//! assert!(outcome.index.exists());
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrive;
mod batch;
mod buffers;
mod collide;
mod contents;
mod crew;
mod digesting;
mod examine;
mod forest;
mod indexed;
mod kept;
mod limits;
mod pipeline;
mod reader;
mod receive;
mod resolve;
mod scout;
mod scouted;
mod segment;
mod spool;
mod tables;
mod thin;
mod verify;
mod window;

pub use contents::IndexedObjects;
pub use examine::{ExaminedPack, examine_stream, scan_stream};
pub use verify::{Checked, VerifiedEntry, check_file};

use crate::error::{Error, ErrorKind};
use crate::idx;
use crate::idx::write::IndexTable;
pub use crate::index_options::{INDEXING, InFiles, Options, RECEIVING, UNPACKING};
use crate::install::{self, PackFileNames};
use crate::temporary::TemporaryFile;
use gix_object::Kind as ObjectKind;
use limits::ObjectLimits;
use pipeline::{IndexRun, ReceivedPhase};
use pronto_hash::{Kind, ObjectId, oid};
use pronto_io::error::OsReason;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Meter, Progress};
use pronto_io::view::{FileView, ViewAccess};
use spool::SpoolStorage;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The result of indexing a pack.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The checksum of the pack, which names its files.
    pub checksum: ObjectId,
    /// The number of objects in the pack, including the appended bases.
    pub objects: u32,
    /// The number of deltas.
    pub deltas: u64,
    /// The number of bases that were appended to a thin pack.
    pub added: u32,
    /// The path of the pack.
    pub pack: PathBuf,
    /// The path of the index.
    pub index: PathBuf,
    /// The path of the `.keep` file, if a new one was requested and written.
    pub keep: Option<PathBuf>,
    /// Bytes after the pack that had already been read.
    pub leftover: Vec<u8>,
}

/// Gives the indexer access to existing objects. Called from one thread at a time.
pub trait ExistingObjects: Sync {
    /// Appends the positions in `ids` of existing objects to `found`. `ids` are in ascending order.
    /// Each call passes up to some ten thousand ids, so an implementation can merge instead of
    /// search.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn contains_batch(&self, ids: &[ObjectId], found: &mut Vec<usize>) -> Result<(), Error>;

    /// Reads the object `id` into `out`, replacing its content. Returns `None` if the object does
    /// not exist.
    ///
    /// # Errors
    /// Fails if the object is damaged or reading fails.
    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error>;
}

/// Inspects every object of the pack: for fsck, or to collect links. Called from many threads, once
/// for each entry, in no particular order. An error rejects the pack.
pub trait Inspect: Sync {
    /// Inspects an object of the pack.
    ///
    /// # Errors
    /// Fails if the object must be rejected.
    fn object(&self, kind: ObjectKind, id: &ObjectId, content: &[u8]) -> Result<(), Error>;

    /// Inspects a blob above [`Options::big_file_threshold_bytes`], whose content is not available.
    ///
    /// # Errors
    /// Fails if the object must be rejected.
    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), Error>;

    /// Called once after all objects have been inspected, before any file has its final name. This
    /// is the last opportunity to reject the pack.
    ///
    /// # Errors
    /// Fails if the pack must be rejected.
    fn complete(&self, contents: &dyn IndexedObjects) -> Result<(), Error> {
        let _ = contents;
        Ok(())
    }
}

/// The callbacks and sources of an indexer, besides its input.
#[derive(Clone, Copy)]
pub struct IndexContext<'a> {
    /// The existing objects of the destination, for collision checks and as bases of thin packs.
    pub existing: Option<&'a dyn ExistingObjects>,
    /// The existing objects that may be bases of thin packs, if not all of them may. Queried after
    /// all objects that need no such base are resolved.
    pub bases: Option<&'a dyn ExistingObjects>,
    /// The inspector of every object.
    pub inspect: Option<&'a dyn Inspect>,
    /// The receiver of progress events.
    pub progress: &'a dyn Progress,
    /// A callback for when the whole pack has arrived and its checksum is correct.
    pub arrived: Option<&'a (dyn Fn() + Sync)>,
    /// The interrupt with which the operation can be cancelled.
    pub interrupt: Option<&'a Interrupt>,
    /// A callback that returns whether the input can be read without blocking: always for a file,
    /// never without a callback. Idle threads then read ahead in the input. Bytes after the pack
    /// may be read, and are returned as [`Outcome::leftover`].
    pub ready: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for IndexContext<'_> {
    fn default() -> Self {
        IndexContext {
            existing: None,
            bases: None,
            inspect: None,
            progress: &(),
            arrived: None,
            interrupt: None,
            ready: None,
        }
    }
}

/// Reads a pack from `input` as it arrives and writes the pack with its indexes to the existing
/// `directory`. No file gets its final name before everything is checked, and the index is renamed
/// last; after an error, no file is left. Bytes after the pack are not read, except those that
/// arrived together with its last bytes.
///
/// Reads and writes in pieces of one MiB. Memory is limited by the options, plus 60 bytes for each
/// object and a few objects for each thread.
///
/// # Errors
/// Fails with the kinds for an invalid pack, such as `ErrorKind::Corrupt` or
/// `ErrorKind::Truncated`, with the offset; with `ErrorKind::Unresolved` if a delta base does not
/// exist; with `ErrorKind::Collision`, `ErrorKind::Limit`, `ErrorKind::PackTooLarge`,
/// `ErrorKind::Duplicate`, `ErrorKind::Interrupted` or `ErrorKind::Io`; and with the error of the
/// inspector.
pub fn index_stream(
    input: &mut dyn Read,
    directory: &Path,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<Outcome, Error> {
    let reserved = options.pack_path.as_deref().map(install::reserve);
    let reserved = reserved.transpose()?;
    let beside = options.pack_path.as_deref().map(install::directory_of);
    let store = SpoolStorage::New(TemporaryFile::create(beside.unwrap_or(directory), "pack")?);
    let (done, store) = run(options, context).index(input, store)?;
    let SpoolStorage::New(pack) = store else {
        return Err(stopped());
    };
    let rows = rows(&done, options.kind);
    let names = PackFileNames {
        compares_index: true,
        ..PackFileNames::new(directory, options, &done.checksum)
    };
    let keep = install::install(&names, options, &rows, pack, &done.checksum)?;
    if let Some(reserved) = reserved {
        reserved.keep();
    }
    Ok(Outcome {
        pack: names.pack,
        index: names.index,
        keep,
        ..outcome(done)
    })
}

/// Indexes the existing file `pack`, which stays unchanged. Writes the index to `index`, and the
/// reverse index, if requested, to the same path with the extension `rev`. Existing indexes are
/// replaced. Options for received packs ([`Options::fix_thin`], …) have no effect.
///
/// # Errors
/// Fails as [`index_stream`] does, and with `ErrorKind::Trailing` if there are bytes after the
/// pack.
pub fn index_file(
    pack: &Path,
    index: &Path,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<Outcome, Error> {
    let (done, _) = index_given(pack, options, context)?;
    let rows = rows(&done, options.kind);
    let names = PackFileNames {
        pack: pack.to_owned(),
        index: index.to_owned(),
        replaces_pack: false,
        replaces_index: true,
        compares_index: false,
    };
    let keep = install::install_beside(&names, options, &rows, &done.checksum)?;
    Ok(Outcome {
        pack: names.pack,
        index: names.index,
        keep,
        ..outcome(done)
    })
}

/// Indexes the pack in a file, which must contain nothing else.
fn index_given(
    pack: &Path,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<(ReceivedPhase, SpoolStorage), Error> {
    let mut options = options.clone();
    options.must_end = true;
    let failed = |error| {
        let message = format!("could not open '{}' for reading", pack.display());
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    };
    let mut input = File::open(pack).map_err(failed)?;
    let view = FileView::open(pack, ViewAccess::Auto).map_err(failed)?;
    let context = IndexContext {
        ready: Some(&|| true),
        ..*context
    };
    run(&options, &context).index(&mut input, SpoolStorage::Given(view))
}

/// Indexes a pack in memory without disk access and returns the bytes of its index: for small
/// packs, and to test the indexer with arbitrary input.
///
/// # Errors
/// Fails as [`index_stream`] does.
pub fn index_bytes(
    pack: &[u8],
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<Vec<u8>, Error> {
    let store = SpoolStorage::Given(FileView::from_bytes(pack.to_vec()));
    let context = IndexContext {
        ready: Some(&|| true),
        ..*context
    };
    let (done, _) = run(options, &context).index(&mut &*pack, store)?;
    let mut index = Vec::new();
    idx::write::write(
        &mut index,
        &rows(&done, options.kind),
        options.index_version,
        options.index_offset_limit,
        &done.checksum,
    )
    .map_err(|error| Error::new(ErrorKind::Io, "unable to write").because(error))?;
    Ok(index)
}

fn run<'a>(options: &'a Options, context: &'a IndexContext<'a>) -> IndexRun<'a> {
    let threads = match options.threads {
        0 => pronto_io::pool::cores(),
        threads => threads,
    };
    IndexRun {
        options,
        context,
        threads,
    }
}

fn rows(done: &ReceivedPhase, kind: Kind) -> IndexTable<'_> {
    IndexTable {
        kind,
        ids: &done.ids,
        offsets: &done.tables.offsets,
        crcs: &done.tables.crcs,
        order: &done.order,
    }
}

/// Returns the outcome without its files.
fn outcome(done: ReceivedPhase) -> Outcome {
    Outcome {
        checksum: done.checksum,
        objects: done.tables.len() as u32,
        deltas: done.deltas,
        added: done.added,
        pack: PathBuf::new(),
        index: PathBuf::new(),
        keep: None,
        leftover: done.leftover,
    }
}

/// The arguments of the call that every stage needs.
pub(in crate::indexer) struct StageContext<'a> {
    kind: Kind,
    inspect: Option<&'a dyn Inspect>,
    progress: &'a dyn Progress,
    interrupt: Option<&'a Interrupt>,
    limits: ObjectLimits<'a>,
    /// Counts resolved deltas.
    resolving: Meter,
}

impl StageContext<'_> {
    /// Fails if the operation was cancelled.
    fn check(&self) -> Result<(), Error> {
        match self.interrupt {
            Some(interrupt) if interrupt.is_triggered() => {
                Err(Error::new(ErrorKind::Interrupted, "interrupted"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error of a thread that ends because another thread failed.
fn stopped() -> Error {
    Error::new(
        ErrorKind::Stopped,
        "indexing was aborted because another thread failed",
    )
}

/// Returns all results, or the error that caused the others.
fn first_real_error<T>(results: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut values = Vec::with_capacity(results.len());
    let mut failure: Option<Error> = None;
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => {
                if failure
                    .as_ref()
                    .is_none_or(|first| first.kind() == ErrorKind::Stopped)
                {
                    failure = Some(error);
                }
            }
        }
    }
    failure.map_or(Ok(values), Err)
}
