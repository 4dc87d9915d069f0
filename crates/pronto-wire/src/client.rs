//! The blocking client: runs the state machines of the protocol over a connection, or reads a bundle.

mod bundle;
mod bundle_uri;
mod common;

use std::io::{self, BufRead, Read};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Progress, ProgressMessage};

use crate::address::RemoteAddress;
use crate::advertisement::{
    GreetingParser, LsRefs, ProtocolVersion, RemoteRef, ServerGreeting, parse_ref_line,
};
use crate::bounds::{ByteAllowance, MOST_REF_BYTES};
use crate::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, hung_up, malformed};
use crate::fetch::{FetchInfo, Negotiator, NextStep, Request, v0, v2};
use crate::pktline::{self, Packet};
use crate::reader::PacketReader;
use crate::sideband::Demultiplexer;
pub use common::IsEnough;

use crate::transport::{self, Connection, Options, Readiness, Service, http};

/// A connection to a repository for fetching.
pub struct FetchClient {
    peer: FetchPeer,
    greeting: ServerGreeting,
    interrupt: Interrupt,
    /// The session id (`transfer.advertiseSID`), which is sent if the remote side sends its own.
    session: Option<BString>,
}

/// The remote side: a server or a bundle.
enum FetchPeer {
    Server(ServerProgram),
    Bundle(bundle::BundleStream),
}

/// A server that speaks the protocol.
struct ServerProgram {
    packets: PacketReader<Box<dyn Connection>>,
    /// Whether the server waits for a request, so that a flush packet must end the connection.
    is_open: bool,
}

/// The maximum number of packets in a response of one negotiation round.
const MOST_PACKETS: usize = 1 << 24;

impl FetchClient {
    /// Connects to `address` and reads the first message. Over HTTP, `settings` provides the user's
    /// settings for each URL.
    ///
    /// # Errors
    /// Fails as [`transport::connect`] does if the connection cannot be made, or with
    /// [`ErrorKind::NotFound`], [`ErrorKind::Disconnected`] or [`ErrorKind::Malformed`] if the server
    /// does not speak the protocol.
    pub fn connect(
        address: &RemoteAddress,
        options: &Options,
        settings: Box<dyn http::Settings>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let region = pronto_io::region!("transport", "connect");
        let mut connection = transport::connect(address, Service::UploadPack, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.message(ProgressMessage::Redirected(&url));
        }
        let mut client = Self::over(connection, interrupt)?;
        drop(region);
        trace_greeting(&client.greeting);
        client.session.clone_from(&options.session_id);
        Ok(client)
    }

    /// Reads the first message from `connection`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`], [`ErrorKind::Disconnected`] or [`ErrorKind::Malformed`] if
    /// the server does not speak the protocol.
    pub fn over(connection: Box<dyn Connection>, interrupt: &Interrupt) -> Result<Self, Error> {
        let mut packets = PacketReader::new(connection);
        let greeting = read_greeting(&mut packets, interrupt)?;
        Ok(FetchClient {
            peer: FetchPeer::Server(ServerProgram {
                packets,
                is_open: true,
            }),
            greeting,
            interrupt: interrupt.clone(),
            session: None,
        })
    }

    /// Returns the version of the protocol.
    pub fn version(&self) -> ProtocolVersion {
        self.greeting.version
    }

    /// Returns the capabilities of the remote side.
    pub fn capabilities(&self) -> &Capabilities {
        &self.greeting.capabilities
    }

    /// Returns the hash function of the remote repository.
    pub fn object_format(&self) -> Kind {
        self.greeting.object_format
    }

    /// Returns whether the remote side supports object filters (`filter`).
    pub fn can_filter(&self) -> bool {
        match self.greeting.version {
            ProtocolVersion::V2 => v2::FetchV2::can_filter(&self.greeting),
            ProtocolVersion::V0 | ProtocolVersion::V1 => self.greeting.capabilities.has("filter"),
        }
    }

    /// Returns whether refs can be requested by name (`ref-in-want`).
    pub fn accepts_refs(&self) -> bool {
        self.greeting.version == ProtocolVersion::V2 && v2::FetchV2::accepts_refs(&self.greeting)
    }

