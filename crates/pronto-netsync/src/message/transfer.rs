//! Messages after the refs were compared: cut, wants, segments, published refs, done.

use super::{
    MARK_BYTES, MAX_HELD, MAX_NAME_BYTES, ObjectFormat, choice, read_marks, write_marks,
    write_slice,
};
use crate::Error;
use crate::error::malformed;
use crate::frame::MAX_BODY_BYTES;
use crate::varint::{self, Cursor};

/// The marks of complete tips. The tips are the refs that the sender lacked, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompleteTips {
    /// A mark for each tip, set if the sender has its complete history.
    pub tips: Vec<bool>,
}

impl CompleteTips {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_marks(out, &self.tips);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `CompleteTips` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let tips = read_marks(&mut cursor)?;
        cursor.finish()?;
        Ok(CompleteTips { tips })
    }
}

/// The position of a transfer from which it resumes after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The number of objects before the position, in the sequence of all objects to send.
    pub objects: u64,
    /// A mark that identifies these objects and their order. Only the sender can interpret it.
    pub mark: [u8; MARK_BYTES],
}

/// The wanted refs, and the state of the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantMessage {
    /// A mark for each tip of the [`CompleteTips`], set if the history of the tip is wanted.
    pub tips: Vec<bool>,
    /// The concatenated ids of complete commits that are not reachable from a synchronised ref, in
    /// ascending order, at most [`MAX_HELD`] of them.
    pub held: Vec<u8>,
    /// The number of bytes of segments that the receiver accepts.
    pub budget_bytes: u64,
    /// The position from which to resume, if the sequence of objects is the same as before.
    pub resume: Option<Resume>,
}

impl WantMessage {
    /// Appends the encoded body to `out`.
    pub fn write(&self, format: ObjectFormat, out: &mut Vec<u8>) {
        write_marks(out, &self.tips);
        varint::write(out, (self.held.len() / format.id_bytes()) as u64);
        out.extend_from_slice(&self.held);
        varint::write(out, self.budget_bytes);
        out.push(u8::from(self.resume.is_some()));
        if let Some(resume) = self.resume {
            resume.write(out);
        }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `WantMessage` frame.
    pub fn read(format: ObjectFormat, body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let tips = read_marks(&mut cursor)?;
        let count = cursor.length(MAX_HELD)?;
        let offset = cursor.offset() as u64;
        let held = cursor.take(count * format.id_bytes())?;
        if !held
            .chunks_exact(format.id_bytes())
            .is_sorted_by(|before, after| before < after)
        {
            return Err(malformed("the commits are not sorted").at_offset(offset));
        }
        let budget_bytes = cursor.varint()?;
        let does_resume = choice(&mut cursor, "mark", flag)?;
        let resume = if does_resume {
            Some(Resume::read(&mut cursor)?)
        } else {
            None
        };
        cursor.finish()?;
        Ok(WantMessage {
            tips,
            held: held.to_vec(),
            budget_bytes,
            resume,
        })
    }
}

impl Resume {
    fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.objects);
        out.extend_from_slice(&self.mark);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let objects = cursor.varint()?;
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(cursor.take(MARK_BYTES)?);
        Ok(Resume { objects, mark })
    }
}

/// The plan of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferPlan {
    /// The number of commits to send.
    pub commits: u64,
    /// The number of objects to send, which is known only in a dry run.
    pub objects: u64,
    /// The inflated size in bytes of the objects, which is known only in a dry run.
    pub bytes: u64,
}

impl TransferPlan {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.commits);
        varint::write(out, self.objects);
        varint::write(out, self.bytes);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `TransferPlan` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let plan = TransferPlan {
            commits: cursor.varint()?,
            objects: cursor.varint()?,
            bytes: cursor.varint()?,
        };
        cursor.finish()?;
        Ok(plan)
    }
}

/// The end of all segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of sent segments.
    pub segments: u64,
}

