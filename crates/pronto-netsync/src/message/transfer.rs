//! Messages after the refs are known: cut, wants, segments, published refs, done.

use super::{
    MARK_BYTES, MAX_HELD, MAX_NAME_BYTES, ObjectFormat, choice, read_marks, write_marks,
    write_slice,
};
use crate::Error;
use crate::error::malformed;
use crate::frame::MAX_BODY_BYTES;
use crate::varint::{self, Cursor};

/// Which tips the sender holds completely, of those that it lacked as refs, in the order of their
/// names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// For each tip.
    pub tips: Vec<bool>,
}

impl Cut {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_marks(out, &self.tips);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let tips = read_marks(&mut cursor)?;
        cursor.finish()?;
        Ok(Cut { tips })
    }
}

/// The position of a transfer, at which it resumes after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The number of objects, of all that are to be sent.
    pub objects: u64,
    /// A mark that identifies the objects in their order. Only the sender can interpret it.
    pub mark: [u8; MARK_BYTES],
}

/// The wanted refs, and what the sender needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// For each tip of the [`Cut`] whether the history to it is to be sent.
    pub tips: Vec<bool>,
    /// Ids of commits, one behind the other, that are held completely though no ref that takes
    /// part leads to them; ascending, [`MAX_HELD`] at most.
    pub held: Vec<u8>,
    /// The number of bytes of segments that the receiver accepts.
    pub budget_bytes: u64,
    /// The position at which to resume, if the same objects are to be sent as before.
    pub resume: Option<Resume>,
}

impl Want {
    /// Appends the body.
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

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
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
            return Err(malformed("commits that are not in order").at_offset(offset));
        }
        let budget_bytes = cursor.varint()?;
        let does_resume = choice(&mut cursor, "mark", flag)?;
        let resume = if does_resume {
            Some(Resume::read(&mut cursor)?)
        } else {
            None
        };
        cursor.finish()?;
        Ok(Want {
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
pub struct Plan {
    /// The number of commits.
    pub commits: u64,
    /// The number of objects; only known in a dry run.
    pub objects: u64,
    /// Their inflated size; only known in a dry run.
    pub bytes: u64,
}

impl Plan {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.commits);
        varint::write(out, self.objects);
        varint::write(out, self.bytes);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let plan = Plan {
            commits: cursor.varint()?,
            objects: cursor.varint()?,
            bytes: cursor.varint()?,
        };
        cursor.finish()?;
        Ok(plan)
    }
}

/// All segments were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of segments.
    pub segments: u64,
}

impl Sent {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.segments);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
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
    /// A pack whose objects link to nothing but one another, what is in the segments before it,
    /// and what the receiver has.
    Pack = 1,
    /// Such a pack of one large blob.
    LargeBlob = 2,
}

/// The start of a segment. Its declarations are checked while it arrives, and reserve nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number, from 0.
    pub id: u64,
    /// The kind.
    pub kind: SegmentKind,
    /// The number of objects.
    pub objects: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl Segment {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
        out.push(self.kind as u8);
        varint::write(out, self.objects);
        varint::write(out, self.bytes);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let kind = |byte| match byte {
            1 => Some(SegmentKind::Pack),
            2 => Some(SegmentKind::LargeBlob),
            _ => None,
        };
        let segment = Segment {
            id: cursor.varint()?,
            kind: choice(&mut cursor, "kind of segment", kind)?,
            objects: cursor.varint()?,
            bytes: cursor.varint()?,
        };
        cursor.finish()?;
        Ok(segment)
    }
}

/// A segment ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Its number.
    pub id: u64,
    /// The checksum at the end of its pack, as long as an object id.
    pub checksum: Vec<u8>,
    /// The position of the transfer after this segment. The receiver sends it back to resume.
    pub resume: Resume,
}

impl SegmentEnd {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
        out.extend_from_slice(&self.checksum);
        self.resume.write(out);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
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

/// A segment was verified and is durable: it need not be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAck {
    /// Its number.
    pub id: u64,
}

impl SegmentAck {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let id = cursor.varint()?;
        cursor.finish()?;
        Ok(SegmentAck { id })
    }
}

/// The result for a ref at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The ref is new there.
    New = 1,
    /// The ref moved forward.
    FastForward = 2,
    /// Neither contains the other; both are kept.
    Divergent = 3,
    /// The ref was refused.
    Refused = 4,
}

/// One ref of a [`Publish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRef {
    /// Its name at the side that gave it.
    pub name: Vec<u8>,
    /// The result.
    pub stored: Stored,
    /// Its name at the side that took it. If it was refused, the reason, as text; it may be empty.
    pub stored_as: Vec<u8>,
}

/// The results for refs. There may be several such frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// Each of them, in the order of their names.
    pub refs: Vec<PublishedRef>,
}

impl Publish {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.refs.len() as u64);
        for published in &self.refs {
            write_slice(out, &published.name);
            out.push(published.stored as u8);
            write_slice(out, &published.stored_as);
        }
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let stored = |byte| match byte {
            1 => Some(Stored::New),
            2 => Some(Stored::FastForward),
            3 => Some(Stored::Divergent),
            4 => Some(Stored::Refused),
            _ => None,
        };
        let mut refs: Vec<PublishedRef> = Vec::new();
        for _ in 0..cursor.length(MAX_BODY_BYTES)? {
            let offset = cursor.offset() as u64;
            let published = PublishedRef {
                name: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
                stored: choice(&mut cursor, "fate of a ref", stored)?,
                stored_as: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
            };
            let is_refused = published.stored == Stored::Refused;
            let is_sound =
                is_ref_name(&published.name) && (is_refused || is_ref_name(&published.stored_as));
            if !is_sound {
                return Err(malformed("a fate of what is no ref").at_offset(offset));
            }
            if refs
                .last()
                .is_some_and(|before| before.name >= published.name)
            {
                return Err(malformed("refs that are not in order").at_offset(offset));
            }
            refs.push(published);
        }
        cursor.finish()?;
        Ok(Publish { refs })
    }
}

/// Whether it may be shown and compared as the name of a ref. Who stores it looks closer.
pub(crate) fn is_ref_name(name: &[u8]) -> bool {
    name.len() > 5
        && name.starts_with(b"refs/")
        && !name.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// The sender has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whether everything it took is on disk and its refs are published.
    pub is_durable: bool,
}

impl Done {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_durable));
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let is_durable = choice(&mut cursor, "mark", flag)?;
        cursor.finish()?;
        Ok(Done { is_durable })
    }
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
