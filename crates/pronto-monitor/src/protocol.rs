//! The messages between Git and a monitor (Git's `api-simple-ipc`). A connection has one request
//! and one answer, each in packet lines that end with a flush packet. A request is a token or a
//! command. The answer to a token is a new token, a NUL, and the changed paths, each followed by a
//! NUL.

use bstr::{BStr, BString, ByteSlice};
use std::io::{self, Read, Write};

/// The maximum content of one packet line.
const MOST_IN_PACKET: usize = 65516;
/// The length of the length field of a packet line.
const LEN_BYTES: usize = 4;
/// The maximum size of an answer. Longer answers are rejected.
pub const LONGEST_ANSWER_BYTES: usize = 1 << 30;
/// The maximum size of a request. Longer requests are rejected.
pub const LONGEST_REQUEST_BYTES: usize = 64 * 1024;

/// The answer of a monitor to a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorResponse {
    /// Every path may have changed.
    Everything {
        /// The token for the next query.
        token: BString,
    },
    /// Only these paths have changed.
    Paths {
        /// The token for the next query.
        token: BString,
        /// The paths, relative to the top of the worktree. A path with a trailing slash is a
        /// directory and includes everything in it.
        paths: Vec<BString>,
    },
}

impl MonitorResponse {
    /// Parses an answer. Returns `None` if the message is malformed or has no token.
    pub fn parse(message: &[u8]) -> Option<MonitorResponse> {
        let (token, rest) = message.split_once_str(b"\0")?;
        if token.is_empty() {
            return None;
        }
        Some(MonitorResponse::new(token.into(), rest))
    }

    /// Creates an answer from a token and paths that are separated or terminated by NUL. The path
    /// `/` means [`MonitorResponse::Everything`].
    pub fn new(token: BString, paths: &[u8]) -> MonitorResponse {
        if paths.first() == Some(&b'/') {
            return MonitorResponse::Everything { token };
        }
        let paths = paths.split(|&byte| byte == 0);
        let paths = paths.filter(|path| !path.is_empty()).map(BString::from);
        MonitorResponse::Paths {
            token,
            paths: paths.collect(),
        }
    }

    /// Returns the token for the next query.
    pub fn token(&self) -> &BStr {
        match self {
            MonitorResponse::Everything { token } | MonitorResponse::Paths { token, .. } => {
                token.as_bstr()
            }
        }
    }

    /// Encodes the answer as a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = self.token().to_vec();
        message.push(0);
        match self {
            MonitorResponse::Everything { .. } => message.extend_from_slice(b"/\0"),
            MonitorResponse::Paths { paths, .. } => {
                for path in paths {
                    message.extend_from_slice(path);
                    message.push(0);
                }
            }
        }
        message
    }
}

/// Writes `message` as packet lines, followed by a flush packet.
///
/// # Errors
/// Fails with the errors of writing.
pub fn write_message(mut out: impl Write, message: &[u8]) -> io::Result<()> {
    let packets = message.len().div_ceil(MOST_IN_PACKET) + 1;
    let mut bytes = Vec::with_capacity(message.len() + packets * LEN_BYTES);
    for packet in message.chunks(MOST_IN_PACKET) {
        bytes.extend_from_slice(format!("{:04x}", packet.len() + LEN_BYTES).as_bytes());
        bytes.extend_from_slice(packet);
    }
    bytes.extend_from_slice(b"0000");
    out.write_all(&bytes)
}

/// Reads packet lines up to the flush packet, and returns their content.
///
/// # Errors
/// Fails with the errors of reading, and with `InvalidData` for a malformed packet line or a
/// message of more than `most_bytes`.
pub fn read_message(mut input: impl Read, most_bytes: usize) -> io::Result<Vec<u8>> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut message = Vec::new();
    loop {
        let mut len = [0; LEN_BYTES];
        input.read_exact(&mut len)?;
        let len = std::str::from_utf8(&len).ok();
        let len = len.filter(|len| len.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let len = len.and_then(|len| usize::from_str_radix(len, 16).ok());
        let len = match len.ok_or_else(|| wrong("bad line length character"))? {
            0 => return Ok(message),
            len => len,
        };
        let len = len
            .checked_sub(LEN_BYTES)
            .filter(|len| *len > 0)
            .ok_or_else(|| wrong("bad line length"))?;
        let start = message.len();
        if start + len > most_bytes {
            return Err(wrong("message is too long"));
        }
        message.resize(start + len, 0);
        input.read_exact(&mut message[start..])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        for len in [0, 1, MOST_IN_PACKET, MOST_IN_PACKET + 1, 200_000] {
            let message: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut bytes = Vec::new();
            write_message(&mut bytes, &message).expect("memory takes it");
            assert_eq!(read_message(&bytes[..], len).expect("sound"), message);
            assert!(len == 0 || read_message(&bytes[..], len - 1).is_err());
            assert!(read_message(&bytes[..bytes.len() - 1], len).is_err());
        }
        for broken in [&b"zzzz"[..], b"+004", b"0003", b"0004", b"ffff", b""] {
            assert!(read_message(broken, 100_000).is_err());
        }
    }

    #[test]
    fn answers_come_back() {
        let token = BString::from("builtin:x:1");
        for answer in [
            MonitorResponse::Everything {
                token: token.clone(),
            },
            MonitorResponse::Paths {
                token: token.clone(),
                paths: Vec::new(),
            },
            MonitorResponse::Paths {
                token,
                paths: vec!["a".into(), "b/".into()],
            },
        ] {
            assert_eq!(MonitorResponse::parse(&answer.encode()), Some(answer));
        }
        assert_eq!(MonitorResponse::parse(b""), None);
        assert_eq!(MonitorResponse::parse(b"\0a\0"), None);
        assert_eq!(MonitorResponse::parse(b"no end"), None);
    }
}
