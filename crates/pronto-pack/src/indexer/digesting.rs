//! Computes the ids of contents, many at a time, and passes objects to the inspector.

use super::{Inspect, StageContext};
use crate::error::{Error, ErrorKind};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Collision, DigestMessage, Kind, ManyDigester, ObjectId};

/// The largest length of the header: a type, a space, 20 digits and a NUL.
const HEADER_BYTES: usize = 32;

/// An object whose id is to be computed.
#[derive(Clone, Copy)]
pub(super) struct UndigestedObject<'a> {
    pub(super) index: u32,
    pub(super) kind: ObjectKind,
    pub(super) content: &'a [u8],
}

/// The ids computed by one worker: packed pairs of an entry number and an id.
pub(super) struct NumberedIds {
    id_len: usize,
    bytes: Vec<u8>,
}

impl NumberedIds {
    pub(super) fn new(kind: Kind) -> Self {
        NumberedIds {
            id_len: kind.len_in_bytes(),
            bytes: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, index: u32, id: &ObjectId) {
        self.bytes.extend_from_slice(&index.to_le_bytes());
        self.bytes.extend_from_slice(id.as_slice());
    }

    /// Returns the number of waiting objects.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / (4 + self.id_len)
    }

    /// Iterates over the entry numbers with their ids as bytes, in the order in which they were
    /// computed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.bytes.chunks_exact(4 + self.id_len).map(|record| {
            let (index, id) = record.split_at(4);
            let index = index.try_into().expect("four bytes were split off");
            (u32::from_le_bytes(index), id)
        })
    }
}

/// The hashing state of one worker.
pub(super) struct DigestWorker {
    digester: ManyDigester,
    headers: Vec<([u8; HEADER_BYTES], usize)>,
    results: Vec<Result<ObjectId, Collision>>,
    pub(super) ids: NumberedIds,
}

impl DigestWorker {
    pub(super) fn new(kind: Kind) -> Self {
        DigestWorker {
            digester: ManyDigester::new(kind),
            headers: Vec::new(),
            results: Vec::new(),
            ids: NumberedIds::new(kind),
        }
    }

    /// Computes the ids of `objects`, records them, and passes the objects to the inspector.
    pub(super) fn digest(
        &mut self,
        surroundings: &StageContext<'_>,
        objects: &[UndigestedObject<'_>],
    ) -> Result<(), Error> {
        self.headers.clear();
        self.headers.extend(
            objects
                .iter()
                .map(|object| header(object.kind, object.content.len() as u64)),
        );
        let messages: Vec<DigestMessage<'_>> = objects
            .iter()
            .zip(&self.headers)
            .map(|(object, (header, len))| DigestMessage {
                header: &header[..*len],
                body: object.content,
            })
            .collect();
        self.results.clear();
        self.digester.digest(&messages, &mut self.results);
        for (object, result) in objects.iter().zip(&self.results) {
            let id = result.as_ref().map_err(|collision| attack(*collision))?;
            if let Some(inspect) = surroundings.inspect {
                inspect.object(object.kind, id, object.content)?;
            }
            self.ids.push(object.index, id);
        }
        Ok(())
    }

    /// Iterates over the ids of the objects that were hashed last, in their order.
    pub(super) fn last(&self) -> impl Iterator<Item = &ObjectId> {
        self.results.iter().flatten()
    }
}

/// Returns the header that is hashed before the content, as in a loose object.
pub(super) fn header(kind: ObjectKind, len: u64) -> ([u8; HEADER_BYTES], usize) {
    let mut header = [0; HEADER_BYTES];
    let name = kind.as_bytes();
    header[..name.len()].copy_from_slice(name);
    header[name.len()] = b' ';
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = len;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let start = name.len() + 1;
    let end = start + digits.len() - at;
    header[start..end].copy_from_slice(&digits[at..]);
    (header, end + 1)
}

/// Returns the error for content that is part of a known collision attack.
pub(super) fn attack(collision: Collision) -> Error {
    Error::new(
        ErrorKind::Collision,
        "SHA-1 appears to be part of a collision attack",
    )
    .on_object(collision.id())
}

/// Passes a large blob, which is never in memory as a whole, to the inspector.
pub(super) fn inspect_large(
    inspect: Option<&dyn Inspect>,
    id: &ObjectId,
    size_bytes: u64,
) -> Result<(), Error> {
    inspect.map_or(Ok(()), |inspect| inspect.large_blob(id, size_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_loose_objects() {
        for (kind, len, expected) in [
            (ObjectKind::Blob, 0, "blob 0\0"),
            (ObjectKind::Tree, 10, "tree 10\0"),
            (
                ObjectKind::Commit,
                u64::MAX,
                "commit 18446744073709551615\0",
            ),
        ] {
            let (header, header_len) = header(kind, len);
            assert_eq!(&header[..header_len], expected.as_bytes());
        }
    }
}
