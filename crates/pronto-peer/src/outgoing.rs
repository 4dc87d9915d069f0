//! The sending side: a sequence of objects, split into packs. A stored delta is reused if its base
//! is in the same pack. Other deltas are computed, also against objects of the receiver at the same
//! path.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::Seek as _;

use pronto_hash::{Digester, Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_netsync::message::{MARK_BYTES, Resume, SegmentKind, TransferPlan};
use pronto_netsync::repository::{OutgoingSegment, Request, SegmentContent};
use pronto_odb::packing::{Options, PackContents, PackMember};
use pronto_odb::{Quarantine, Store};
use pronto_pack::writer::sink::Streamed;

use super::incoming::{MOST_DELTA_BYTES, MOST_OBJECT_BYTES};
use super::sequence::{PendingObject, Sequence};
use super::walk::{self, ExclusiveCommit};
use pronto::objects::from_odb;
use pronto::{Error, ErrorKind, Repository, Result, pack_objects};

/// The stored size in bytes of its objects from which a segment is complete.
const SEGMENT_BYTES: u64 = 12 << 20;

/// The largest number of objects of a segment.
const SEGMENT_OBJECTS: usize = 1 << 17;

/// The size in bytes above which a segment is split again, unless it has a single object.
const MOST_BYTES: u64 = 32 << 20;

/// The size in bytes up to which a segment is extended to include a large base that follows.
const EXTENDED_BYTES: u64 = 2 * SEGMENT_BYTES;

/// The size in bytes from which an object is never sent as a new delta, and is not held in memory
/// if it is stored whole. Such an object gets a separate segment if its stored size is also this
/// large and it is not a base of other objects, or if it is larger than the limit for received
/// deltas.
const LARGE_BYTES: u64 = 8 << 20;

/// The memory in bytes of the delta search, for contents and for deltas each.
const SEARCH_BYTES: usize = 16 << 20;

/// Sends objects to a peer.
pub(super) struct OutgoingObjects {
    store: Store,
    sequence: Sequence,
    options: Options,
    /// The directory in which packs are written before they are sent. Other processes do not read
    /// the directory, and dropping this value removes it.
    scratch: Option<Quarantine>,
    /// The objects that did not fit into the last pack.
    put_off: VecDeque<PendingObject>,
    /// The large objects that were sent and that the receiver can hold, so that they can be bases
    /// of deltas.
    sent: HashSet<ObjectId>,
    /// The digest of the ids of all sent objects.
    marked: Marked,
}

/// A digest of the ids of objects in their order.
#[derive(Clone)]
struct Marked {
    digester: Digester,
    objects: u64,
}

impl Marked {
    fn new() -> Self {
        Marked {
            digester: Digester::new(Kind::Sha256),
            objects: 0,
        }
    }

    fn add(&mut self, id: &ObjectId) {
        self.digester.update(id.as_slice());
        self.objects += 1;
    }

    fn resume(&self) -> Result<Resume> {
        let failed = |_| {
            Error::new(
                ErrorKind::Object,
                "cannot compute the digest of an object id",
            )
        };
        let digest = self.digester.clone().finish().map_err(failed)?;
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(digest.as_slice());
        Ok(Resume {
            objects: self.objects,
            mark,
        })
    }
}

impl OutgoingObjects {
    /// Determines the objects to send for `request`. Packs are created by `threads` threads, or as
    /// many as there are cores if `threads` is 0. In a dry run, the plan also counts objects.
    pub(super) fn plan(
        repository: &Repository,
        threads: usize,
        request: &Request,
    ) -> Result<(OutgoingObjects, TransferPlan)> {
        let store = repository.objects()?.clone();
        let mut tips = Vec::new();
        for tip in &request.tips {
            tips.push(repository.peel_tag(*tip)?.unwrap_or(*tip));
        }
        let find = |common: &[ObjectId]| -> Result<Vec<ExclusiveCommit>> {
            let mut new = walk::above(repository, &tips, common)?;
            if let Some(lacking) = &request.lacking {
                new.retain(|commit| lacking.binary_search(&commit.id).is_ok());
            }
            Ok(new)
        };
        let mut new = find(&request.common)?;
        let mut marked = Marked::new();
        let begin = |new: &[ExclusiveCommit]| Sequence::new(store.clone(), new, &request.tips);
        let mut sequence = begin(&new)?;
        let mut goes_on = match request.resume {
            Some(resume) => skip(&mut sequence, &mut marked, resume)?,
            None => false,
        };
        if !goes_on {
            let mut common = request.common.clone();
            common.extend(seen_of(repository, &store, &tips, request)?);
            if common.len() > request.common.len() {
                new = find(&common)?;
                (sequence, marked) = (begin(&new)?, Marked::new());
                goes_on = match request.resume {
                    Some(resume) => skip(&mut sequence, &mut marked, resume)?,
                    None => false,
                };
            }
            if !goes_on {
                (sequence, marked) = (begin(&new)?, Marked::new());
            }
        }
        let mut plan = TransferPlan {
            commits: new.len() as u64,
            ..TransferPlan::default()
        };
        if request.is_dry_run {
            while let Some(step) = sequence.next()? {
                let header = store.header(&step.member.id).map_err(from_odb)?;
                plan.objects += 1;
                plan.bytes += header.map_or(0, |header| header.size);
            }
        }
        let options = bounded(pack_objects::packing_options(repository)?, threads);
        let outgoing = OutgoingObjects {
            store,
            sequence,
            options,
            scratch: None,
            put_off: VecDeque::new(),
            sent: HashSet::new(),
            marked,
        };
        Ok((outgoing, plan))
    }

    /// Creates the next pack. Returns `None` if all objects were sent.
    pub(super) fn next_segment(
        &mut self,
        interrupt: &Interrupt,
    ) -> Result<Option<OutgoingSegment>> {
        let mut chosen = OutgoingPack::default();
        while let Some(mut step) = self.next()? {
            interrupt
                .check()
                .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
            let id = step.member.id;
            let missing = || Error::new(ErrorKind::MissingObject, format!("bad object {id}"));
            let header = self.store.header(&id).map_err(from_odb)?;
            let size = header.ok_or_else(missing)?.size;
            let stored = self.store.details(&id).map_err(from_odb)?;
            let stored_bytes = stored.map_or(0, |stored| stored.size_on_disk);
            let is_alone = size > MOST_DELTA_BYTES
                || size >= LARGE_BYTES
                    && stored_bytes >= LARGE_BYTES
                    && !chosen.wants(&id, stored_bytes);
            if is_alone && !chosen.steps.is_empty() {
                self.put_off.push_front(step);
                break;
            }
            let mut base = stored.and_then(|stored| stored.delta_base);
            if size < LARGE_BYTES || is_alone {
                base = None;
            }
            if let Some(sent) = base.take_if(|base| self.sent.contains(base)) {
                chosen.outside.insert(sent);
            }
            if size >= LARGE_BYTES {
                self.keep_bases(&mut step, size)?;
            }
            if (LARGE_BYTES..=MOST_OBJECT_BYTES).contains(&size) {
                chosen.large.push(id);
            }
            chosen.add(step, stored_bytes, base);
            chosen.is_alone = is_alone;
            if is_alone || chosen.is_full() {
                break;
            }
        }
        if chosen.steps.is_empty() {
            self.scratch = None;
            return Ok(None);
        }
        loop {
            let (file, streamed) = self.pack(&chosen, interrupt)?;
            // An object that is stored as a delta of a later object can be large without its base.
            if streamed.bytes > MOST_BYTES && chosen.steps.len() > 1 {
                let rest = chosen.steps.split_off(chosen.steps.len() / 2);
                rest.into_iter()
                    .rev()
                    .for_each(|step| self.put_off.push_front(step));
                continue;
            }
            return self.segment(&chosen, file, &streamed).map(Some);
        }
    }

    /// Records that the members of `chosen` are sent with the pack in `file`.
    fn segment(
        &mut self,
        chosen: &OutgoingPack,
        file: File,
        streamed: &Streamed,
    ) -> Result<OutgoingSegment> {
        for step in &chosen.steps {
            self.marked.add(&step.member.id);
        }
        let is_here = |id: &ObjectId| chosen.steps.iter().any(|step| step.member.id == *id);
        self.sent
            .extend(chosen.large.iter().copied().filter(is_here));
        let is_alone = chosen.steps.len() == 1 && streamed.bytes > MOST_BYTES;
        Ok(OutgoingSegment {
            kind: match is_alone || chosen.is_alone {
                true => SegmentKind::LargeBlob,
                false => SegmentKind::Pack,
            },
            objects: chosen.steps.len() as u64,
            bytes: streamed.bytes,
            checksum: streamed.checksum,
            resume: self.marked.resume()?,
            content: SegmentContent::Stream(Box::new(file)),
        })
    }

    /// Writes a pack to a file without a name, from which the pack is sent.
    fn pack(&mut self, chosen: &OutgoingPack, interrupt: &Interrupt) -> Result<(File, Streamed)> {
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Quarantine::begin(&self.store).map_err(from_odb)?,
        };
        let path = scratch.pack_directory().join("segment");
        self.scratch = Some(scratch);
        let make = || {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).open(&path)
        };
        let mut file = make().context(ErrorKind::Io, "cannot create", &path)?;
        std::fs::remove_file(&path).context(ErrorKind::Io, "cannot remove", &path)?;
        let (members, bases) = (chosen.members(), chosen.bases());
        let contents = PackContents {
            members: &members,
            bases: &bases,
            receiver_has: Some(&|id| chosen.outside.contains(&id.to_owned())),
            ..PackContents::default()
        };
        let packed =
            (self.store).pack_to(&contents, &self.options, &mut file, &Watch::from(interrupt));
        let (streamed, _) = packed.map_err(from_odb)?;
        file.rewind().context(ErrorKind::Io, "cannot read", &path)?;
        Ok((file, streamed))
    }

    /// Removes the bases of a large object that the receiver cannot use, because it holds bases
    /// whole in memory.
    fn keep_bases(&self, step: &mut PendingObject, size: u64) -> Result<()> {
        let before = std::mem::take(&mut step.before);
        for id in before.into_iter().filter(|_| size <= MOST_DELTA_BYTES) {
            let header = self.store.header(&id).map_err(from_odb)?;
            if header.is_some_and(|header| header.size <= MOST_OBJECT_BYTES) {
                step.before.push(id);
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<PendingObject>> {
        match self.put_off.pop_front() {
            Some(step) => Ok(Some(step)),
            None => self.sequence.next(),
        }
    }
}

/// The objects of one pack.
#[derive(Default)]
struct OutgoingPack {
    steps: Vec<PendingObject>,
    /// Whether the only member is large and gets a separate segment.
    is_alone: bool,
    /// The total stored size of the members in bytes.
    bytes: u64,
    /// The bases of large deltas that are not among the members yet. Without its base, a large
    /// object is sent whole.
    wanted: HashSet<ObjectId>,
    /// The bases of large deltas that were sent before.
    outside: HashSet<ObjectId>,
    /// The members that may be bases of large objects.
    large: Vec<ObjectId>,
}

impl OutgoingPack {
    /// Adds an object with its stored size; `base` is set if it is a large delta.
    fn add(&mut self, step: PendingObject, stored_bytes: u64, base: Option<ObjectId>) {
        self.bytes += stored_bytes;
        self.wanted.remove(&step.member.id);
        let is_here = |id: &ObjectId| self.steps.iter().any(|step| step.member.id == *id);
        if let Some(base) = base.filter(|base| !is_here(base) && !step.before.contains(base)) {
            self.wanted.insert(base);
        }
        self.steps.push(step);
    }

    /// Returns whether a large object belongs to this pack, because members are deltas of it.
    fn wants(&self, id: &ObjectId, stored_bytes: u64) -> bool {
        self.wanted.contains(id) && self.bytes + stored_bytes <= MOST_BYTES
    }

    fn is_full(&self) -> bool {
        let most = match self.wanted.is_empty() {
            true => SEGMENT_BYTES,
            false => EXTENDED_BYTES,
        };
        self.bytes >= most || self.steps.len() >= SEGMENT_OBJECTS
    }

    fn members(&self) -> Vec<PackMember> {
        self.steps.iter().map(|step| step.member).collect()
    }

    /// Returns the objects of the receiver at the same paths. A member that is stored as a delta of
    /// a later member is compared with the predecessor of the first member with the same name,
    /// which may be the predecessor of another object.
    fn bases(&self) -> Vec<PackMember> {
        let members: HashSet<ObjectId> = self.steps.iter().map(|step| step.member.id).collect();
        let is_here = |id: &ObjectId| members.contains(id);
        let (mut taken, mut bases) = (HashSet::new(), Vec::new());
        for step in &self.steps {
            for id in &step.before {
                if !is_here(id) && taken.insert(*id) {
                    bases.push(PackMember {
                        id: *id,
                        ..step.member
                    });
                }
            }
        }
        bases
    }
}

/// Returns the commits among those held by the peer that the peer may see, because they are
/// reachable from the requested commits or from common history. Other commits are treated as
/// missing. Otherwise a peer could test whether a hidden commit exists.
fn seen_of(
    repository: &Repository,
    store: &Store,
    tips: &[ObjectId],
    request: &Request,
) -> Result<Vec<ObjectId>> {
    let mut here = Vec::new();
    for id in &request.held {
        let header = store.header(id).map_err(from_odb)?;
        if header.is_some_and(|header| header.kind == gix_object::Kind::Commit) {
            here.push(*id);
        }
    }
    let seen_from = [tips, &request.common].concat();
    let seen = walk::reached(repository, &here, &seen_from)?;
    Ok(here.into_iter().filter(|id| seen.contains(id)).collect())
}

/// Returns options for creating packs in little memory, with `threads` threads unless that is 0.
fn bounded(mut options: Options, threads: usize) -> Options {
    options.large_bytes = options.large_bytes.min(LARGE_BYTES);
    options.most_delta_bytes = MOST_OBJECT_BYTES;
    let search = &mut options.search;
    if threads != 0 {
        search.threads = threads;
    }
    search.kept_bytes = search.kept_bytes.min(SEARCH_BYTES);
    search.window_memory_bytes = match search.window_memory_bytes {
        0 => SEARCH_BYTES,
        bytes => bytes.min(SEARCH_BYTES),
    };
    options
}

/// Skips the objects that were sent before, if the sequence starts with them.
fn skip(sequence: &mut Sequence, marked: &mut Marked, resume: Resume) -> Result<bool> {
    while marked.objects < resume.objects {
        match sequence.next()? {
            Some(step) => marked.add(&step.member.id),
            None => return Ok(false),
        }
    }
    Ok(marked.objects > 0 && marked.resume()?.mark == resume.mark)
}