    /// Returns the shallow commits of the remote side, if it has advertised them.
    pub fn shallow(&self) -> &[pronto_hash::ObjectId] {
        &self.greeting.shallow
    }

    /// Returns the refs of the remote side. A server of version 2 applies the prefixes of `request`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if the response is malformed, [`ErrorKind::Disconnected`] or
    /// [`ErrorKind::Connection`] if the connection breaks, or with [`ErrorKind::Interrupted`].
    pub fn refs(&mut self, request: &LsRefs) -> Result<Vec<RemoteRef>, Error> {
        let server = match &mut self.peer {
            FetchPeer::Server(server) if self.greeting.version == ProtocolVersion::V2 => server,
            _ => return Ok(self.greeting.refs.clone()),
        };
        let _region = pronto_io::region!("transport", "ls_refs");
        let mut out = Vec::new();
        request.write(&self.greeting.capabilities, &mut out)?;
        server.packets.source_mut().send(&out)?;
        let mut refs = Vec::new();
        let mut room = ByteAllowance::new(MOST_REF_BYTES, "references");
        loop {
            interrupted(&self.interrupt)?;
            match server.packets.next_packet()? {
                packet @ Packet::Data(_) => {
                    let line = packet.text().unwrap_or_default();
                    room.take(size_of::<RemoteRef>() + line.len())?;
                    refs.push(parse_ref_line(line, self.greeting.object_format)?);
                }
                Packet::Flush => return Ok(refs),
                _ => return Err(malformed("protocol error: unexpected packet in ls-refs")),
            }
        }
    }

    /// Requests a pack, and negotiates its content with the remote side. A bundle always yields its
    /// whole pack, regardless of `request`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the remote side does not support the request,
    /// [`ErrorKind::Remote`] if it refuses, [`ErrorKind::Malformed`] if a response is malformed,
    /// [`ErrorKind::Disconnected`] or [`ErrorKind::Connection`] if the connection breaks,
    /// [`ErrorKind::Local`] if the negotiator fails, or with [`ErrorKind::Interrupted`].
    pub fn fetch<'a>(
        &'a mut self,
        request: &Request,
        negotiator: &mut dyn Negotiator,
        progress: &'a dyn Progress,
    ) -> Result<Response<'a>, Error> {
        let _region = pronto_io::region!("negotiation", "fetch");
        let interrupt = self.interrupt.clone();
        let server = match &mut self.peer {
            FetchPeer::Server(server) => server,
            FetchPeer::Bundle(source) => {
                return Ok(Response {
                    fetch_info: FetchInfo::default(),
                    pack: IncomingPack {
                        stream: PackInputStream::File(source.pack()),
                        interrupt,
                        failure: None,
                    },
                });
            }
        };
        let mut exchange = PackExchange {
            server,
            greeting: &self.greeting,
            interrupt: &self.interrupt,
            session: self.session.as_ref().map(|id| id.as_bstr()),
        };
        let (sideband, fetch_info) = match self.greeting.version {
            ProtocolVersion::V2 => exchange.fetch_v2(request, negotiator)?,
            ProtocolVersion::V0 | ProtocolVersion::V1 => {
                exchange.fetch_v0(request, negotiator, progress)?
            }
        };
        let packets = &mut server.packets;
        let pack = match sideband {
            true => {
                let stream = Demultiplexer::new(packets, progress);
                PackInputStream::Sideband(stream.interruptible(&interrupt))
            }
            false => PackInputStream::Raw(packets),
        };
        Ok(Response {
            fetch_info,
            pack: IncomingPack {
                stream: pack,
                interrupt,
                failure: None,
            },
        })
    }

    /// Ends the connection and waits for its program, so that all output of the program is printed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] if the program failed.
    pub fn close(self) -> Result<(), Error> {
        let FetchPeer::Server(mut server) = self.peer else {
            return Ok(());
        };
        let stateless = server.packets.source_mut().is_stateless();
        if server.is_open && !stateless {
            let mut out = Vec::new();
            pktline::write_flush(&mut out);
            // The failure is ignored if the remote side has closed the connection already.
            let _ = server.packets.source_mut().send(&out);
        }
        server.packets.source_mut().close()
    }
}

