//! `cargo xtask git-suite-front`: the web server in front of `pronto serve` for Git's own tests.
//!
//! Requests for repositories are forwarded to `pronto serve` unchanged. The front itself answers
//! requests that scripts need and a Git server does not support: static files, redirects, and
//! intentional errors. It writes the access log that scripts read. A connection has one request.

mod http;
mod routes;
mod special;

use std::fs::OpenOptions;
use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use http::{BodyLength, RequestHead};
use routes::{GitServer, RouteAction};

/// The addresses and files of a front.
#[derive(Debug)]
pub(super) struct SuiteFront {
    /// The address at which the front listens.
    listen: SocketAddr,
    /// The root directory of the web server, with `www` and the access log.
    root: PathBuf,
    /// The address of the Git server.
    main: SocketAddr,
    /// The address of the Git server whose environment sets a committer.
    custom: SocketAddr,
}

/// A request, and the connection of its client.
struct FrontExchange<'a> {
    front: &'a SuiteFront,
    head: RequestHead,
    reader: BufReader<TcpStream>,
    client: TcpStream,
}

/// Runs `git-suite-front LISTEN ROOT MAIN CUSTOM` until it is killed. Prints a line when it accepts
/// connections.
pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let [listen, root, main, custom] = arguments else {
        return Err("usage: git-suite-front LISTEN ROOT MAIN CUSTOM".to_owned());
    };
    let address = |text: &str| {
        let parsed = text.parse::<SocketAddr>();
        parsed.map_err(|error| format!("'{text}' is not an address: {error}"))
    };
    let front = Arc::new(SuiteFront {
        listen: address(listen)?,
        root: PathBuf::from(root),
        main: address(main)?,
        custom: address(custom)?,
    });
    let listener = TcpListener::bind(front.listen)
        .map_err(|error| format!("cannot listen at {listen}: {error}"))?;
    println!("serving at http://{listen}/");
    for socket in listener.incoming() {
        let socket = socket.map_err(|error| format!("cannot accept: {error}"))?;
        let front = Arc::clone(&front);
        std::thread::spawn(move || {
            if let Err(error) = front.serve(socket) {
                eprintln!("front: {error}");
            }
        });
    }
    Ok(())
}

impl SuiteFront {
    /// Serves the request of a connection.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(client.try_clone()?);
        let Some(head) = RequestHead::read(&mut reader)? else {
            return Ok(());
        };
        let mut exchange = FrontExchange {
            front: self,
            head,
            reader,
            client,
        };
        let action = routes::action(&exchange.head.target);
        let done = match action {
            RouteAction::Forward { server, target } => exchange.forward(server, &target),
            RouteAction::Once(target) => exchange.once(&target),
            RouteAction::Challenge(target) => exchange.challenge(&target),
            RouteAction::File(path) => exchange.file(&path),
            RouteAction::Redirect(status, location) => exchange.redirect(status, &location),
            RouteAction::Error(name) => exchange.error(&name),
            RouteAction::BadGateway => exchange.answer("502 Bad Gateway", "", b"bad gateway\n"),
            RouteAction::NoReport => exchange.no_report(),
        };
        // A failure means that the client has closed the connection.
        let _ = exchange.client.shutdown(Shutdown::Write);
        done
    }

    /// Appends a line to the access log, in the form to which scripts normalise the logs of other
    /// servers.
    fn log(&self, head: &RequestHead, status: &str) -> io::Result<()> {
        let code = status.split(' ').next().unwrap_or_default();
        let line = format!("{:<4} {} HTTP/1.1 {code}\n", head.method, head.target);
        let path = self.root.join("access.log");
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(line.as_bytes())
    }

    fn address_of(&self, server: GitServer) -> SocketAddr {
        match server {
            GitServer::Main => self.main,
            GitServer::Custom => self.custom,
        }
    }
}

impl FrontExchange<'_> {
    /// Forwards the request to a Git server, and streams the response to the client.
    fn forward(&mut self, server: GitServer, target: &str) -> io::Result<()> {
        let mut upstream = TcpStream::connect(self.front.address_of(server))?;
        upstream.write_all(&self.head.bytes_for(target, "HTTP/1.1", None))?;
        let mut answers = BufReader::new(upstream.try_clone()?);
        let body = BodyLength::of(&self.head)?;
        let (reader, client) = (&mut self.reader, &mut self.client);
        let (front, head) = (self.front, &self.head);
        std::thread::scope(|scope| {
            // The server may respond before it has read the whole request, and decides how much of
            // the request it reads.
            scope.spawn(move || {
                let sent = body.relay(reader, &mut upstream);
                if sent.is_err() {
                    let _ = io::copy(reader, &mut io::sink());
                }
            });
            let relayed = relay_answer(&mut answers, client, &mut |status| front.log(head, status));
            let _ = client.shutdown(Shutdown::Write);
            relayed
        })
    }

    /// Sends a response that the front makes itself.
    fn answer(&mut self, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
        self.front.log(&self.head, status)?;
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        self.client.write_all(text.as_bytes())?;
        if self.head.method != "HEAD" {
            self.client.write_all(body)?;
        }
        // The shutdown lets a client read the response while it still sends.
        self.client.shutdown(Shutdown::Write)?;
        let mut rest = Vec::new();
        BodyLength::of(&self.head)?.read(&mut self.reader, &mut rest)
    }
}

/// Forwards the heads (including interim ones) and the body of a response to the client.
fn relay_answer(
    answers: &mut BufReader<TcpStream>,
    client: &mut TcpStream,
    log: &mut dyn FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let lines = http::read_lines(answers)?;
        let status = lines.first().and_then(|line| line.split_once(' '));
        let status = status.map_or("", |(_, status)| status).to_owned();
        let is_interim = status.starts_with('1');
        if !is_interim {
            log(&status)?;
        }
        client.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes())?;
        if !is_interim {
            break;
        }
    }
    io::copy(answers, client)?;
    Ok(())
}
