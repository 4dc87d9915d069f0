//! An HTTP/2 client that writes its frames itself.

use crate::client::Connection;

/// The types of frames.
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

/// The flags of frames.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// An HTTP/2 connection.
pub(crate) struct Frames {
    connection: Connection,
}

/// A received frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// Encodes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes a header field without compression.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127, "a short text");
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// Encodes the header fields of a request.
pub(crate) fn fields(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let pairs = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
    ];
    let all = pairs.iter().chain(more);
    all.flat_map(|(name, value)| field(name, value)).collect()
}

impl Frames {
    /// Starts HTTP/2 on a connection with the preface and the settings.
    pub(crate) fn over(mut connection: Connection) -> Self {
        connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        connection.send(frame(SETTINGS, 0, 0, &[]));
        Frames { connection }
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.connection.send(bytes);
        self
    }

    /// Starts a request.
    pub(crate) fn request(&mut self, stream: u32, flags: u8, fields: &[u8]) -> &mut Self {
        self.send(frame(HEADERS, END_HEADERS | flags, stream, fields))
    }

    /// Reads the next frame.
    pub(crate) fn next(&mut self) -> Result<Frame, String> {
        let head = self.connection.take(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream,
            payload: self.connection.take(length as usize)?,
        })
    }

    /// Reads frames until one matches `fits`.
    pub(crate) fn until(&mut self, fits: impl Fn(&Frame) -> bool) -> Result<Frame, String> {
        loop {
            let frame = self.next()?;
            if fits(&frame) {
                return Ok(frame);
            }
        }
    }

    /// Requires that the server closes the connection. Returns the error code of the server, if
    /// any.
    pub(crate) fn ends(&mut self) -> Result<Option<u32>, String> {
        let mut reason = None;
        loop {
            match self.next() {
                Ok(frame) if frame.kind == GOAWAY => {
                    let code = frame
                        .payload
                        .get(4..8)
                        .and_then(|code| code.try_into().ok());
                    reason = code.map(u32::from_be_bytes);
                }
                Ok(_) => {}
                Err(_) => {
                    return self.connection.ends().map(|_| reason);
                }
            }
        }
    }
}
