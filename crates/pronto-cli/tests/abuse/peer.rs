//! A netsync peer that writes its frames itself.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use pronto_netsync::frame::{FrameHeader, FrameType, HEADER_BYTES};
use pronto_netsync::message::{Accept, Globs, Hello, ObjectFormat, SessionRefusal, TransferRole};
use pronto_netsync::varint;
use pronto_peer::{DuplexStream as _, KeyPair, KnownPeers, NetsyncAddress, TlsLink, connect_tls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::server::PATIENCE;

/// The interval at which the timeout is checked.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A frame type that receivers refuse.
pub(crate) const UNKNOWN: u8 = 0x7f;

/// The first frame type that receivers ignore.
pub(crate) const IGNORED: u8 = 0x80;

/// The last message of a server, or the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A frame of the expected type.
    Frame(u8),
    /// An error of the server.
    Refused(String),
    /// The server has closed the connection.
    Closed,
}

/// Encodes a frame.
pub(crate) fn frame(kind: u8, channel: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 2).expect("it is short");
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend([kind, channel]);
    bytes.extend_from_slice(body);
    bytes
}

/// Encodes a frame of a known type, on its channel.
pub(crate) fn known(kind: FrameType, body: &[u8]) -> Vec<u8> {
    frame(kind as u8, kind.channel() as u8, body)
}

/// Returns the shortest greeting of a peer.
pub(crate) fn hello(repository: &str, role: TransferRole) -> Hello {
    Hello {
        versions: vec![1],
        object_format: ObjectFormat::Sha1,
        role,
        // The capabilities: unrelated histories are permitted, and reasons of refused refs are
        // accepted.
        capabilities: 6,
        repository: repository.as_bytes().to_vec(),
        identity: Vec::new(),
        globs: Globs::default(),
        window_bytes: 1 << 30,
        nonce: [9; 32],
    }
}

/// A connection of a netsync peer.
pub(crate) struct Talk {
    link: TlsLink,
    received: Vec<u8>,
    is_closed: bool,
}

impl Talk {
    /// Connects, and completes the handshake.
    pub(crate) fn open(address: &NetsyncAddress, key: &KeyPair, known: &KnownPeers) -> Self {
        let met = connect_tls(address, key, known, Some("desk"));
        Talk {
            link: met.expect("the server listens").link,
            received: Vec::new(),
            is_closed: false,
        }
    }

