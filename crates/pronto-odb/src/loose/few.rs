//! Inflates the first few loose objects of a thread.
//!
//! The fast decoder first queries the vector extensions of the processor. In a virtual machine, the
//! query takes longer than inflating a small object. The decoder of this module does not query the
//! processor, and is slower for large contents. Unusual objects are left to the fast decoder, which
//! also reports errors.

use gix_object::Kind as ObjectKind;
use miniz_oxide::inflate::TINFLStatus as Status;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::{LooseHeader, parse_start};

/// The number of objects of a thread that this module inflates.
pub(super) const MOST: usize = 8;

/// The largest compressed size of these objects.
pub(super) const LARGEST_BYTES: usize = 4096;

/// The largest inflated size of these objects.
const MOST_INFLATED_BYTES: usize = 16 * LARGEST_BYTES;

const FLAGS: u32 = TINFL_FLAG_PARSE_ZLIB_HEADER
    | TINFL_FLAG_COMPUTE_ADLER32
    | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;

/// Inflates a whole object of fewer than `below` bytes. Returns `None` if the object is larger or
/// malformed.
pub(super) fn inflate(deflated: &[u8], below: u64, out: &mut Vec<u8>) -> Option<ObjectKind> {
    let room = deflated.len().saturating_mul(4).min(MOST_INFLATED_BYTES);
    out.clear();
    out.resize(room, 0);
    let mut decoder = Box::<DecompressorOxide>::default();
    let (mut status, mut consumed, mut len) = decompress(&mut decoder, deflated, out, 0, FLAGS);
    let start = parse_start(out.get(..len)?).ok()?;
    let whole = usize::try_from(start.size_bytes)
        .ok()?
        .checked_add(start.header_len)?;
    if start.size_bytes >= below || whole > MOST_INFLATED_BYTES {
        return None;
    }
    if status == Status::HasMoreOutput {
        // The buffer has one byte more than the declared size, so that surplus content is detected.
        out.resize(whole + 1, 0);
        let rest = deflated.get(consumed..)?;
        let (last, more_consumed, more) = decompress(&mut decoder, rest, out, len, FLAGS);
        (status, consumed, len) = (last, consumed + more_consumed, len + more);
    }
    if status != Status::Done || len != whole || consumed != deflated.len() {
        return None;
    }
    out.truncate(whole);
    out.drain(..start.header_len);
    Some(start.kind)
}

/// Inflates the start of an object into `head`. Returns `None` if the data is malformed, even after
/// the header.
pub(super) fn start(deflated: &[u8], head: &mut [u8]) -> Option<LooseHeader> {
    let mut decoder = Box::<DecompressorOxide>::default();
    let (status, _, len) = decompress(&mut decoder, deflated, head, 0, FLAGS);
    match status {
        Status::Done | Status::HasMoreOutput => parse_start(head.get(..len)?).ok(),
        _ => None,
    }
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
            deflated(&[&b"blob 80000\0"[..], &vec![b'x'; 80_000]].concat()),
            [&good[..], b"x"].concat(),
            good[..good.len() - 1].to_vec(),
            b"blob 3\0abc".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(inflate(&broken, u64::MAX, &mut out), None, "{broken:?}");
        }
        // A byte after the header is damaged, so that the checksum is wrong.
        let mut damaged = good;
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert!(start(&damaged, &mut [0; 64]).is_none());
    }
}