impl Sent {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.segments);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Sent` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let segments = cursor.varint()?;
        cursor.finish()?;
        Ok(Sent { segments })
    }
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A pack whose objects reference only objects in the same pack, in earlier segments, or in the
    /// repository of the receiver.
    Pack = 1,
    /// A pack as above, which contains a single large blob.
    LargeBlob = 2,
}

/// The start of a segment. Its declared sizes are checked while the segment is received, and no
/// memory is reserved for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentStart {
    /// The number of the segment, from 0.
    pub id: u64,
    /// The kind of the segment.
    pub kind: SegmentKind,
    /// The number of objects.
    pub objects: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl SegmentStart {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
        out.push(self.kind as u8);
        varint::write(out, self.objects);
        varint::write(out, self.bytes);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `SegmentStart` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let kind = |byte| match byte {
            1 => Some(SegmentKind::Pack),
            2 => Some(SegmentKind::LargeBlob),
            _ => None,
        };
        let segment = SegmentStart {
            id: cursor.varint()?,
            kind: choice(&mut cursor, "segment kind", kind)?,
            objects: cursor.varint()?,
            bytes: cursor.varint()?,
        };
        cursor.finish()?;
        Ok(segment)
    }
}

/// The end of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    /// The number of the segment.
    pub id: u64,
    /// The checksum at the end of the pack, whose length is that of an object id.
    pub checksum: Vec<u8>,
    /// The position of the transfer after this segment, which the receiver sends back to resume.
    pub resume: Resume,
}

impl SegmentEnd {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
        out.extend_from_slice(&self.checksum);
        self.resume.write(out);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `SegmentEnd` frame.
    pub fn read(format: ObjectFormat, body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let end = SegmentEnd {
            id: cursor.varint()?,
            checksum: cursor.take(format.id_bytes())?.to_vec(),
            resume: Resume::read(&mut cursor)?,
        };
        cursor.finish()?;
        Ok(end)
    }
}

/// The acknowledgement that a segment was verified and is durable, so that it is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAck {
    /// The number of the segment.
    pub id: u64,
}

impl SegmentAck {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `SegmentAck` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let id = cursor.varint()?;
        cursor.finish()?;
        Ok(SegmentAck { id })
    }
}

/// The result of a ref update at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// The ref was created.
    New = 1,
    /// The ref was fast-forwarded.
    FastForward = 2,
    /// The histories have diverged, and both refs are kept.
    Divergent = 3,
    /// The ref was refused.
    Refused = 4,
}

/// The result of one ref update, as an entry of a [`Publish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRef {
    /// The name of the ref at the sending side.
    pub name: Vec<u8>,
    /// The result.
    pub stored: StoreResult,
    /// The name of the ref at the receiving side. If the update was refused, the reason as text,
    /// which may be empty.
    pub stored_as: Vec<u8>,
}

/// The results of ref updates, which may be split into several frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// The results, sorted by name.
    pub refs: Vec<PublishedRef>,
}

impl Publish {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.refs.len() as u64);
        for published in &self.refs {
            write_slice(out, &published.name);
            out.push(published.stored as u8);
            write_slice(out, &published.stored_as);
        }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Publish` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let stored = |byte| match byte {
            1 => Some(StoreResult::New),
            2 => Some(StoreResult::FastForward),
            3 => Some(StoreResult::Divergent),
            4 => Some(StoreResult::Refused),
            _ => None,
        };
        let mut refs: Vec<PublishedRef> = Vec::new();
        for _ in 0..cursor.length(MAX_BODY_BYTES)? {
            let offset = cursor.offset() as u64;
            let published = PublishedRef {
                name: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
                stored: choice(&mut cursor, "ref result", stored)?,
                stored_as: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
            };
            let is_refused = published.stored == StoreResult::Refused;
            let is_sound =
                is_ref_name(&published.name) && (is_refused || is_ref_name(&published.stored_as));
            if !is_sound {
                return Err(malformed("a result for an entry that is not a ref").at_offset(offset));
            }
            if refs
                .last()
                .is_some_and(|before| before.name >= published.name)
            {
                return Err(malformed("the refs are not sorted").at_offset(offset));
            }
            refs.push(published);
        }
        cursor.finish()?;
        Ok(Publish { refs })
    }
}

/// Returns whether `name` is safe to show and to compare as a ref name. Storing the ref requires a
/// stricter check.
pub(crate) fn is_ref_name(name: &[u8]) -> bool {
    name.len() > 5
        && name.starts_with(b"refs/")
        && !name.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// The message that the sender has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferDone {
    /// Whether all received data is on disk and its refs are published.
    pub is_durable: bool,
}

impl TransferDone {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_durable));
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `TransferDone` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let is_durable = choice(&mut cursor, "mark", flag)?;
        cursor.finish()?;
        Ok(TransferDone { is_durable })
    }
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