    /// Sends bytes, and keeps the bytes that arrive meanwhile. A connection that the server has
    /// closed is not an error.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> &mut Self {
        let (mut rest, end) = (bytes, Instant::now() + PATIENCE);
        while !self.is_closed
            && Instant::now() < end
            && (!rest.is_empty() || self.link.has_pending_output())
        {
            let written = match rest.is_empty() {
                true => self.link.flush_pending().map(|()| 0),
                false => self.link.write(rest),
            };
            match written {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Earlier messages of the server are still to be read.
                Err(_) => return self,
            }
            if !rest.is_empty() || self.link.has_pending_output() {
                self.wait(true);
                self.take_in();
            }
        }
        self
    }

    fn wait(&self, writes: bool) {
        let ends = self.link.ends();
        let flags = match writes {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut fds = [PollFd::from_borrowed_fd(ends.input, flags)];
        // A signal also ends the wait.
        let _ = poll(&mut fds, Some(&LOOK));
    }

    /// Reads the available bytes.
    fn take_in(&mut self) {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.link.read(&mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.is_closed = true,
            }
            return;
        }
    }

    /// Returns the next frame of the server; `None` after the server has closed the connection.
    pub(crate) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let header = FrameHeader::parse(&self.received).map_err(|error| error.to_string())?;
            if let Some(header) = header
                && self.received.len() >= header.frame_bytes()
            {
                let bytes: Vec<u8> = self.received.drain(..header.frame_bytes()).collect();
                return Ok(Some((bytes[4], bytes[HEADER_BYTES..].to_vec())));
            }
            if self.is_closed {
                return Ok(None);
            }
            if Instant::now() > end {
                return Err("the server does not answer".to_owned());
            }
            self.wait(false);
            self.take_in();
        }
    }

    /// Reads up to a frame of this type, an error, or the end. Returns the result with the body of
    /// the frame.
    pub(crate) fn until(&mut self, kind: FrameType) -> Result<(End, Vec<u8>), String> {
        loop {
            match self.next()? {
                None => return Ok((End::Closed, Vec::new())),
                Some((found, body)) if found == FrameType::Error as u8 => {
                    let refusal = SessionRefusal::read(&body).map_err(|error| error.to_string())?;
                    return Ok((End::Refused(refusal.text), Vec::new()));
                }
                Some((found, body)) if found == kind as u8 => return Ok((End::Frame(found), body)),
                Some(_) => {}
            }
        }
    }

    /// Sends the greeting, and waits for the refs of the server. Returns their names.
    pub(crate) fn greet(&mut self, hello: &Hello) -> Result<Result<Vec<Vec<u8>>, End>, String> {
        let mut body = Vec::new();
        hello.write(&mut body);
        self.send(&known(FrameType::Hello, &body));
        let (end, body) = self.until(FrameType::RefRange)?;
        if end != End::Frame(FrameType::RefRange as u8) {
            return Ok(Err(end));
        }
        listed(&body).map(Ok).map_err(|error| error.to_string())
    }

    pub(crate) fn accept(&mut self) -> &mut Self {
        let mut body = Vec::new();
        Accept { version: 1 }.write(&mut body);
        self.send(&known(FrameType::Accept, &body))
    }

    /// Responds to the server's list of refs, offers refs, and waits for the server's wants.
    pub(crate) fn settle(&mut self, answer: &[u8]) -> Result<Result<(), End>, String> {
        self.send(&known(FrameType::RefRange, answer));
        let (end, _) = self.until(FrameType::Want)?;
        Ok(match end {
            End::Frame(_) => Ok(()),
            end => Err(end),
        })
    }

    /// Requires that the server closes the connection earlier than at the timeout of a session.
    pub(crate) fn ends(&mut self) -> Result<Duration, String> {
        let begun = Instant::now();
        while self.next()?.is_some() {}
        Ok(begun.elapsed())
    }
}

/// Returns the names in a list of all refs, which consists of a byte, the number of refs, and the
/// refs.
fn listed(body: &[u8]) -> Result<Vec<Vec<u8>>, pronto_netsync::Error> {
    let mut cursor = varint::Cursor::new(body.get(1..).unwrap_or_default());
    let (mut names, mut name) = (Vec::new(), Vec::new());
    for _ in 0..cursor.varint()? {
        let shared = cursor.length(name.len())?;
        name.truncate(shared);
        name.extend_from_slice(cursor.slice(1024)?);
        cursor.slice(64)?;
        names.push(name.clone());
    }
    Ok(names)
}

/// Encodes a range of all keys: the answer to a list of `listed` refs, of which this side lacks all
/// or none, and the refs of this side.
pub(crate) fn answer(listed: u64, lacks: bool, refs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![7];
    varint::write(&mut body, listed);
    for start in (0..listed).step_by(8) {
        let count = (listed - start).min(8);
        body.push(match lacks {
            true => (0xff_u16 >> (8 - count)) as u8,
            false => 0,
        });
    }
    varint::write(&mut body, refs.len() as u64);
    entries(&mut body, refs);
    body
}

/// Appends the entries of a list, which must be sorted.
pub(crate) fn entries(body: &mut Vec<u8>, refs: &[(Vec<u8>, Vec<u8>)]) {
    let mut before: &[u8] = &[];
    for (key, value) in refs {
        // Most names differ only in their last bytes.
        let start = key.len().saturating_sub(8);
        let start = match before.get(..start) == key.get(..start) {
            true => start,
            false => 0,
        };
        let rest = before[start..].iter().zip(&key[start..]);
        let shared = start + rest.take_while(|(one, other)| one == other).count();
        varint::write(body, shared as u64);
        varint::write(body, (key.len() - shared) as u64);
        body.extend_from_slice(&key[shared..]);
        varint::write(body, value.len() as u64);
        body.extend_from_slice(value);
        before = key;
    }
}
