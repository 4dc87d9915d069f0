//! Hostile clients: sockets with an address of their own, and HTTP responses.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::server::PATIENCE;
use crate::tls::Tls;

/// The address of attackers. Honest clients use 127.0.0.1.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

/// The pause between two bytes of a client that sends byte by byte.
const PACE: Duration = Duration::from_millis(15);

/// The request ids that the server has reported to clients.
pub(crate) type RequestIds = Arc<Mutex<Vec<String>>>;

/// A connection with both directions.
trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// A connection to the server.
pub(crate) struct Connection {
    stream: Box<dyn Duplex>,
    socket: TcpStream,
    received: Vec<u8>,
    ids: RequestIds,
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The received bytes up to the end of a connection.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) bytes: Vec<u8>,
    /// Whether the server has closed the connection.
    pub(crate) is_closed: bool,
}

/// Connects from `source`.
pub(crate) fn connect_from(source: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    // Child processes that other threads start must not inherit the connection.
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let made = socket_with(family, SocketType::STREAM, flags, None)?;
    bind(&made, &SocketAddrV4::new(source, 0))?;
    connect(&made, &to)?;
    let stream = TcpStream::from(made);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Connection {
    /// Connects from `source`, with TLS if a configuration is given.
    pub(crate) fn open(
        source: Ipv4Addr,
        to: SocketAddr,
        tls: Option<&Tls>,
        ids: &RequestIds,
    ) -> Self {
        Connection::try_open(source, to, tls, ids).expect("the server listens")
    }

    /// Connects, unless the server does not listen.
    pub(crate) fn try_open(
        source: Ipv4Addr,
        to: SocketAddr,
        tls: Option<&Tls>,
        ids: &RequestIds,
    ) -> io::Result<Self> {
        let socket = connect_from(source, to)?;
        let copy = socket.try_clone().expect("a socket");
        let stream: Box<dyn Duplex> = match tls {
            None => Box::new(copy),
            Some(tls) => Box::new(tls.over(copy)),
        };
        Ok(Connection {
            stream,
            socket,
            received: Vec::new(),
            ids: Arc::clone(ids),
        })
    }

    /// Sends bytes. A connection that the server has closed is not an error.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        let _ = self.stream.flush();
        self
    }

    /// Sends bytes one by one until the server closes the connection. Returns whether the server
    /// has closed it.
    pub(crate) fn dribble(&mut self, bytes: &[u8]) -> bool {
        let end = Instant::now() + PATIENCE;
        for byte in bytes.iter().cycle() {
            if self.stream.write_all(&[*byte]).is_err() || self.is_closed() {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(PACE);
        }
        false
    }

    /// Returns whether the server has closed the connection. Pending bytes are kept.
    fn is_closed(&mut self) -> bool {
        let mut buffer = [0; 4096];
        // Under TLS, bytes must not be consumed from the stream.
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(&self.socket, &mut buffer[..], flags) {
            Ok((_, 0)) => true,
            Ok(_) => match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => true,
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    false
                }
            },
            Err(rustix::io::Errno::AGAIN) => false,
            Err(_) => true,
        }
    }

    /// Closes the sending direction, but continues to read.
    pub(crate) fn shut(&mut self) -> &mut Self {
        // The server may have closed the connection.
        let _ = self.socket.shutdown(Shutdown::Write);
        self
    }

    /// Reads some bytes. Returns `false` at the end.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            // A read with a timeout is not restarted after the process was stopped and continued.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    /// Reads exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        while self.received.len() < count {
            if !self.more() {
                return Err(format!("the server ends after {:?}", self.received.len()));
            }
        }
        Ok(self.received.drain(..count).collect())
    }

    /// Reads one response.
    pub(crate) fn answer(&mut self) -> Result<Answer, String> {
        let end = loop {
            let end = self.received.windows(4).position(|end| end == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None if self.more() => {}
                None => {
                    let text = String::from_utf8_lossy(&self.received);
                    return Err(format!("there is no answer: {text:?}"));
                }
            }
        };
        let head = String::from_utf8_lossy(&self.take(end)?).into_owned();
        let mut answer = Answer {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            head,
            body: Vec::new(),
        };
        if let Some(id) = answer.header("x-request-id") {
            self.ids.lock().expect("no panic").push(id.to_owned());
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = self.chunks()?;
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().map_err(|_| "a length".to_owned())?;
            answer.body = self.take(length)?;
        }
        Ok(answer)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match self.received.windows(2).position(|end| end == b"\r\n") {
                    Some(end) => break end,
                    None if self.more() => {}
                    None => return Err("the answer is broken off".to_owned()),
                }
            };
            let line = self.take(end + 2)?;
            let digits = String::from_utf8_lossy(&line[..end]).into_owned();
            let count = usize::from_str_radix(&digits, 16).map_err(|_| digits)?;
            let chunk = self.take(count + 2)?;
            body.extend_from_slice(&chunk[..count]);
            if count == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads until the server closes the connection, or is silent for a long time.
    pub(crate) fn rest(&mut self) -> Rest {
        let mut buffer = [0; 16 * 1024];
        let is_closed = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) => {
                    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
                    match error.kind() {
                        Interrupted => {}
                        kind => break !matches!(kind, TimedOut | WouldBlock),
                    }
                }
            }
        };
        Rest {
            bytes: std::mem::take(&mut self.received),
            is_closed,
        }
    }

    /// Requires that the server closes the connection.
    pub(crate) fn ends(&mut self) -> Result<Vec<u8>, String> {
        let rest = self.rest();
        match rest.is_closed {
            true => Ok(rest.bytes),
            false => Err("the server does not close the connection".to_owned()),
        }
    }

    /// Makes the receive buffer of the connection small.
    pub(crate) fn with_small_buffer(self) -> Self {
        rustix::net::sockopt::set_socket_recv_buffer_size(&self.socket, 4096).expect("a socket");
        self
    }

    /// Reads one byte after another while `is_true` returns true. Fails if that takes too long.
    pub(crate) fn sip_while(&mut self, mut is_true: impl FnMut() -> bool) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        let mut byte = [0];
        while is_true() {
            if Instant::now() > end {
                return Err("the server lets a client sip".to_owned());
            }
            if !matches!(self.stream.read(&mut byte), Ok(1)) {
                return Ok(());
            }
        }
        Ok(())
    }
}
