//! Stores files as objects: each file is read once, converted, hashed together with others,
//! deflated and stored, in as many threads as are useful.
//!
//! A new file costs the system calls `open`, `fstat`, `read` and `close`.
//!
//! Each thread holds up to a few dozen contents of up to one mebibyte. All threads together hold up
//! to 256 MiB of larger contents, including deflated and converted forms. Files above 32 MiB are
//! never held in memory unless they must be converted: the size of such a file counts three times,
//! and a file that exceeds the limit is held alone.

use std::fs::File;
use std::io::{self, Seek as _};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::BStr;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Collision, DigestStream, ObjectId};
use pronto_io::dir::{Metadata, file_metadata, read_at_most};
use pronto_io::pool::{self, Gather, Workers};
use pronto_io::watch::Watch;
use pronto_odb::Bulk;
use pronto_pack::writer::Encoder;
use pronto_worktree::attributes::Attributes;
use pronto_worktree::filter::{FilterWarning, PathConversion, Settings, ToGit};

use super::budget::ContentBudget;
use super::failure::{StagingFailure, StagingStop, unconverted, unfit, unseen, unstored};
use crate::hash_object::{digest_stream, staged_blob};
use crate::objects::from_odb;
use crate::packs::bulk_options;
use crate::session::WorktreeSession;
use crate::{Error, ErrorKind, Repository, Result};

/// The size above which contents are hashed one at a time, so that few of them are held in memory.
const LARGE_BYTES: u64 = 1 << 20;

/// The size above which contents are streamed: they are read once or twice, but never held in
/// memory.
const STREAMED_BYTES: u64 = 8 << 20;

/// The limit of memory for the large contents of all threads.
const HELD_BYTES: u64 = 48 << 20;

/// The number of copies of a large content: as read, converted or deflated, and as an entry.
const COPIES: u64 = 3;

/// The capacity above which a buffer is not reused for the next file.
const KEPT_BYTES: usize = 1 << 20;

/// A path to stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedPath<'a> {
    path: &'a BStr,
}

impl<'a> StagedPath<'a> {
    /// Creates a target for `path`. The path of a nested repository may end with a slash.
    pub(crate) fn new(path: &'a BStr) -> Self {
        StagedPath { path }
    }
}

/// The result of hashing one target.
#[derive(Debug)]
pub(crate) struct Hashed {
    /// The warnings of the conversion.
    pub(super) warnings: Vec<FilterWarning>,
    pub(super) outcome: Outcome,
}

impl Hashed {
    /// Returns the warnings of the conversion, and the object id or the reason for its absence.
    pub(crate) fn into_parts(self) -> (Vec<FilterWarning>, Result<ObjectId, StagingStop>) {
        let object = match self.outcome {
            Outcome::Object { id, .. } => Ok(id),
            Outcome::Failed(failure) => Err(StagingStop::File(failure)),
            Outcome::Fatal(error) => Err(StagingStop::Operation {
                error,
                warnings: Vec::new(),
            }),
        };
        (self.warnings, object)
    }
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The file was hashed to this object id.
    Object { id: ObjectId, metadata: Metadata },
    /// The file cannot be staged. The operation may continue with other files.
    Failed(StagingFailure),
    /// The operation fails as a whole.
    Fatal(Error),
}

/// The options and state that all hashing threads share.
pub(crate) struct Hasher<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) prepared: &'a WorktreeSession<'a>,
    pub(crate) attributes: Attributes,
    pub(crate) settings: Arc<Settings>,
    /// Convert files as if they were not in the index (`--renormalize`).
    pub(crate) renormalize: bool,
    /// Use the empty blob in place of the contents (`--intent-to-add`).
    pub(crate) intent_to_add: bool,
    /// Store the objects. If false, only their ids are computed.
    pub(crate) writes: bool,
    /// Stop after the first target that fails.
    pub(crate) stops: bool,
    pub(crate) watch: &'a Watch<'a>,
}

