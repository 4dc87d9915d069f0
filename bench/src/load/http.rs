//! A minimal HTTP/1.1 client over one connection. It uses little processor time, because the server
//! has the same processors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::Result;

/// A persistent connection.
pub(crate) struct KeptConnection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    /// The value of the header field `Authorization`.
    authorization: Option<String>,
}

/// A request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Further header lines, each with its line end.
    pub(crate) headers: &'a str,
    pub(crate) body: &'a [u8],
}

/// The body of a response.
pub(crate) enum ResponseBody<'a> {
    Sized(std::io::Take<&'a mut BufReader<TcpStream>>),
    Chunked {
        stream: &'a mut BufReader<TcpStream>,
        /// The number of bytes left in the chunk; `None` after the last chunk.
        left: Option<u64>,
    },
    /// A body that ends with the connection.
    Rest(&'a mut BufReader<TcpStream>),
}

impl KeptConnection {
    pub(crate) fn new(
        stream: TcpStream,
        address: SocketAddr,
        authorization: Option<String>,
    ) -> Self {
        KeptConnection {
            stream: BufReader::with_capacity(256 * 1024, stream),
            address,
            authorization,
        }
    }

    /// Sends a request and reads the head of the response, whose status must be 200.
    pub(crate) fn send(&mut self, request: &Request<'_>) -> Result<ResponseBody<'_>> {
        let failed = |error| format!("the connection is lost: {error}");
        let authorization = match &self.authorization {
            Some(value) => format!("Authorization: {value}\r\n"),
            None => String::new(),
        };
        let Request {
            method,
            path,
            headers,
            body,
        } = request;
        let length = match *method {
            "POST" => format!("Content-Length: {}\r\n", body.len()),
            _ => String::new(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: git/2.55.0\r\nAccept: */*\r\n\
             {authorization}{headers}{length}\r\n",
            self.address
        );
        let socket = self.stream.get_mut();
        // A small request fits into one packet.
        let bytes = [head.as_bytes(), body].concat();
        socket.write_all(&bytes).map_err(failed)?;
        self.response()
    }

    /// Returns the connection.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    fn response(&mut self) -> Result<ResponseBody<'_>> {
        let status = line(&mut self.stream)?;
        let mut length = None;
        let mut is_chunked = false;
        loop {
            let header = line(&mut self.stream)?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
            is_chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
        }
        if !status.contains(" 200") {
            return Err(format!("the status is '{status}'"));
        }
        Ok(match (is_chunked, length) {
            (true, _) => ResponseBody::Chunked {
                stream: &mut self.stream,
                left: Some(0),
            },
            (false, Some(length)) => ResponseBody::Sized((&mut self.stream).take(length)),
            (false, None) => ResponseBody::Rest(&mut self.stream),
        })
    }
}

impl ResponseBody<'_> {
    /// Reads the rest of the body, so that the connection can be used again.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let read = std::io::copy(&mut self, &mut std::io::sink());
        read.map_err(|error| format!("the response breaks off: {error}"))
    }
}

impl Read for ResponseBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (stream, left) = match self {
            ResponseBody::Sized(stream) => return stream.read(buffer),
            ResponseBody::Rest(stream) => return stream.read(buffer),
            ResponseBody::Chunked { stream, left } => (stream, left),
        };
        let Some(bytes) = left else {
            return Ok(0);
        };
        if *bytes == 0 {
            *bytes = chunk(stream).map_err(std::io::Error::other)?;
            if *bytes == 0 {
                *left = None;
                line(stream).map_err(std::io::Error::other)?;
                return Ok(0);
            }
        }
        let most = buffer
            .len()
            .min(usize::try_from(*bytes).unwrap_or(usize::MAX));
        let count = stream.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        *bytes -= count as u64;
        if *bytes == 0 {
            line(stream).map_err(std::io::Error::other)?;
        }
        Ok(count)
    }
}

/// Reads the size of a chunk.
fn chunk(stream: &mut BufReader<TcpStream>) -> Result<u64> {
    let line = line(stream)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16).map_err(|_| format!("no size of a chunk: '{line}'"))
}

/// Reads a line without its end.
fn line(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = Vec::new();
    let read = stream.read_until(b'\n', &mut line);
    match read.map_err(|error| format!("the connection is lost: {error}"))? {
        0 => Err("the server closes the connection".to_owned()),
        _ => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}
