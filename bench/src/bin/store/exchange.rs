//! HTTP/1.1 requests and responses, as clients of an object store use them.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// A request.
pub(crate) struct Request {
    pub(crate) method: String,
    /// The name of the object: the path without the bucket.
    pub(crate) name: String,
    parameters: Vec<(String, String)>,
    /// The first and the last requested byte.
    pub(crate) range: Option<(usize, usize)>,
    /// Whether the object must not exist (`If-None-Match: *`).
    pub(crate) is_creation: bool,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A response: a range of bytes.
pub(crate) struct RangeResponse {
    pub(crate) status: u16,
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) range: Range<usize>,
    pub(crate) written: Option<Timestamp>,
}

impl RangeResponse {
    pub(crate) fn status(status: u16) -> Self {
        RangeResponse::new(status, String::new())
    }

    pub(crate) fn text(text: String) -> Self {
        RangeResponse::new(200, text)
    }

    pub(crate) fn error(status: u16, code: &str) -> Self {
        RangeResponse::new(status, format!("<Error><Code>{code}</Code></Error>"))
    }

    fn new(status: u16, text: String) -> Self {
        RangeResponse {
            status,
            range: 0..text.len(),
            body: Arc::new(text.into_bytes()),
            written: None,
        }
    }
}

/// Reads a request with its body.
pub(crate) fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Request> {
    let head = line(stream)?;
    let mut words = head.split(' ').map(str::to_owned);
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = Request {
        method,
        name: decoded(
            path.trim_start_matches('/')
                .split_once('/')
                .map_or("", |(_, name)| name),
        ),
        parameters: query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (key.to_owned(), decoded(value)))
            .collect(),
        range: None,
        is_creation: false,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let header = line(stream)?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "range" => request.range = range(value),
            "if-none-match" => request.is_creation = true,
            _ => {}
        }
    }
    stream.take(length).read_to_end(&mut request.body)?;
    Ok(request)
}

fn range(value: &str) -> Option<(usize, usize)> {
    let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
    Some((start.parse().ok()?, end.parse().unwrap_or(usize::MAX)))
}

fn line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    line.truncate(line.trim_end().len());
    Ok(line)
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let digits = more
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, value) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = &more[2..];
            }
            _ => {
                bytes.push(first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes the head of a response.
pub(crate) fn write_head(stream: &mut TcpStream, answer: &RangeResponse) -> std::io::Result<()> {
    let reason = match answer.status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        404 => "Not Found",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        _ => "Error",
    };
    let written = answer.written.unwrap_or_else(Timestamp::now);
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&written);
    let date = date.map_err(std::io::Error::other)?;
    let part = match answer.status {
        206 => format!(
            "Content-Range: bytes {}-{}/{}\r\n",
            answer.range.start,
            answer.range.end - 1,
            answer.body.len()
        ),
        _ => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: {date}\r\n\
         Content-Type: application/octet-stream\r\n{part}\r\n",
        answer.status,
        answer.range.len()
    );
    stream.write_all(head.as_bytes())
}
