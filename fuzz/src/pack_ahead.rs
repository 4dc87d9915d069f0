//! Fuzzes a pack in which threads read ahead: the result must be the same as without threads.
//!
//! No thread reads ahead before the third segment of 256 KiB. So two blobs that are stored without
//! compression precede the input. The first two bytes give the distance between the rest and the
//! boundary of the third and fourth segment.

use pronto_hash::{Kind, TrailerDigester};
use pronto_pack::indexer::{IndexContext, Options, index_bytes};
use std::sync::LazyLock;

const SEGMENT_BYTES: usize = 256 << 10;
/// The number of entries before the input.
const BEFORE: u32 = 2;
/// The longest block that deflate stores.
const BLOCK_BYTES: usize = 65_535;

/// The first blob, which ends after the second segment.
static FIRST: LazyLock<Vec<u8>> = LazyLock::new(|| stored(2 * SEGMENT_BYTES + 4096));

pub(crate) fn run(data: &[u8]) {
    let Some(([high, low, count], entries)) = data.split_first_chunk() else {
        return;
    };
    let place = usize::from(u16::from_be_bytes([*high, *low]));
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend_from_slice(&(u32::from(*count) + BEFORE).to_be_bytes());
    pack.extend_from_slice(&FIRST);
    // The second blob is as long as necessary.
    let seam = 3 * SEGMENT_BYTES;
    let rest = (seam - (place % 8192)).saturating_sub(pack.len() + 64);
    pack.extend_from_slice(&stored(rest));
    pack.extend_from_slice(entries);
    let mut digester = TrailerDigester::new(Kind::Sha1);
    digester.update(&pack);
    pack.extend_from_slice(digester.finish().as_slice());

    let mut options = Options::default();
    let outcome = |options: &Options| index_bytes(&pack, options, &IndexContext::default());
    options.threads = 1;
    let alone = outcome(&options);
    options.threads = 2;
    let ahead = outcome(&options);
    match (alone, ahead) {
        (Ok(alone), Ok(ahead)) => assert!(alone == ahead, "the indexes differ"),
        (Err(_), Err(_)) => {}
        (alone, ahead) => panic!("{:?}, looking ahead {:?}", alone.err(), ahead.err()),
    }
}

/// Returns the entry of a blob of `len` bytes, stored without compression.
fn stored(len: usize) -> Vec<u8> {
    let content = vec![b'x'; len];
    let mut entry = Vec::new();
    let mut size = len >> 4;
    let mut byte = 3 << 4 | (len & 15) as u8;
    while size > 0 {
        entry.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    entry.push(byte);
    entry.extend_from_slice(&[0x78, 0x01]);
    let mut blocks = content.chunks(BLOCK_BYTES).peekable();
    if blocks.peek().is_none() {
        entry.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let len = block.len() as u16;
        entry.push(u8::from(blocks.peek().is_none()));
        entry.extend_from_slice(&len.to_le_bytes());
        entry.extend_from_slice(&(!len).to_le_bytes());
        entry.extend_from_slice(block);
    }
    // The Adler-32 checksum of equal bytes.
    let (len, byte) = (len as u64, u64::from(b'x'));
    let (a, b) = (1 + byte * len, len + byte * (len * (len + 1) / 2));
    entry.extend_from_slice(&(((b % 65_521) << 16) | (a % 65_521)).to_be_bytes()[4..]);
    entry
}
