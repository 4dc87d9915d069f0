//! The blocking client: runs the state machines of the protocol over a connection, or reads a bundle.

mod bundle;
mod bundle_uri;
mod common;

use std::io::{self, BufRead, Read};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;

use crate::address::Address;
use crate::advertisement::{Greeting, GreetingParser, LsRefs, RemoteRef, Version, parse_ref_line};
use crate::bounds::{MOST_REF_BYTES, Room};
use crate::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, hung_up, malformed};
use crate::fetch::{Announced, Negotiator, Next, Request, v0, v2};
use crate::pktline::{self, Packet};
use crate::reader::PacketReader;
use crate::sideband::Demultiplexer;
pub use common::IsEnough;

use crate::transport::{self, Connection, Options, Readiness, Service, http};

/// A connection to a repository from which to fetch.
pub struct Client {
    peer: Peer,
    greeting: Greeting,
    interrupt: Interrupt,
    /// The id of the session of this side, which is told to a side that tells its own.
    session: Option<BString>,
}

/// The other side.
enum Peer {
    Server(Server),
    Bundle(bundle::Source),
}

/// A program that speaks the protocol.
struct Server {
    packets: PacketReader<Box<dyn Connection>>,
    /// Whether it waits for a request, so that it must be notified of the end.
    is_open: bool,
}

/// The packets of the other side's share of one round of negotiation.
const MOST_PACKETS: usize = 1 << 24;

impl Client {
    /// Connects to `address` and reads the greeting. Over HTTP, `settings` says what the user has
    /// set for a URL.
    ///
    /// # Errors
    /// If the connection cannot be made, or what answers does not speak the protocol.
    pub fn connect(
        address: &Address,
        options: &Options,
        settings: Box<dyn http::Settings>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let region = pronto_io::region!("transport", "connect");
        let mut connection = transport::connect(address, Service::UploadPack, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.redirected(&url);
        }
        let mut client = Self::over(connection, interrupt)?;
        drop(region);
        trace_greeting(&client.greeting);
        client.session.clone_from(&options.session_id);
        Ok(client)
    }

    /// Reads the greeting from `connection`.
    ///
    /// # Errors
    /// If what answers does not speak the protocol.
    pub fn over(connection: Box<dyn Connection>, interrupt: &Interrupt) -> Result<Self, Error> {
        let mut packets = PacketReader::new(connection);
        let greeting = read_greeting(&mut packets, interrupt)?;
        Ok(Client {
            peer: Peer::Server(Server {
                packets,
                is_open: true,
            }),
            greeting,
            interrupt: interrupt.clone(),
            session: None,
        })
    }

    /// The version that is spoken.
    pub fn version(&self) -> Version {
        self.greeting.version
    }

    /// Returns the capabilities of the other side.
    pub fn capabilities(&self) -> &Capabilities {
        &self.greeting.capabilities
    }

    /// The hash function of the repository on the other side.
    pub fn object_format(&self) -> Kind {
        self.greeting.object_format
    }

    /// Whether the other side can leave objects out.
    pub fn can_filter(&self) -> bool {
        match self.greeting.version {
            Version::V2 => v2::Conversation::can_filter(&self.greeting),
            Version::V0 | Version::V1 => self.greeting.capabilities.has("filter"),
        }
    }

    /// Whether refs can be wanted by their names.
    pub fn accepts_refs(&self) -> bool {
        self.greeting.version == Version::V2 && v2::Conversation::accepts_refs(&self.greeting)
    }

    /// The shallow commits of the other side, if it announced them.
    pub fn shallow(&self) -> &[pronto_hash::ObjectId] {
        &self.greeting.shallow
    }

