//! Detection of the end of a push in its bytes.
//!
//! On a bidirectional connection a client closes its side only after the status report. Therefore a
//! proxy that forwards a push cannot distinguish a client that has sent everything from one that
//! stalls. The last bytes of a pack are the digest of the bytes before them (`gitformat-pack(5)`), so
//! that the end is found without inflating an object.

use pronto_hash::{Kind, TrailerDigester};

use crate::pktline::{self, Packet, Parsed};

/// The length of a pack header: `PACK`, the version, and the number of objects.
const HEADER_BYTES: u64 = 12;

/// The length of a packet header.
const LENGTH_BYTES: usize = 4;

/// The parts of which a push consists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushParts {
    /// Whether push options follow the commands.
    pub options: bool,
    /// Whether a pack is the last part, because a command creates or updates a ref.
    pub pack: bool,
    /// The hash function of the pack.
    pub hash: Kind,
}

/// Follows the bytes of a push up to its end.
#[derive(Debug)]
pub struct PushEnd {
    has_pack: bool,
    hash: Kind,
    place: StreamPosition,
}

#[derive(Debug)]
enum StreamPosition {
    /// In packets. `lists` is the number of flush packets to come.
    Packets {
        lists: usize,
        at: InPacket,
    },
    Pack(PackTail),
    Ended,
    /// The bytes are malformed, or continue after the end of the push.
    Unknown,
}

#[derive(Debug)]
enum InPacket {
    /// In the length of a packet, with the digits received so far and their number.
    Length([u8; LENGTH_BYTES], usize),
    /// In the payload of a packet, with the number of remaining bytes.
    Payload(usize),
}

impl InPacket {
    const START: Self = InPacket::Length([0; LENGTH_BYTES], 0);
}

/// A pack whose last bytes may be its digest.
#[derive(Debug)]
struct PackTail {
    digester: TrailerDigester,
    bytes: u64,
    /// The last bytes, which are not part of the digested data yet.
    last: Vec<u8>,
}

impl PackTail {
    fn new(hash: Kind) -> Self {
        PackTail {
            digester: TrailerDigester::new(hash),
            bytes: 0,
            last: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8], trailer: usize) {
        self.bytes += bytes.len() as u64;
        // The number of kept bytes that are not among the last ones any more.
        let older = (self.last.len() + bytes.len()).saturating_sub(trailer);
        let older = older.min(self.last.len());
        self.digester
            .update(self.last.get(..older).unwrap_or_default());
        self.last.drain(..older);
        let (old, new) = bytes.split_at(bytes.len() - bytes.len().min(trailer));
        self.digester.update(old);
        self.last.extend_from_slice(new);
    }

    /// Returns whether the last bytes are the digest of the bytes before.
    fn is_whole(&self, trailer: usize) -> bool {
        let digest = || self.digester.clone().finish();
        self.bytes >= HEADER_BYTES + trailer as u64 && digest().as_slice() == self.last
    }
}

impl PushEnd {
    /// Starts at the first command of a push.
    pub fn new(parts: PushParts) -> Self {
        PushEnd {
            has_pack: parts.pack,
            hash: parts.hash,
            place: StreamPosition::Packets {
                lists: 1 + usize::from(parts.options),
                at: InPacket::START,
            },
        }
    }

    /// Takes the next bytes. Returns whether the push ends with them. A malformed push, or one followed
    /// by further bytes, has no end.
    ///
    /// Costs the computation of a digest over the bytes.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let StreamPosition::Packets { lists, at } = &mut self.place
            && !rest.is_empty()
        {
            match at.take(&mut rest) {
                Ok(false) => {}
                Ok(true) if *lists > 1 => *lists -= 1,
                Ok(true) if self.has_pack => {
                    self.place = StreamPosition::Pack(PackTail::new(self.hash))
                }
                Ok(true) => self.place = StreamPosition::Ended,
                Err(Malformed) => self.place = StreamPosition::Unknown,
            }
        }
        let trailer = self.hash.len_in_bytes();
        match &mut self.place {
            StreamPosition::Pack(pack) => {
                pack.push(rest, trailer);
                pack.is_whole(trailer)
            }
            StreamPosition::Ended if rest.is_empty() => true,
            StreamPosition::Ended => {
                self.place = StreamPosition::Unknown;
                false
            }
            StreamPosition::Packets { .. } | StreamPosition::Unknown => false,
        }
    }
}

/// The error for bytes that are not packets.
struct Malformed;

