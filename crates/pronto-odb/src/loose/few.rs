//! Inflates the first few loose objects of a thread.
//!
//! The fast decoder asks the processor first which vectors it has, which takes 20 to 50 microseconds in a virtual machine:
//! more than a small call needs to inflate. This one does not ask, and is slower for large contents. Objects that are
//! unusual in any way are left to the other, which reports them.

use flate2::{Decompress, FlushDecompress, Status};
use gix_object::Kind as ObjectKind;

use super::{Start, parse_start};

/// The number of objects that are read in this way.
pub(super) const MOST: usize = 8;

/// The largest of them, compressed.
pub(super) const LARGEST_BYTES: usize = 4096;

/// The most bytes that one of them may have, inflated.
const MOST_INFLATED_BYTES: usize = 16 * LARGEST_BYTES;

/// Inflates a whole object of fewer than `below` bytes. `None` if it is larger or malformed.
pub(super) fn inflate(deflated: &[u8], below: u64, out: &mut Vec<u8>) -> Option<ObjectKind> {
    let room = deflated.len().saturating_mul(4).min(MOST_INFLATED_BYTES);
    out.clear();
    out.resize(room, 0);
    let mut decoder = Decompress::new(true);
    let flush = FlushDecompress::None;
    let mut status = decoder.decompress(deflated, out, flush).ok()?;
    let len = usize::try_from(decoder.total_out()).ok()?;
    let start = parse_start(out.get(..len)?).ok()?;
    let whole = usize::try_from(start.size_bytes)
        .ok()?
        .checked_add(start.header_len)?;
    if start.size_bytes >= below || whole > MOST_INFLATED_BYTES {
        return None;
    }
    if status != Status::StreamEnd {
        // One more than is claimed: what does not fit is noticed.
        out.resize(whole + 1, 0);
    }
    while status != Status::StreamEnd {
        // It inflates 32 KiB at a time.
        let before = (decoder.total_in(), decoder.total_out());
        let (consumed, len) = (
            usize::try_from(before.0).ok()?,
            usize::try_from(before.1).ok()?,
        );
        let (rest, room) = (deflated.get(consumed..)?, out.get_mut(len..)?);
        status = decoder.decompress(rest, room, flush).ok()?;
        if status != Status::StreamEnd && before == (decoder.total_in(), decoder.total_out()) {
            return None;
        }
    }
    let is_whole = status == Status::StreamEnd
        && decoder.total_out() == whole as u64
        && decoder.total_in() == deflated.len() as u64;
    if !is_whole {
        return None;
    }
    out.truncate(whole);
    out.drain(..start.header_len);
    Some(start.kind)
}

/// Inflates the start of an object into `head`.
pub(super) fn start(deflated: &[u8], head: &mut [u8]) -> Option<Start> {
    let mut decoder = Decompress::new(true);
    decoder
        .decompress(deflated, head, FlushDecompress::None)
        .ok()?;
    let len = usize::try_from(decoder.total_out()).ok()?;
    parse_start(head.get(..len)?).ok()
}

#[cfg(test)]
mod tests {
    use sirocco::Format;
    use sirocco::deflate::Level;

    use super::*;

    fn deflated(text: &[u8]) -> Vec<u8> {
        sirocco::compress(Format::Zlib, Level::DEFAULT, text)
    }

    #[test]
    fn whole_objects_are_inflated() {
        for length in [0, 1, 100, 5000, 60_000] {
            let content = vec![b'x'; length];
            let text = [format!("blob {length}\0").as_bytes(), &content].concat();
            let small = deflated(&text);
            let mut out = Vec::new();
            assert_eq!(inflate(&small, u64::MAX, &mut out), Some(ObjectKind::Blob));
            assert_eq!(out, content);
            assert_eq!(inflate(&small, length as u64, &mut out), None);
            let mut head = [0; 64];
            let found = start(&small, &mut head).map(|start| start.size_bytes);
            assert_eq!(found, Some(length as u64));
        }
    }

    #[test]
    fn malformed_objects_are_left_to_the_other() {
        let good = deflated(b"blob 3\0abc");
        let mut out = Vec::new();
        for broken in [
            deflated(b"blob 4\0abc"),
            deflated(b"blob 2\0abc"),
            deflated(b"nothing"),
            deflated(&[&b"blob 80000\0"[..], &[b'x'; 80_000]].concat()),
            [&good[..], b"x"].concat(),
            good[..good.len() - 1].to_vec(),
            b"blob 3\0abc".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(inflate(&broken, u64::MAX, &mut out), None, "{broken:?}");
        }
    }
}
