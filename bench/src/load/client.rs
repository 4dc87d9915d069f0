//! A client: the address of a server, and exchanges with the server.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::Result;
use super::http::{KeptConnection, Request};
use super::packets::{self, LoadPacket};

/// The timeout without a received byte, after which a request has failed.
const STALL: Duration = Duration::from_secs(300);

/// The timeout for one of many connections. Servers do not respond to connections over their
/// limits.
const SHORT_STALL: Duration = Duration::from_secs(10);

/// The address of a server, and the client's login.
#[derive(Clone, Debug)]
pub struct LoadClient {
    is_http: bool,
    /// The address of the server.
    pub address: SocketAddr,
    /// The path of the repositories, without a slash at the end.
    path: String,
    authorization: Option<String>,
    stall: Duration,
    /// The source address of the client; `None` for the default.
    source: Option<Ipv4Addr>,
}

/// A connection for one repository.
pub struct LoadConnection {
    channel: LoadChannel,
}

enum LoadChannel {
    Http { http: KeptConnection, path: String },
    Socket(BufReader<TcpStream>),
}

impl LoadClient {
    /// Parses a URL.
    ///
    /// # Errors
    /// Fails if the URL is malformed, or if its host is not on the loopback interface.
    pub fn new(url: &str, login: Option<&str>) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or("the URL has no scheme")?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address: SocketAddr = address.parse().map_err(|_| {
            format!(
                "'{address}' is no address with a port: only servers of this machine are measured"
            )
        })?;
        if !address.ip().is_loopback() {
            return Err(format!("{address} is not of the loopback interface"));
        }
        Ok(LoadClient {
            is_http: scheme == "http",
            address,
            path: format!("/{path}").trim_end_matches('/').to_owned(),
            authorization: login.map(|login| format!("Basic {}", base64(login.as_bytes()))),
            stall: STALL,
            source: None,
        })
    }

    /// Returns a copy of the client with a short timeout.
    pub fn impatient(&self) -> Self {
        LoadClient {
            stall: SHORT_STALL,
            ..self.clone()
        }
    }

    /// Returns a copy of the client with the source address `source`.
    pub fn from(&self, source: Ipv4Addr) -> Self {
        LoadClient {
            source: Some(source),
            ..self.clone()
        }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Fails if the server does not accept the connection.
    pub fn connect(&self) -> Result<TcpStream> {
        let failed = |error| format!("cannot connect: {error}");
        let stream = match self.source {
            None => TcpStream::connect_timeout(&self.address, self.stall),
            Some(source) => connect_from(source, self.address),
        };
        let stream = stream.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(self.stall)).map_err(failed)?;
        stream.set_write_timeout(Some(self.stall)).map_err(failed)?;
        Ok(stream)
    }

    /// Starts a fetch with protocol version 2, and reads the capabilities.
    ///
    /// # Errors
    /// Fails if the server refuses, or if the connection is lost.
    pub fn fetch(&self, repository: &str) -> Result<LoadConnection> {
        let mut conversation = self.begin(repository, "git-upload-pack", "version=2")?;
        conversation.advertisement("git-upload-pack", &mut |_| ())?;
        Ok(conversation)
    }

    /// Starts a push. `each` is called with each line of the ref advertisement.
    ///
    /// # Errors
    /// Fails if the server refuses, or if the connection is lost.
    pub fn push(&self, repository: &str, each: &mut dyn FnMut(&[u8])) -> Result<LoadConnection> {
        let mut conversation = self.begin(repository, "git-receive-pack", "version=0")?;
        conversation.advertisement("git-receive-pack", each)?;
        Ok(conversation)
    }

    fn begin(&self, repository: &str, service: &str, version: &str) -> Result<LoadConnection> {
        let mut stream = self.connect()?;
        let path = format!("{}/{repository}", self.path);
        if self.is_http {
            let http = KeptConnection::new(stream, self.address, self.authorization.clone());
            return Ok(LoadConnection {
                channel: LoadChannel::Http { http, path },
            });
        }
        let mut line = Vec::new();
        let text = format!("{service} {path}\0host={}\0\0{version}\0", self.address);
        packets::write(&mut line, text.as_bytes());
        let failed = |error| format!("the connection is lost: {error}");
        stream.write_all(&line).map_err(failed)?;
        let stream = BufReader::with_capacity(256 * 1024, stream);
        Ok(LoadConnection {
            channel: LoadChannel::Socket(stream),
        })
    }
}

