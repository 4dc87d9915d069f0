//! Heads and bodies of HTTP/1.1 messages (RFC 9112), as far as the front needs them.

use std::io::{self, BufRead, Read as _, Write};

/// The largest size of a head.
const LONGEST_HEAD_BYTES: u64 = 1 << 20;

/// The head of a request.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) method: String,
    /// The path and the query.
    pub(super) target: String,
    /// The header lines, without the request line.
    lines: Vec<String>,
}

/// The framing of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Sized(u64),
    Chunked,
}

/// Reads the lines of a head, without the empty line at its end. Returns no lines at the end of the
/// stream.
pub(super) fn read_lines(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut reader = reader.take(LONGEST_HEAD_BYTES);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return match lines.is_empty() {
                true => Ok(lines),
                false => Err(malformed("a head has no end")),
            };
        }
        let line = String::from_utf8_lossy(&line);
        match line.trim_end_matches(['\r', '\n']) {
            "" => return Ok(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

impl RequestHead {
    /// Reads the head of a request. Returns `None` at the end of the stream.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut lines = read_lines(reader)?;
        if lines.is_empty() {
            return Ok(None);
        }
        let first = lines.remove(0);
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(malformed("the first line of a request is malformed"));
        };
        Ok(Some(RequestHead {
            method: method.to_owned(),
            target: target.to_owned(),
            lines,
        }))
    }

    /// Returns the value of a header field.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.lines.retain(|line| {
            let found = line.split_once(':').map(|(found, _)| found);
            found.is_none_or(|found| !found.eq_ignore_ascii_case(name))
        });
    }

    /// Returns the head for a server, with another target, and with the request to close the
    /// connection after the response. With a `length`, the body has that number of bytes.
    pub(super) fn bytes_for(&self, target: &str, version: &str, length: Option<usize>) -> Vec<u8> {
        let mut text = format!("{} {target} {version}\r\n", self.method);
        for line in &self.lines {
            let name = line.split(':').next().unwrap_or_default();
            let is_dropped = match name.to_ascii_lowercase().as_str() {
                "connection" => true,
                "content-length" | "transfer-encoding" | "expect" => length.is_some(),
                _ => false,
            };
            if !is_dropped {
                text.push_str(line);
                text.push_str("\r\n");
            }
        }
        if let Some(length) = length {
            text.push_str(&format!("Content-Length: {length}\r\n"));
        }
        text.push_str("Connection: close\r\n\r\n");
        text.into_bytes()
    }
}

impl BodyLength {
    /// Returns the framing of the body after a head.
    pub(super) fn of(head: &RequestHead) -> io::Result<Self> {
        if head.header("transfer-encoding").is_some() {
            return Ok(BodyLength::Chunked);
        }
        let length = head.header("content-length").unwrap_or("0").parse();
        let length = length.map_err(|_| malformed("the length of a body is malformed"))?;
        Ok(BodyLength::Sized(length))
    }

    /// Copies the body unchanged.
    pub(super) fn relay(self, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
        match self {
            BodyLength::Sized(length) => copy(from, length, to),
            BodyLength::Chunked => chunks(from, |line, from, length| {
                to.write_all(line)?;
                copy(from, length, to)?;
                to.write_all(b"\r\n")?;
                to.flush()
            }),
        }
    }

    /// Reads the content of the body.
    pub(super) fn read(self, from: &mut impl BufRead, to: &mut Vec<u8>) -> io::Result<()> {
        match self {
            BodyLength::Sized(length) => copy(from, length, to),
            BodyLength::Chunked => chunks(from, |_, from, length| copy(from, length, to)),
        }
    }
}

/// Calls `each` with the first line and the length of each chunk, up to the last, empty chunk.
/// `each` must read the content. This function reads the line end after it.
fn chunks<R: BufRead>(
    from: &mut R,
    mut each: impl FnMut(&[u8], &mut R, u64) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let digits = text.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16);
        let length = length.map_err(|_| malformed("the length of a chunk is malformed"))?;
        each(&line, from, length)?;
        let mut end = [0; 2];
        from.read_exact(&mut end)?;
        if length == 0 {
            return Ok(());
        }
    }
}

/// Copies `length` bytes.
fn copy(from: &mut impl BufRead, length: u64, to: &mut impl Write) -> io::Result<()> {
    match io::copy(&mut from.take(length), to)? == length {
        true => Ok(()),
        false => Err(malformed("a body is cut off")),
    }
}

fn malformed(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"POST /a?b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
        Connection: keep-alive\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\nrest";

    #[test]
    fn chunks_are_relayed_and_decoded() {
        let mut from = CHUNKED;
        let head = RequestHead::read(&mut from)
            .expect("well formed")
            .expect("a head");
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("POST", "/a?b")
        );
        let body = BodyLength::of(&head).expect("well formed");
        let (mut again, mut content, mut raw) = (from, Vec::new(), Vec::new());
        body.read(&mut again, &mut content).expect("whole");
        assert_eq!((content.as_slice(), again), (&b"abcde"[..], &b"rest"[..]));
        body.relay(&mut from, &mut raw).expect("whole");
        assert!(raw.ends_with(b"de\r\n0\r\n\r\n") && from == b"rest");
    }

    #[test]
    fn heads_for_servers_close_the_connection() {
        let head = RequestHead::read(&mut &*CHUNKED)
            .expect("well formed")
            .expect("a head");
        let text = String::from_utf8(head.bytes_for("/b", "HTTP/1.0", Some(5))).expect("text");
        assert_eq!(
            text,
            "POST /b HTTP/1.0\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn bodies_that_are_cut_off_are_errors() {
        for bad in [&b"3\r\nab"[..], b"x\r\n", b""] {
            let read = BodyLength::Chunked.read(&mut &*bad, &mut Vec::new());
            assert!(read.is_err(), "{bad:?}");
        }
        assert!(
            BodyLength::Sized(2)
                .read(&mut &b"a"[..], &mut Vec::new())
                .is_err()
        );
    }
}