/// The request for a pack, and the responses up to the pack.
struct PackExchange<'a> {
    server: &'a mut ServerProgram,
    greeting: &'a ServerGreeting,
    interrupt: &'a Interrupt,
    session: Option<&'a BStr>,
}

impl PackExchange<'_> {
    fn fetch_v2(
        &mut self,
        request: &Request,
        negotiator: &mut dyn Negotiator,
    ) -> Result<(bool, FetchInfo), Error> {
        let mut conversation = v2::FetchV2::new(request, self.greeting)?;
        conversation = conversation.with_session(self.session);
        let mut out = Vec::new();
        let mut rounds = 0;
        loop {
            rounds += 1;
            out.clear();
            conversation.write_request(negotiator, &mut out)?;
            self.server.packets.source_mut().send(&out)?;
            let mut room = ByteAllowance::new(MOST_PACKETS, "packets");
            loop {
                interrupted(self.interrupt)?;
                room.take(1)?;
                let packet = self.server.packets.next_packet()?;
                match conversation.receive(packet, negotiator)? {
                    NextStep::Receive => {}
                    NextStep::Send => break,
                    NextStep::Pack { sideband } => {
                        pronto_io::data!("negotiation_v2", "total_rounds", rounds);
                        return Ok((sideband, conversation.into_fetch_info()));
                    }
                }
            }
        }
    }

    fn fetch_v0(
        &mut self,
        request: &Request,
        negotiator: &mut dyn Negotiator,
        progress: &dyn Progress,
    ) -> Result<(bool, FetchInfo), Error> {
        let stateless = self.server.packets.source_mut().is_stateless();
        let mut conversation = v0::FetchV0::new(request, self.greeting, stateless)?;
        conversation = conversation.with_session(self.session);
        self.server.is_open = false;
        let mut out = Vec::new();
        let mut rounds = 0;
        loop {
            rounds += 1;
            out.clear();
            let mut next = conversation.write_request(negotiator, &mut out)?;
            report_steps(conversation.take_steps(), progress);
            self.server.packets.source_mut().send(&out)?;
            let mut room = ByteAllowance::new(MOST_PACKETS, "packets");
            while next == NextStep::Receive {
                interrupted(self.interrupt)?;
                room.take(1)?;
                let packet = match self.server.packets.next_or_end()? {
                    Some(packet) => packet,
                    // A stateless server gets another request, so it may end its response early.
                    None if stateless && conversation.may_end() => break,
                    None => return Err(hung_up()),
                };
                next = conversation.receive(packet, negotiator)?;
                report_steps(conversation.take_steps(), progress);
            }
            if let NextStep::Pack { sideband } = next {
                pronto_io::data!("negotiation_v0_v1", "total_rounds", rounds);
                return Ok((sideband, conversation.into_fetch_info()));
            }
        }
    }
}

fn report_steps(steps: Vec<String>, progress: &dyn Progress) {
    for step in steps {
        progress.message(ProgressMessage::Step(&step));
    }
}

/// Reads the first message of the remote side.
///
/// # Errors
/// Fails with [`ErrorKind::NotFound`], [`ErrorKind::Disconnected`] or [`ErrorKind::Malformed`] if the
/// server does not speak the protocol, or with [`ErrorKind::Interrupted`].
pub(crate) fn read_greeting(
    packets: &mut PacketReader<Box<dyn Connection>>,
    interrupt: &Interrupt,
) -> Result<ServerGreeting, Error> {
    let mut parser = GreetingParser::default();
    let mut is_first = true;
    loop {
        let Some(packet) = packets.next_or_end()? else {
            // The messages of the server explain the failure better.
            let _ = packets.source_mut().close();
            return Err(no_greeting(is_first));
        };
        is_first = false;
        if let Some(greeting) = parser.push(packet)? {
            return Ok(greeting);
        }
        interrupted(interrupt)?;
    }
}

/// Writes the version of the protocol and the session id of the remote side to the trace.
pub(crate) fn trace_greeting(greeting: &ServerGreeting) {
    let version = match greeting.version {
        ProtocolVersion::V0 => "0",
        ProtocolVersion::V1 => "1",
        ProtocolVersion::V2 => "2",
    };
    pronto_io::data!("transfer", "negotiated-version", version);
    if let Some(id) = greeting.capabilities.value("session-id") {
        pronto_io::data!("transfer", "server-sid", id);
    }
}

