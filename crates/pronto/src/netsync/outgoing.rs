//! What is sent: a sequence of objects, cut into packs.

use std::fs::File;

use pronto_hash::{Digester, Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{MARK_BYTES, Plan, Resume, SegmentKind};
use pronto_netsync::repository::{Content, OutgoingSegment, Request};
use pronto_odb::{Quarantine, Store};
use pronto_pack::entry::Header;
use pronto_pack::writer::{self, Encoder, PackWriter};

use super::sequence::Sequence;
use super::walk::{self, New};
use crate::objects::from_odb;
use crate::packs::{from_pack, writer_options};
use crate::{Error, ErrorKind, Repository, Result};

/// A segment takes no further object when it has come to so many bytes.
const SEGMENT_BYTES: u64 = 8 << 20;

/// A blob of so many bytes has a segment of its own, and is not held whole if it is stored whole.
const LARGE_BYTES: u64 = 8 << 20;

/// Objects on their way to a peer.
pub(super) struct Outgoing {
    store: Store,
    sequence: Sequence,
    options: writer::Options,
    /// Where packs are written before they are sent: nobody sees it, and it goes with this.
    scratch: Option<Quarantine>,
    /// A large object for which there was no place.
    put_off: Option<ObjectId>,
    /// Of all objects up to here.
    marked: Marked,
}

/// Stands for objects in their order.
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
        let failed = |_| Error::new(ErrorKind::Object, "cannot digest names of objects");
        let digest = self.digester.clone().finish().map_err(failed)?;
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(digest.as_slice());
        Ok(Resume {
            objects: self.objects,
            mark,
        })
    }
}

impl Outgoing {
    /// What has to be sent for `request`. In a dry run, how much it is, too.
    pub(super) fn plan(
        repository: &Repository,
        store: Store,
        request: &Request,
    ) -> Result<(Outgoing, Plan)> {
        let mut tips = Vec::new();
        for tip in &request.tips {
            tips.push(repository.peel_tag(*tip)?.unwrap_or(*tip));
        }
        let find = |common: &[ObjectId]| -> Result<Vec<New>> {
            let mut new = walk::above(repository, &tips, common)?;
            if let Some(lacking) = &request.lacking {
                new.retain(|commit| lacking.binary_search(&commit.id).is_ok());
            }
            Ok(new)
        };
        let mut new = find(&request.common)?;
        let mut marked = Marked::new();
        let begin = |new: &[New]| Sequence::new(store.clone(), new, &request.tips);
        let mut sequence = begin(&new)?;
        let goes_on = match request.resume {
            Some(resume) => skip(&mut sequence, &mut marked, resume)?,
            None => false,
        };
        if !goes_on {
            let mut common = request.common.clone();
            for id in &request.held {
                let header = store.header(id).map_err(from_odb)?;
                if header.is_some_and(|header| header.kind == gix_object::Kind::Commit) {
                    common.push(*id);
                }
            }
            if common.len() > request.common.len() {
                new = find(&common)?;
            }
            (sequence, marked) = (begin(&new)?, Marked::new());
        }
        let mut plan = Plan {
            commits: new.len() as u64,
            ..Plan::default()
        };
        if request.is_dry_run {
            while let Some(id) = sequence.next()? {
                let header = store.header(&id).map_err(from_odb)?;
                plan.objects += 1;
                plan.bytes += header.map_or(0, |header| header.size);
            }
        }
        let mut options = writer_options(repository.config(), repository.object_hash())?;
        options.files.sync = false;
        options.files.reverse_index = false;
        let outgoing = Outgoing {
            store,
            sequence,
            options,
            scratch: None,
            put_off: None,
            marked,
        };
        Ok((outgoing, plan))
    }

    /// The next pack. None if everything was sent.
    pub(super) fn next_segment(
        &mut self,
        interrupt: &Interrupt,
    ) -> Result<Option<OutgoingSegment>> {
        let Some(first) = self.next()? else {
            self.scratch = None;
            return Ok(None);
        };
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Quarantine::begin(&self.store).map_err(from_odb)?,
        };
        let directory = scratch.pack_directory();
        self.scratch = Some(scratch);
        let mut pack = PackWriter::begin(&directory, self.options.clone()).map_err(from_pack)?;
        let mut encoder = Encoder::new(self.options.level);
        let (mut next, mut content) = (Some(first), Vec::new());
        let mut kind = SegmentKind::Pack;
        while let Some(id) = next {
            interrupt
                .check()
                .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
            let header = self.store.header(&id).map_err(from_odb)?;
            let is_large = header.is_some_and(|header| header.size >= LARGE_BYTES);
            if is_large && !pack.is_empty() {
                self.put_off = Some(id);
                break;
            }
            self.append(&mut pack, &mut encoder, (&id, &mut content))?;
            self.marked.add(&id);
            if is_large {
                kind = SegmentKind::LargeBlob;
            }
            if pack.offset() >= SEGMENT_BYTES {
                break;
            }
            next = self.next()?;
        }
        let written = pack.finish().map_err(from_pack)?;
        let file =
            File::open(&written.pack).context(ErrorKind::Io, "cannot open", &written.pack)?;
        let size = file
            .metadata()
            .context(ErrorKind::Io, "cannot stat", &written.pack)?;
        // The open file is all that is needed of it.
        for path in [&written.index, &written.pack] {
            std::fs::remove_file(path).context(ErrorKind::Io, "cannot remove", path)?;
        }
        Ok(Some(OutgoingSegment {
            kind,
            objects: u64::from(written.objects),
            bytes: size.len(),
            checksum: written.checksum,
            resume: self.marked.resume()?,
            content: Content::Stream(Box::new(file)),
        }))
    }

    fn next(&mut self) -> Result<Option<ObjectId>> {
        match self.put_off.take() {
            Some(id) => Ok(Some(id)),
            None => self.sequence.next(),
        }
    }

    /// Appends one object, whole.
    fn append(
        &self,
        pack: &mut PackWriter,
        encoder: &mut Encoder,
        (id, content): (&ObjectId, &mut Vec<u8>),
    ) -> Result<()> {
        let found = self.store.find_or_stream(id, LARGE_BYTES, content);
        match found.map_err(from_odb)? {
            Some(pronto_odb::Content::Whole(kind)) => {
                let entry = encoder.encode(Header::Object(kind), content);
                pack.append(id, &entry).map_err(from_pack)?;
            }
            Some(pronto_odb::Content::Large(mut reader)) => {
                let (kind, size) = (reader.kind(), reader.size_bytes());
                let found = pack.append_stream(kind, size, &mut reader, &mut |_| Ok(false));
                if found.map_err(from_pack)? != *id {
                    return Err(Error::new(ErrorKind::Object, "object is corrupt").on_object(id));
                }
            }
            None => {
                return Err(Error::new(ErrorKind::Object, format!("bad object {id}")));
            }
        }
        Ok(())
    }
}

/// Passes over what was sent before, if the sequence begins with it.
fn skip(sequence: &mut Sequence, marked: &mut Marked, resume: Resume) -> Result<bool> {
    while marked.objects < resume.objects {
        match sequence.next()? {
            Some(id) => marked.add(&id),
            None => return Ok(false),
        }
    }
    Ok(marked.objects > 0 && marked.resume()?.mark == resume.mark)
}
