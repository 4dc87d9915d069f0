//! Connections for the HTTP client that can report whether data have arrived.
//!
//! The built-in connections of the client library do not give access to their sockets. Therefore plain
//! connections are made here, and proxied or encrypted connections are layered on them as in the
//! library.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pronto_io::{descriptor, hosts};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    SocksConnector, Transport, time,
};
use ureq::{Error, Timeout};

use super::encrypt::Encryption;
use super::relay::WholeUrls;
use crate::transport::pace::{LowSpeed, ReadPace, Timeouts};
use crate::transport::{Readiness, connect_first};

/// The most recent connection; empty after it was closed.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentConnection(Arc<Mutex<Weak<TcpStream>>>);

impl CurrentConnection {
    /// Returns a function that reports whether unread data have arrived. Requests are sequential, so
    /// the most recent connection is the one in use.
    pub(super) fn readiness(&self) -> Readiness {
        let current = self.lock().clone();
        Box::new(move || {
            let stream = current.upgrade();
            stream.is_some_and(|stream| descriptor::is_readable(&*stream))
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Weak<TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the connector of a client, which stores its most recent connection in `current`.
pub(super) fn connector(
    dialer: Dialer,
    encryption: Encryption,
    whole_urls: WholeUrls,
) -> impl Connector {
    ().chain(SocksConnector::default())
        .chain(ConnectProxyConnector::default())
        .chain(dialer)
        .chain(encryption)
        .chain(whole_urls)
}

/// Makes plain connections, unless a connection to a proxy exists already.
#[derive(Debug)]
pub(super) struct Dialer {
    pub(super) current: CurrentConnection,
    pub(super) limits: Timeouts,
    pub(super) low_speed: Option<LowSpeed>,
}

/// Resolves the address of a forwarding proxy instead of that of the server.
#[derive(Debug)]
pub(super) struct Resolving {
    pub(super) relay: Option<Uri>,
}

/// The timeout of a host lookup if the client sets no limit.
const LONGEST_LOOKUP: Duration = Duration::from_secs(300);

/// The maximum number of addresses of a host that are tried, which is the capacity of the client's
/// list.
const MOST_ADDRESSES: usize = 16;

/// Splits `HOST:PORT`, where the host may be an IPv6 address in brackets.
fn host_and_port(address: &str) -> (&str, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, port.parse().unwrap_or_default())
}

impl Resolver for Resolving {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let uri = self.relay.as_ref().unwrap_or(uri);
        let address = uri.scheme().zip(uri.authority());
        let address = address
            .and_then(|(scheme, authority)| DefaultResolver::host_and_port(scheme, authority))
            .ok_or_else(|| Error::BadUri(format!("invalid URL, no host or port: {uri}")))?;
        let (host, port) = host_and_port(&address);
        let within = match timeout.after {
            time::Duration::Exact(left) => left,
            time::Duration::NotHappening => LONGEST_LOOKUP,
        };
        let known = hosts::resolve(host, port, within).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Error::HostNotFound,
            io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
            _ => Error::Io(error),
        })?;
        let mut addresses = self.empty();
        let family = config.ip_family();
        let wanted = family.keep_wanted(known.into_iter());
        for address in wanted.take(MOST_ADDRESSES) {
            addresses.push(address);
        }
        match addresses.is_empty() {
            true => Err(Error::HostNotFound),
            false => Ok(addresses),
        }
    }
}

impl<In: Transport> Connector<In> for Dialer {
    type Out = Either<In, PlainConnection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if let Some(proxied) = chained {
            return Ok(Some(Either::A(proxied)));
        }
        let start = Instant::now();
        let limits = &self.limits;
        let stream = connect_first(&details.addrs, limits, &mut |_: SocketAddr, _| {})?;
        let stream = Arc::new(stream);
        let _ = stream.set_write_timeout(Some(limits.idle));
        // Requests are written as a whole; waiting for more data would only delay them.
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_socket_keepalive(&*stream, true);
        *self.current.lock() = Arc::downgrade(&stream);
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let connected_by = start + limits.connect;
        let pace = ReadPace::new(limits.idle, self.low_speed);
        Ok(Some(Either::B(PlainConnection {
            stream,
            buffers,
            pace,
            connected_by,
        })))
    }
}

/// A plain connection.
#[derive(Debug)]
pub(super) struct PlainConnection {
    stream: Arc<TcpStream>,
    buffers: LazyBuffers,
    pace: ReadPace,
    /// The deadline for a tunnel or encryption that is layered on the connection.
    connected_by: Instant,
}

impl PlainConnection {
    /// Returns the remaining time for a read, according to the timeout of the client.
    fn left(&self, timeout: NextTimeout) -> Option<Duration> {
        let left = match timeout.after {
            time::Duration::Exact(left) => Some(left),
            time::Duration::NotHappening => None,
        };
        match timeout.reason {
            Timeout::Connect => {
                let until = self.connected_by.saturating_duration_since(Instant::now());
                Some(left.map_or(until, |left| left.min(until)))
            }
            _ => left,
        }
    }
}

impl Transport for PlainConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        (&*self.stream).write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let left = self.left(timeout);
        let room = self.buffers.input_append_buf();
        let count = self.pace.read(&self.stream, room, left)?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// Returns whether the connection can be reused: between requests only its end, or unrequested
    /// data, can arrive.
    fn is_open(&mut self) -> bool {
        !descriptor::is_readable(&*self.stream)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::super::agent::{Options, agent};
    use crate::transport::{AddressFamily, Timeouts};
    use crate::url::Url;

    #[test]
    fn an_answer_is_ready_when_it_has_come() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (resume, may_continue) = mpsc::channel();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.extend_from_slice(&byte);
            }
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
            stream.write_all(head).expect("it listens");
            may_continue.recv().expect("it is told to");
            stream.write_all(b"body").expect("it listens");
            stream
        });
        let base = format!("http://{address}");
        let url = Url::parse(base.as_str().into()).expect("a URL");
        let (options, limits) = (Options::default(), Timeouts::default());
        let (agent, current) = agent(&url, &options, AddressFamily::Any, limits).expect("a client");
        assert!(!current.readiness()(), "there is no connection yet");
        let response = agent.get(&base).call().expect("the head of an answer");
        let ready = current.readiness();
        assert!(!ready(), "only the head has come");
        resume.send(()).expect("the server waits");
        let stream = server.join().expect("no panics");
        while !ready() {
            std::thread::yield_now();
        }
        let mut body = response.into_body();
        assert_eq!(body.read_to_string().expect("all of it"), "body");
        assert!(!ready(), "all was read");
        drop((stream, body, agent));
        assert!(!ready(), "the connection is closed");
    }
}
