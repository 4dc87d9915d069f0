//! What is said once the refs are known: cut, wants, segments, what became of the refs, the end.

use super::{
    MAX_HINTS, MAX_NAME_BYTES, ObjectFormat, choice, read_marks, write_marks, write_slice,
};
use crate::Error;
use crate::error::malformed;
use crate::frame::MAX_BODY_BYTES;
use crate::varint::{self, Cursor};

/// Which of the peer's tips and hints the sender holds completely, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// For each tip.
    pub tips: Vec<bool>,
    /// For each hint.
    pub hints: Vec<bool>,
}

impl Cut {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_marks(out, &self.tips);
        write_marks(out, &self.hints);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let cut = Cut {
            tips: read_marks(&mut cursor, 8 * MAX_BODY_BYTES)?,
            hints: read_marks(&mut cursor, MAX_HINTS)?,
        };
        cursor.finish()?;
        Ok(cut)
    }
}

/// Where an interrupted transfer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The segment.
    pub segment: u64,
    /// How many of its bytes are there already.
    pub offset_bytes: u64,
}

/// What the sender takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Object ids of tips, one behind the other, ascending.
    pub tips: Vec<u8>,
    /// How many bytes of segments it takes in all.
    pub budget_bytes: u64,
    /// Where to go on, if not at the start.
    pub resume: Option<Resume>,
}

impl Want {
    /// Appends the body.
    pub fn write(&self, format: ObjectFormat, out: &mut Vec<u8>) {
        varint::write(out, (self.tips.len() / format.id_bytes()) as u64);
        out.extend_from_slice(&self.tips);
        varint::write(out, self.budget_bytes);
        out.push(u8::from(self.resume.is_some()));
        if let Some(resume) = self.resume {
            varint::write(out, resume.segment);
            varint::write(out, resume.offset_bytes);
        }
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(format: ObjectFormat, body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let count = cursor.length(MAX_BODY_BYTES)?;
        let offset = cursor.offset() as u64;
        let tips = cursor.take(count * format.id_bytes())?;
        if !tips
            .chunks_exact(format.id_bytes())
            .is_sorted_by(|before, after| before < after)
        {
            return Err(malformed("tips that are not in order").at_offset(offset));
        }
        let budget_bytes = cursor.varint()?;
        let does_resume = choice(&mut cursor, "mark", flag)?;
        let resume = if does_resume {
            Some(Resume {
                segment: cursor.varint()?,
                offset_bytes: cursor.varint()?,
            })
        } else {
            None
        };
        cursor.finish()?;
        Ok(Want {
            tips: tips.to_vec(),
            budget_bytes,
            resume,
        })
    }
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A thin pack, closed over the segments before it and the boundary.
    Pack = 1,
    /// A pack of one large blob, which can be resumed within.
    LargeBlob = 2,
}

/// A segment begins. What it declares is checked while it comes, and reserves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number, from 0.
    pub id: u64,
    /// What it is.
    pub kind: SegmentKind,
    /// How many objects it has.
    pub objects: u64,
    /// How many bytes it has.
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
}

impl SegmentEnd {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.id);
        out.extend_from_slice(&self.checksum);
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

/// What became of a ref at the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is new there.
    New = 1,
    /// It moved forward.
    FastForward = 2,
    /// Neither contains the other; both are kept.
    Divergent = 3,
    /// It was not taken.
    Refused = 4,
}

/// One ref of a [`Publish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRef {
    /// Its name at the side that gave it.
    pub name: Vec<u8>,
    /// What became of it.
    pub stored: Stored,
    /// Its name at the side that took it; empty if it was refused.
    pub stored_as: Vec<u8>,
}

/// What became of the refs. There may be several such frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// Each of them.
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
        let mut refs = Vec::new();
        for _ in 0..cursor.length(MAX_BODY_BYTES)? {
            refs.push(PublishedRef {
                name: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
                stored: choice(&mut cursor, "fate of a ref", stored)?,
                stored_as: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
            });
        }
        cursor.finish()?;
        Ok(Publish { refs })
    }
}

/// The sender has nothing more to say.
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