fn no_greeting(is_first: bool) -> Error {
    if !is_first {
        return Error::new(
            ErrorKind::Disconnected,
            "the remote end hung up upon initial contact",
        );
    }
    Error::new(
        ErrorKind::NotFound,
        "Could not read from remote repository.\n\n\
         Please make sure you have the correct access rights\n\
         and the repository exists.",
    )
}

fn interrupted(interrupt: &Interrupt) -> Result<(), Error> {
    interrupt
        .check()
        .map_err(|_| Error::new(ErrorKind::Interrupted, "interrupted"))
}

/// The response to a fetch.
pub struct Response<'a> {
    /// The information that precedes the pack.
    pub fetch_info: FetchInfo,
    /// The pack.
    pub pack: IncomingPack<'a>,
}

/// The bytes of a pack as they arrive. [`BufRead`] gives access to them in the receive buffer without a
/// copy. Reading fails after an interrupt.
pub struct IncomingPack<'a> {
    stream: PackInputStream<'a>,
    interrupt: Interrupt,
    failure: Option<Error>,
}

enum PackInputStream<'a> {
    Sideband(Demultiplexer<'a, Box<dyn Connection>>),
    Raw(&'a mut PacketReader<Box<dyn Connection>>),
    File(&'a mut dyn BufRead),
}

impl IncomingPack<'_> {
    /// Reads the rest of the response after the pack, so that late messages are shown. `surplus` are
    /// the bytes that were read beyond the end of the pack.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if there are data after the pack, or
    /// [`ErrorKind::Disconnected`] or [`ErrorKind::Connection`] if the connection breaks.
    pub fn finish(&mut self, surplus: &[u8]) -> Result<(), Error> {
        let rest = match &mut self.stream {
            PackInputStream::Sideband(stream) => {
                stream.finish()?;
                &[]
            }
            PackInputStream::Raw(packets) => packets.raw()?,
            PackInputStream::File(file) => return bundle::finish(*file, surplus),
        };
        if surplus.is_empty() && rest.is_empty() {
            return Ok(());
        }
        Err(malformed("protocol error: data after the end of the pack"))
    }

    /// Returns a function that reports whether more bytes of the pack have arrived; `None` if the
    /// connection does not support this query.
    pub fn readiness(&self) -> Option<Readiness> {
        match &self.stream {
            PackInputStream::Sideband(stream) => stream.source().readiness(),
            PackInputStream::Raw(packets) => packets.source().readiness(),
            PackInputStream::File(_) => None,
        }
    }

    /// Removes and returns the error that caused the last [`io::Error`] of a read, with its kind.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn data(&mut self) -> Result<&[u8], Error> {
        interrupted(&self.interrupt)?;
        match &mut self.stream {
            PackInputStream::Sideband(stream) => stream.data(),
            PackInputStream::Raw(packets) => packets.raw(),
            PackInputStream::File(file) => file.fill_buf().map_err(bundle::unreadable),
        }
    }
}

impl Read for IncomingPack<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for IncomingPack<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Err(error) = self.data() {
            let kind = match error.kind() {
                ErrorKind::Disconnected => io::ErrorKind::UnexpectedEof,
                _ => io::ErrorKind::Other,
            };
            let shown = io::Error::new(kind, error.to_string());
            self.failure = Some(error);
            return Err(shown);
        }
        // The bytes have arrived already; this call only borrows them.
        self.data()
            .map_err(|error| io::Error::other(error.to_string()))
    }

    fn consume(&mut self, count: usize) {
        match &mut self.stream {
            PackInputStream::Sideband(stream) => stream.advance(count),
            PackInputStream::Raw(packets) => packets.consume_raw(count),
            PackInputStream::File(file) => file.consume(count),
        }
    }
}

/// Parses `text` and connects: [`RemoteAddress::parse`] and [`FetchClient::connect`].
///
/// # Errors
/// As for [`RemoteAddress::parse`] and [`FetchClient::connect`].
pub fn connect(
    text: &BStr,
    options: &Options,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> Result<FetchClient, Error> {
    let address = RemoteAddress::parse(text)?;
    let settings = Box::new(http::Unset);
    FetchClient::connect(&address, options, settings, progress, interrupt)
}