impl InPacket {
    /// Takes bytes of one packet. Returns whether the packet is complete and is a flush packet.
    fn take(&mut self, rest: &mut &[u8]) -> Result<bool, Malformed> {
        match self {
            InPacket::Payload(left) => {
                let (_, behind) = rest.split_at((*left).min(rest.len()));
                *left -= rest.len() - behind.len();
                *rest = behind;
                if *left == 0 {
                    *self = InPacket::START;
                }
                Ok(false)
            }
            InPacket::Length(digits, count) => {
                let Some((digit, behind)) = rest.split_first() else {
                    return Ok(false);
                };
                *rest = behind;
                if let Some(place) = digits.get_mut(*count) {
                    *place = *digit;
                }
                *count += 1;
                if *count < LENGTH_BYTES {
                    return Ok(false);
                }
                let (next, is_flush) = match pktline::parse(digits) {
                    Ok(Parsed::Incomplete { length }) => {
                        (InPacket::Payload(length - LENGTH_BYTES), false)
                    }
                    Ok(Parsed::Complete { packet, .. }) => match packet {
                        Packet::Flush => (InPacket::START, true),
                        Packet::Data(_) => (InPacket::START, false),
                        Packet::Delimiter | Packet::ResponseEnd => return Err(Malformed),
                    },
                    Err(_) => return Err(Malformed),
                };
                *self = next;
                Ok(is_flush)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PushParts = PushParts {
        options: false,
        pack: true,
        hash: Kind::Sha1,
    };

    fn packets(lists: &[&[&str]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for list in lists {
            for payload in *list {
                pktline::write(&mut bytes, payload.as_bytes()).expect("it is short");
            }
            pktline::write_flush(&mut bytes);
        }
        bytes
    }

    fn pack(hash: Kind, contents: &[u8]) -> Vec<u8> {
        let mut bytes = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
        bytes.extend_from_slice(contents);
        let mut digester = TrailerDigester::new(hash);
        digester.update(&bytes);
        bytes.extend_from_slice(digester.finish().as_slice());
        bytes
    }

    /// Returns the number of bytes after which a push that comes in pieces is at its end.
    fn end_of(parts: PushParts, bytes: &[u8], piece: usize) -> Option<usize> {
        let mut end = PushEnd::new(parts);
        let mut taken = 0;
        for piece in bytes.chunks(piece) {
            taken += piece.len();
            if end.push(piece) {
                return Some(taken);
            }
        }
        None
    }

    #[test]
    fn the_end_is_that_of_the_last_part() {
        let commands: &[&str] = &["0 1 refs/heads/a\0report-status", "0 1 refs/heads/b", ""];
        let sha256 = PushParts {
            hash: Kind::Sha256,
            ..ONE
        };
        let with_options = PushParts {
            options: true,
            ..ONE
        };
        let without_pack = PushParts { pack: false, ..ONE };
        let only_options = PushParts {
            pack: false,
            ..with_options
        };
        for (parts, lists, last) in [
            (ONE, vec![commands], pack(Kind::Sha1, b"")),
            (ONE, vec![commands], pack(Kind::Sha1, &[7; 5000])),
            (sha256, vec![commands], pack(Kind::Sha256, &[7; 5000])),
            (
                with_options,
                vec![commands, &["ci.skip"]],
                pack(Kind::Sha1, b"0000"),
            ),
            (with_options, vec![commands, &[]], pack(Kind::Sha1, b"0000")),
            (without_pack, vec![commands], Vec::new()),
            (only_options, vec![commands, &["x"]], Vec::new()),
        ] {
            let bytes = [packets(&lists), last].concat();
            for piece in [1, 2, 3, 19, 20, 21, 33, 4096, bytes.len()] {
                assert_eq!(end_of(parts, &bytes, piece), Some(bytes.len()), "{piece}");
            }
            for cut in 0..bytes.len() {
                assert_eq!(end_of(parts, &bytes[..cut], 64), None, "{cut}");
            }
            let more = [&bytes[..], b"x"].concat();
            assert_eq!(end_of(parts, &more, more.len()), None);
        }
    }

    #[test]
    fn what_is_no_push_has_no_end() {
        let whole = [packets(&[&["0 1 refs/heads/a"]]), pack(Kind::Sha1, b"x")].concat();
        for bytes in [
            &b"0001"[..],
            b"0002",
            b"0003",
            b"zzzz",
            b"fff5",
            b"PACK",
            &[&b"0001"[..], &whole].concat(),
            &[&b"x"[..], &whole].concat(),
        ] {
            assert_eq!(end_of(ONE, bytes, bytes.len()), None, "{bytes:?}");
            assert_eq!(end_of(ONE, bytes, 1), None, "{bytes:?}");
        }
        let mut damaged = whole.clone();
        damaged[30] ^= 1;
        assert_eq!(end_of(ONE, &damaged, 7), None);
        let with_options = PushParts {
            options: true,
            ..ONE
        };
        assert_eq!(end_of(with_options, &whole, 7), None);
    }
}