impl Hasher<'_> {
    /// Returns the result for each of `targets`, up to and including the first failure if `stops`
    /// is set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if objects cannot be stored, and with
    /// [`ErrorKind::Interrupted`] if the operation is interrupted.
    pub(crate) fn run(self, targets: &[StagedPath<'_>]) -> Result<Vec<Hashed>> {
        let _region = pronto_io::region!("add", "hash");
        let options = bulk_options(self.repository.config(), self.repository.object_hash())?;
        let large = options.files.big_file_threshold_bytes;
        let expected = if self.writes { targets.len() } else { 0 };
        let objects = self.prepared.objects;
        let bulk = objects.bulk(expected, options).map_err(from_odb)?;
        if self.intent_to_add {
            objects.write(ObjectKind::Blob, b"").map_err(from_odb)?;
        }
        let programs = Mutex::new(None);
        let shared = HashContext {
            hasher: &self,
            targets,
            bulk: &bulk,
            packed_from: large,
            programs: &programs,
            budget: ContentBudget::new(HELD_BYTES),
        };
        let gathered = Gather::default();
        pool::run(
            Workers::ADAPTIVE,
            targets.len(),
            || HashWorker::new(&shared),
            |worker, range: Range<usize>| worker.work(range),
            |worker| gathered.add(worker.finish()),
        );
        if self.watch.interrupt().is_triggered() {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        let mut results: Vec<(usize, Hashed)> = gathered.into_inner();
        results.sort_unstable_by_key(|(at, _)| *at);
        let is_bad = |hashed: &Hashed| !matches!(hashed.outcome, Outcome::Object { .. });
        if !(self.stops && results.iter().any(|(_, hashed)| is_bad(hashed))) {
            bulk.finish().map_err(from_odb)?;
        }
        Ok(results.into_iter().map(|(_, hashed)| hashed).collect())
    }
}

struct HashContext<'a> {
    hasher: &'a Hasher<'a>,
    targets: &'a [StagedPath<'a>],
    bulk: &'a Bulk,
    /// The size above which files are streamed, unless they must be converted. Such files become
    /// entries of the pack if there is one.
    packed_from: u64,
    budget: ContentBudget,
    /// Filter processes (`filter.NAME.process`). One thread uses them at a time, so that each
    /// process is started once.
    programs: &'a Mutex<Option<ToGit>>,
}

/// A content that is being hashed: the position of its target, the stat data of the file, and the
/// warnings of the conversion.
type HashToken = (usize, Metadata, Vec<FilterWarning>);

struct HashWorker<'a> {
    shared: &'a HashContext<'a>,
    converter: ToGit,
    stream: DigestStream<Vec<u8>, HashToken>,
    sink: HashedContents<'a>,
    stopped: bool,
}

/// Receives hashed contents.
struct HashedContents<'a> {
    shared: &'a HashContext<'a>,
    encoder: Encoder,
    spare: Vec<Vec<u8>>,
    results: Vec<(usize, Hashed)>,
}

impl HashedContents<'_> {
    fn take(&mut self, mut body: Vec<u8>, token: HashToken, id: Result<ObjectId, Collision>) {
        let (at, metadata, warnings) = token;
        let result = self.store(at, &body, id);
        self.results.push((at, hashed(result, metadata, warnings)));
        if body.capacity() <= KEPT_BYTES {
            body.clear();
            self.spare.push(body);
        }
    }

    fn store(
        &mut self,
        at: usize,
        body: &[u8],
        id: Result<ObjectId, Collision>,
    ) -> Result<ObjectId, StagingStop> {
        let path = self.shared.targets[at].path;
        let id =
            id.map_err(|collision| StagingStop::all(ErrorKind::Object, collision.to_string()))?;
        if self.shared.hasher.writes {
            let bulk = self.shared.bulk;
            let stored = bulk.add(&id, ObjectKind::Blob, body, &mut self.encoder);
            stored.map_err(|error| unstored(path, error))?;
            if body.len() as u64 > LARGE_BYTES {
                // The buffers of the encoder have grown with the largest content.
                self.encoder = self.shared.bulk.encoder();
            }
        }
        Ok(id)
    }
}

fn hashed(
    result: Result<ObjectId, StagingStop>,
    metadata: Metadata,
    mut warnings: Vec<FilterWarning>,
) -> Hashed {
    let outcome = match result {
        Ok(id) => Outcome::Object { id, metadata },
        Err(StagingStop::File(failure)) => Outcome::Failed(failure),
        Err(StagingStop::Operation {
            error,
            warnings: more,
        }) => {
            warnings.extend(more);
            Outcome::Fatal(error)
        }
    };
    Hashed { warnings, outcome }
}

impl<'a> HashWorker<'a> {
    fn new(shared: &'a HashContext<'a>) -> Self {
        let hasher = shared.hasher;
        let stack = hasher.attributes.stack();
        HashWorker {
            shared,
            converter: ToGit::new(stack, Arc::clone(&hasher.settings)),
            stream: DigestStream::new(hasher.repository.object_hash()),
            sink: HashedContents {
                shared,
                encoder: shared.bulk.encoder(),
                spare: Vec::new(),
                results: Vec::new(),
            },
            stopped: false,
        }
    }