    /// The references of the other side, filtered by `request` only where it can filter.
    ///
    /// # Errors
    /// If the connection breaks or the answer is malformed.
    pub fn refs(&mut self, request: &LsRefs) -> Result<Vec<RemoteRef>, Error> {
        let server = match &mut self.peer {
            Peer::Server(server) if self.greeting.version == Version::V2 => server,
            _ => return Ok(self.greeting.refs.clone()),
        };
        let _region = pronto_io::region!("transport", "ls_refs");
        let mut out = Vec::new();
        request.write(&self.greeting.capabilities, &mut out)?;
        server.packets.source_mut().send(&out)?;
        let mut refs = Vec::new();
        let mut room = Room::new(MOST_REF_BYTES, "references");
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

    /// Requests a pack and negotiates its content with the other side. A bundle always gives its whole
    /// pack, whatever the request.
    ///
    /// # Errors
    /// The other side does not support the request or refuses, the connection breaks, or the
    /// negotiator fails.
    pub fn fetch<'a>(
        &'a mut self,
        request: &Request,
        negotiator: &mut dyn Negotiator,
        progress: &'a dyn Progress,
    ) -> Result<Response<'a>, Error> {
        let _region = pronto_io::region!("negotiation", "fetch");
        let interrupt = self.interrupt.clone();
        let server = match &mut self.peer {
            Peer::Server(server) => server,
            Peer::Bundle(source) => {
                return Ok(Response {
                    announced: Announced::default(),
                    pack: Pack {
                        stream: Stream::File(source.pack()),
                        interrupt,
                        failure: None,
                    },
                });
            }
        };
        let mut exchange = Exchange {
            server,
            greeting: &self.greeting,
            interrupt: &self.interrupt,
            session: self.session.as_ref().map(|id| id.as_bstr()),
        };
        let (sideband, announced) = match self.greeting.version {
            Version::V2 => exchange.fetch_v2(request, negotiator)?,
            Version::V0 | Version::V1 => exchange.fetch_v0(request, negotiator, progress)?,
        };
        let packets = &mut server.packets;
        let pack = match sideband {
            true => {
                let stream = Demultiplexer::new(packets, progress);
                Stream::Sideband(stream.interruptible(&interrupt))
            }
            false => Stream::Raw(packets),
        };
        Ok(Response {
            announced,
            pack: Pack {
                stream: pack,
                interrupt,
                failure: None,
            },
        })
    }

    /// Says goodbye and waits for the other side, so that all it prints is printed.
    ///
    /// # Errors
    /// If the program behind the connection reports that it failed.
    pub fn close(self) -> Result<(), Error> {
        let Peer::Server(mut server) = self.peer else {
            return Ok(());
        };
        let stateless = server.packets.source_mut().is_stateless();
        if server.is_open && !stateless {
            let mut out = Vec::new();
            pktline::write_flush(&mut out);
            // A side that is gone already does not miss it.
            let _ = server.packets.source_mut().send(&out);
        }
        server.packets.source_mut().close()
    }
}

/// The request for a pack, and the answers up to the pack.
struct Exchange<'a> {
    server: &'a mut Server,
    greeting: &'a Greeting,
    interrupt: &'a Interrupt,
    session: Option<&'a BStr>,
}

