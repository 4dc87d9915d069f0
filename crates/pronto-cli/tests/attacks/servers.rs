//! Hostile servers on the loopback interface, each of which logs every received byte.

pub(crate) mod git;
pub(crate) mod http;
mod tls;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::attack::Scene;
use crate::servers::git::Offer;

/// A server that runs until the process ends.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) log: Log,
}

/// The log of the bytes that a server has received.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

/// The maximum size of a log.
const LOG_BYTES: usize = 1 << 20;

impl Log {
    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().expect("no panic while it is held");
        let room = LOG_BYTES.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no panic while it is held").clone()
    }
}

/// A connection that logs received bytes.
pub(crate) struct Stream<T> {
    inner: T,
    log: Log,
}

impl<T: Read> Read for Stream<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.log.add(&buffer[..count]);
        Ok(count)
    }
}

impl<T: Write> Write for Stream<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A connection with both directions.
pub(crate) trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

impl Scene {
    /// Starts a server that runs `script` for each connection. Returns the port.
    pub(crate) fn tcp<S>(&mut self, script: S) -> u16
    where
        S: Fn(&mut dyn Duplex) -> io::Result<()> + Send + Sync + 'static,
    {
        self.listen(move |connection, log| {
            let mut stream = Stream {
                inner: connection,
                log,
            };
            script(&mut stream)
        })
    }

    /// Starts a server for `git://` with `offer`. Returns the URL of a repository.
    pub(crate) fn git_server(&mut self, offer: Offer) -> String {
        let port = self.tcp(move |stream| offer.serve(stream));
        format!("git://127.0.0.1:{port}/repository")
    }

    /// Starts an HTTP server. Returns the port.
    pub(crate) fn http<A>(&mut self, answer: A) -> u16
    where
        A: Fn(&http::Request, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    {
        self.tcp(move |stream| http::serve(stream, &answer))
    }

    /// Starts an HTTPS server that requests a client certificate and accepts any certificate.
    /// Returns the port.
    pub(crate) fn https<A>(&mut self, answer: A) -> u16
    where
        A: Fn(&http::Request, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    {
        self.listen(move |connection, log| {
            let mut stream = Stream {
                inner: tls::accept(connection, &log)?,
                log,
            };
            http::serve(&mut stream, &answer)
        })
    }

    /// Creates a replacement for `ssh` that serves `offer` and writes its arguments to
    /// `tmp/ssh.log`.
    pub(crate) fn ssh(&self, offer: &Offer) -> PathBuf {
        let transcript = self.write("server/transcript", offer.transcript());
        let log = self.path("tmp/ssh.log");
        self.script(
            "server/ssh",
            &format!(
                "#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{}'\ncat '{}'\ncat >/dev/null\n",
                log.display(),
                transcript.display()
            ),
        )
    }

    /// Returns the certificate of the authority that signed the server certificates, and a client
    /// certificate with its key.
    pub(crate) fn certificates(&self) -> &'static tls::Certificates {
        tls::certificates().expect("openssl is installed: rows ask first")
    }

    fn listen<S>(&mut self, serve: S) -> u16
    where
        S: Fn(TcpStream, Log) -> io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let log = Log::default();
        self.servers.push(Server {
            port,
            log: log.clone(),
        });
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (serve, log) = (Arc::clone(&serve), log.clone());
                // A client that disconnects is not an error of the server.
                std::thread::spawn(move || serve(connection, log));
            }
        });
        port
    }
}

/// Returns whether certificates can be created.
pub(crate) fn has_tls() -> bool {
    tls::certificates().is_some()
}

/// The text in the log of a server that has received the client's certificate.
pub(crate) use tls::CLIENT as CLIENT_CERTIFICATE;

/// Reads the first bytes and closes the connection, as a server that does not respond.
pub(crate) fn stall_once(stream: &mut dyn Duplex) -> io::Result<()> {
    let mut buffer = [0; 4096];
    stream.read(&mut buffer).map(|_| ())
}

/// Reads until the client closes the connection, as a server that stays silent.
pub(crate) fn stall(stream: &mut dyn Duplex) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(|_| ())
}

/// Writes `chunk` repeatedly until the client closes the connection.
pub(crate) fn flood(stream: &mut dyn Write, chunk: &[u8]) -> io::Result<()> {
    let many = chunk.repeat(1 + 32 * 1024 / chunk.len());
    loop {
        stream.write_all(&many)?;
    }
}