    fn work(&mut self, range: Range<usize>) -> ControlFlow<()> {
        for at in range {
            if self.stopped || self.shared.hasher.watch.interrupt().is_triggered() {
                return ControlFlow::Break(());
            }
            if let Err(failure) = self.look(at) {
                let result = hashed(Err(failure), Metadata::default(), Vec::new());
                self.sink.results.push((at, result));
                if self.shared.hasher.stops {
                    self.stopped = true;
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn finish(mut self) -> Vec<(usize, Hashed)> {
        let sink = &mut self.sink;
        self.stream
            .finish(&mut |body, token, id| sink.take(body, token, id));
        self.sink.results
    }

    /// Examines a target, and starts to hash its content if it is a regular file.
    fn look(&mut self, at: usize) -> Result<(), StagingStop> {
        let path = self.shared.targets[at].path;
        let top = &self.shared.hasher.prepared.top;
        let bare = path.strip_suffix(b"/").unwrap_or(path);
        match top.open_file_beneath(bare) {
            Ok(file) => {
                let metadata = file_metadata(&file).map_err(|error| unseen(path, &error))?;
                if metadata.is_directory() {
                    self.gitlink(at, metadata)
                } else if !metadata.is_file() {
                    Err(unfit(path))
                } else if self.shared.hasher.intent_to_add {
                    self.announce(at, metadata);
                    Ok(())
                } else {
                    self.file(at, &file, metadata)
                }
            }
            Err(error) => self.without_file(at, error),
        }
    }

    /// Handles a target that is a symbolic link, or a missing or unreadable file.
    fn without_file(&mut self, at: usize, error: io::Error) -> Result<(), StagingStop> {
        let path = self.shared.targets[at].path;
        let (directory, name) = crate::path::split(path);
        let top = &self.shared.hasher.prepared.top;
        let opened = top.open_beneath(directory);
        let found = opened.and_then(|directory| Ok((directory.metadata(name)?, directory)));
        let (metadata, directory) = found.map_err(|error| unseen(path, &error))?;
        if metadata.is_symlink() {
            if self.shared.hasher.intent_to_add {
                self.announce(at, metadata);
                return Ok(());
            }
            let target = directory
                .read_link(name)
                .map_err(|error| StagingStop::io(path, format!("readlink(\"{path}\")"), error))?;
            self.digest(at, metadata, target, Vec::new());
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(unfit(path));
        }
        if self.shared.hasher.intent_to_add {
            self.announce(at, metadata);
            return Ok(());
        }
        Err(StagingStop::io(path, format!("open(\"{path}\")"), error))
    }

    /// Records a file with intent to add, without its content.
    fn announce(&mut self, at: usize, metadata: Metadata) {
        let id = ObjectId::empty_blob(self.shared.hasher.repository.object_hash());
        let result = hashed(Ok(id), metadata, Vec::new());
        self.sink.results.push((at, result));
    }

    /// Handles a nested repository: its object is the commit of its `HEAD`.
    fn gitlink(&mut self, at: usize, metadata: Metadata) -> Result<(), StagingStop> {
        let path = self.shared.targets[at].path;
        let Some(id) = self.shared.hasher.repository.submodule_commit(path) else {
            let text = format!("'{path}' does not have a commit checked out");
            return Err(StagingStop::unreadable(path, text));
        };
        if id.kind() != self.shared.hasher.repository.object_hash() {
            let text = "cannot add a submodule of a different hash algorithm";
            return Err(StagingStop::unreadable(path, text));
        }
        let result = hashed(Ok(id), metadata, Vec::new());
        self.sink.results.push((at, result));
        Ok(())
    }

    fn file(&mut self, at: usize, file: &File, metadata: Metadata) -> Result<(), StagingStop> {
        let path = self.shared.targets[at].path;
        let size = metadata.size_bytes;
        let settings = &self.shared.hasher.settings;
        let conversion =
            (self.converter.conversion(path)).map_err(|error| unconverted(error, Vec::new()))?;
        let keeps = conversion.keeps_towards_git(settings);
        if keeps && size > self.shared.packed_from.min(STREAMED_BYTES) {
            return self.stream(at, file, metadata);
        }
        // A larger content is hashed and stored before this function returns.
        let is_large = size > LARGE_BYTES;
        let _held = is_large.then(|| self.shared.budget.take(size.saturating_mul(COPIES)));
        let mut content = self.sink.spare.pop().unwrap_or_default();
        let read = read_at_most(file, size, &mut content);
        let read = read.map_err(|error| {
            let action = format!("read error while indexing {path}");
            StagingStop::io(path, action, error)
        })?;
        if read as u64 != size {
            let text = format!("short read while indexing {path}");
            return Err(StagingStop::unreadable(path, text));
        }
        let mut warnings = Vec::new();
        if !keeps {
            content = self.convert(path, content, &conversion, &mut warnings)?;
        }
        self.digest(at, metadata, content, warnings);
        Ok(())
    }

    fn convert(
        &mut self,
        path: &BStr,
        content: Vec<u8>,
        conversion: &PathConversion,
        warnings: &mut Vec<FilterWarning>,
    ) -> Result<Vec<u8>, StagingStop> {
        let hasher = self.shared.hasher;
        let by_program = conversion.needs_program_towards_git(&hasher.settings);
        let staged = |out: &mut Vec<u8>| {
            let prepared = hasher.prepared;
            staged_blob(&prepared.index, prepared.objects, path, out)
        };
        let mut in_index = |out: &mut Vec<u8>| Ok(!hasher.renormalize && staged(out));
        let mut programs;
        let converter = if by_program {
            let lock = self.shared.programs.lock();
            programs = lock.unwrap_or_else(PoisonError::into_inner);
            let (attributes, settings) = (&hasher.attributes, &hasher.settings);
            programs.get_or_insert_with(|| ToGit::new(attributes.stack(), Arc::clone(settings)))
        } else {
            &mut self.converter
        };
        let converted = converter.convert_as(path, conversion, &content, &mut in_index);
        let converted = converted.map(|converted| {
            let is_same = converted.as_ptr() == content.as_ptr();
            (!is_same).then(|| converted.into_owned())
        });
        warnings.extend(converter.take_warnings());
        converter.shrink(KEPT_BYTES);
        match converted {
            Ok(converted) => Ok(converted.unwrap_or(content)),
            Err(error) => Err(unconverted(error, std::mem::take(warnings))),
        }
    }

    fn digest(
        &mut self,
        at: usize,
        metadata: Metadata,
        body: Vec<u8>,
        warnings: Vec<FilterWarning>,
    ) {
        let header = gix_object::encode::loose_header(ObjectKind::Blob, body.len() as u64);
        let token = (at, metadata, warnings);
        let sink = &mut self.sink;
        if body.len() as u64 > LARGE_BYTES {
            let kind = self.shared.hasher.repository.object_hash();
            let id = pronto_hash::digest(kind, &[&header, &body]);
            return sink.take(body, token, id);
        }
        self.stream
            .push(&header, body, token, &mut |body, token, id| {
                sink.take(body, token, id);
            });
    }

    /// Hashes a file that is too large to be held in memory.
    fn stream(
        &mut self,
        at: usize,
        mut file: &File,
        metadata: Metadata,
    ) -> Result<(), StagingStop> {
        let shared = self.shared;
        let path = shared.targets[at].path;
        let size = metadata.size_bytes;
        let id = match self.digest_in_pieces(at, file, size)? {
            Some(id) => id,
            None => {
                let (bulk, kind) = (shared.bulk, ObjectKind::Blob);
                let stored = match size > shared.packed_from {
                    true => bulk.add_stream(kind, size, &mut file),
                    false => bulk.add_loose_stream(kind, size, &mut file),
                };
                stored.map_err(|error| unstored(path, error))?
            }
        };
        let result = hashed(Ok(id), metadata, Vec::new());
        self.sink.results.push((at, result));
        Ok(())
    }

    /// Hashes a file in pieces. If the object exists already, nothing is deflated; otherwise the
    /// file is rewound to its start.
    fn digest_in_pieces(
        &self,
        at: usize,
        mut file: &File,
        size: u64,
    ) -> Result<Option<ObjectId>, StagingStop> {
        let shared = self.shared;
        let (path, hasher) = (shared.targets[at].path, shared.hasher);
        if hasher.writes && hasher.prepared.index.find(path, 0).is_err() {
            return Ok(None);
        }
        let failure = |error: io::Error| StagingStop::unreadable(path, error.to_string());
        let kind = hasher.repository.object_hash();
        let id = digest_stream(kind, ObjectKind::Blob, size, &mut file).map_err(failure)?;
        let contains = || shared.bulk.contains(&id);
        if !hasher.writes || contains().map_err(|error| unstored(path, error))? {
            return Ok(Some(id));
        }
        file.rewind().map_err(failure)?;
        Ok(None)
    }
}