impl LoadConnection {
    /// Reads the advertisement of a service.
    fn advertisement(&mut self, service: &str, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        match &mut self.channel {
            LoadChannel::Socket(stream) => lines(stream, each),
            LoadChannel::Http { http, path } => {
                let version = match service {
                    "git-upload-pack" => "Git-Protocol: version=2\r\n",
                    _ => "",
                };
                let path = format!("{path}/info/refs?service={service}");
                let mut body = http.send(&Request {
                    method: "GET",
                    path: &path,
                    headers: version,
                    body: b"",
                })?;
                // The name of the service is the first line, unless the server omits it.
                let mut is_service = false;
                lines(&mut body, &mut |line| {
                    is_service = line.starts_with(b"# service=");
                    if !is_service {
                        each(line);
                    }
                })?;
                if is_service {
                    lines(&mut body, each)?;
                }
                body.finish().map(|_| ())
            }
        }
    }

    /// Returns the connection, which stays open.
    #[must_use]
    pub fn into_stream(self) -> TcpStream {
        match self.channel {
            LoadChannel::Socket(stream) => stream.into_inner(),
            LoadChannel::Http { http, .. } => http.into_stream(),
        }
    }

    /// Sends a request, and passes the response to `read`.
    ///
    /// # Errors
    /// Fails if the server refuses, if the connection is lost, or if `read` fails.
    pub fn ask<T>(
        &mut self,
        service: &str,
        body: &[u8],
        read: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        match &mut self.channel {
            LoadChannel::Socket(stream) => {
                let written = stream.get_mut().write_all(body);
                written.map_err(|error| format!("the connection is lost: {error}"))?;
                read(stream)
            }
            LoadChannel::Http { http, path } => {
                let version = match service {
                    "git-upload-pack" => "Git-Protocol: version=2\r\n",
                    _ => "",
                };
                let headers = format!(
                    "Content-Type: application/x-{service}-request\r\n\
                     Accept: application/x-{service}-result\r\n{version}"
                );
                let path = format!("{path}/{service}");
                let mut answer = http.send(&Request {
                    method: "POST",
                    path: &path,
                    headers: &headers,
                    body,
                })?;
                let result = read(&mut answer)?;
                answer.finish()?;
                Ok(result)
            }
        }
    }
}

/// Opens a connection from an address of this machine.
///
/// # Errors
/// Fails if the server does not accept the connection, or if `source` is not an address of this
/// machine.
pub fn connect_from(source: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    // Child processes that other threads start must not inherit the connection.
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let made = socket_with(family, SocketType::STREAM, flags, None)?;
    bind(&made, &SocketAddrV4::new(source, 0))?;
    connect(&made, &to)?;
    Ok(TcpStream::from(made))
}

/// Reads packets until a flush.
fn lines(stream: &mut dyn Read, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    loop {
        match packets::read(stream)? {
            LoadPacket::Data(line) => each(&line),
            LoadPacket::Flush => return Ok(()),
            LoadPacket::Special => {}
        }
    }
}

/// Encodes bytes as Base64, for HTTP Basic authentication.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = (0..3).fold(0, |number, at| {
            number << 8 | usize::from(group.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            match at <= group.len() {
                true => text.push(DIGITS[number >> (18 - 6 * at) & 63].into()),
                false => text.push('='),
            }
        }
    }
    text
}