impl Exchange<'_> {
    fn fetch_v2(
        &mut self,
        request: &Request,
        negotiator: &mut dyn Negotiator,
    ) -> Result<(bool, Announced), Error> {
        let mut conversation = v2::Conversation::new(request, self.greeting)?;
        conversation = conversation.with_session(self.session);
        let mut out = Vec::new();
        let mut rounds = 0;
        loop {
            rounds += 1;
            out.clear();
            conversation.write_request(negotiator, &mut out)?;
            self.server.packets.source_mut().send(&out)?;
            let mut room = Room::new(MOST_PACKETS, "packets");
            loop {
                interrupted(self.interrupt)?;
                room.take(1)?;
                let packet = self.server.packets.next_packet()?;
                match conversation.receive(packet, negotiator)? {
                    Next::Receive => {}
                    Next::Send => break,
                    Next::Pack { sideband } => {
                        pronto_io::data!("negotiation_v2", "total_rounds", rounds);
                        return Ok((sideband, conversation.into_announced()));
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
    ) -> Result<(bool, Announced), Error> {
        let stateless = self.server.packets.source_mut().is_stateless();
        let mut conversation = v0::Conversation::new(request, self.greeting, stateless)?;
        conversation = conversation.with_session(self.session);
        self.server.is_open = false;
        let mut out = Vec::new();
        let mut rounds = 0;
        loop {
            rounds += 1;
            out.clear();
            let mut next = conversation.write_request(negotiator, &mut out)?;
            tell(conversation.take_steps(), progress);
            self.server.packets.source_mut().send(&out)?;
            let mut room = Room::new(MOST_PACKETS, "packets");
            while next == Next::Receive {
                interrupted(self.interrupt)?;
                room.take(1)?;
                let packet = match self.server.packets.next_or_end()? {
                    Some(packet) => packet,
                    // A stateless server gets another request, so it sends no more than necessary.
                    None if stateless && conversation.may_end() => break,
                    None => return Err(hung_up()),
                };
                next = conversation.receive(packet, negotiator)?;
                tell(conversation.take_steps(), progress);
            }
            if let Next::Pack { sideband } = next {
                pronto_io::data!("negotiation_v0_v1", "total_rounds", rounds);
                return Ok((sideband, conversation.into_announced()));
            }
        }
    }
}

fn tell(steps: Vec<String>, progress: &dyn Progress) {
    for step in steps {
        progress.message(&step);
    }
}

/// Reads the first message of the other side.
///
/// # Errors
/// What answers does not speak the protocol, or the operation is interrupted.
pub(crate) fn read_greeting(
    packets: &mut PacketReader<Box<dyn Connection>>,
    interrupt: &Interrupt,
) -> Result<Greeting, Error> {
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

/// Records the version that is spoken, and the id of the session of the other side.
pub(crate) fn trace_greeting(greeting: &Greeting) {
    let version = match greeting.version {
        Version::V0 => "0",
        Version::V1 => "1",
        Version::V2 => "2",
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

/// The answer of the other side.
pub struct Response<'a> {
    /// The information before the pack.
    pub announced: Announced,
    /// The pack.
    pub pack: Pack<'a>,
}

/// The bytes of a pack as they arrive. Through [`BufRead`] they are seen where they were
/// received. Ends with an error once the operation is interrupted.
pub struct Pack<'a> {
    stream: Stream<'a>,
    interrupt: Interrupt,
    failure: Option<Error>,
}

enum Stream<'a> {
    Sideband(Demultiplexer<'a, Box<dyn Connection>>),
    Raw(&'a mut PacketReader<Box<dyn Connection>>),
    File(&'a mut dyn BufRead),
}

impl Pack<'_> {
    /// Reads what follows the pack, so that late messages are shown. `surplus` is what reading has
    /// given beyond the end of the pack.
    ///
    /// # Errors
    /// If there is more data, or the connection breaks.
    pub fn finish(&mut self, surplus: &[u8]) -> Result<(), Error> {
        let rest = match &mut self.stream {
            Stream::Sideband(stream) => {
                stream.finish()?;
                &[]
            }
            Stream::Raw(packets) => packets.raw()?,
            Stream::File(file) => return bundle::finish(*file, surplus),
        };
        if surplus.is_empty() && rest.is_empty() {
            return Ok(());
        }
        Err(malformed("protocol error: data after the end of the pack"))
    }

    /// Returns a function that reports whether more of the pack has arrived; `None` if that cannot
    /// be known.
    pub fn readiness(&self) -> Option<Readiness> {
        match &self.stream {
            Stream::Sideband(stream) => stream.source().readiness(),
            Stream::Raw(packets) => packets.source().readiness(),
            Stream::File(_) => None,
        }
    }

    /// The error behind the last [`io::Error`] that reading gave, with its kind.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn data(&mut self) -> Result<&[u8], Error> {
        interrupted(&self.interrupt)?;
        match &mut self.stream {
            Stream::Sideband(stream) => stream.data(),
            Stream::Raw(packets) => packets.raw(),
            Stream::File(file) => file.fill_buf().map_err(bundle::unreadable),
        }
    }
}

impl Read for Pack<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Pack<'_> {
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
        // The bytes have arrived by now; this call only borrows them.
        self.data()
            .map_err(|error| io::Error::other(error.to_string()))
    }

    fn consume(&mut self, count: usize) {
        match &mut self.stream {
            Stream::Sideband(stream) => stream.advance(count),
            Stream::Raw(packets) => packets.consume_raw(count),
            Stream::File(file) => file.consume(count),
        }
    }
}

/// Takes `text` apart and connects: [`Address::parse`] and [`Client::connect`].
///
/// # Errors
/// Those of the two.
pub fn connect(
    text: &BStr,
    options: &Options,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> Result<Client, Error> {
    let address = Address::parse(text)?;
    let settings = Box::new(http::Unset);
    Client::connect(&address, options, settings, progress, interrupt)
}
