//! Fuzzes the search for the end of a push: the result does not depend on the sizes of the pieces
//! in which the bytes arrive.

use pronto_hash::{Kind, TrailerDigester};
use pronto_wire::receive::{PushEnd, PushParts};

/// The largest size of a piece is this number plus one.
const PIECES: u8 = 63;

pub(crate) fn run(data: &[u8]) {
    let Some(([flags, piece], data)) = data.split_first_chunk() else {
        return;
    };
    let hash = match flags & 1 {
        0 => Kind::Sha1,
        _ => Kind::Sha256,
    };
    let parts = PushParts {
        options: flags & 2 != 0,
        pack: flags & 4 != 0,
        hash,
    };
    let mut push = data.to_vec();
    if flags & 8 != 0 {
        // Random bytes do not contain their own checksum, so a checksum is appended to the bytes
        // after the first flush packet.
        let at = data.windows(4).position(|bytes| bytes == b"0000");
        let start = at.map_or(data.len(), |at| at + 4);
        push.extend_from_slice(b"PACK\0\0\0\x02\0\0\0\0");
        let mut digester = TrailerDigester::new(hash);
        digester.update(push.get(start..).unwrap_or_default());
        push.extend_from_slice(digester.finish().as_slice());
    }
    let mut whole = PushEnd::new(parts);
    let is_end = whole.push(&push);
    let mut in_pieces = PushEnd::new(parts);
    let mut last = false;
    for piece in push.chunks(usize::from(piece & PIECES) + 1) {
        last = in_pieces.push(piece);
    }
    assert_eq!(last, is_end);
}
