//! The sending side of a push (`gitprotocol-pack(5)`, "Pushing Data To a Server").

mod report;

use std::io::{self, Read, Write};

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;

use crate::address::Address;
use crate::advertisement::Greeting;
use crate::client::{read_greeting, trace_greeting};
use crate::error::{Error, ErrorKind};
use crate::pktline;
use crate::reader::PacketReader;
use crate::sideband::Demultiplexer;
use crate::transport::{self, Connection, Options, Service, http};

pub use report::{Report, ReportParser, Reported, Rewritten};

/// One requested change of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The value that the other side advertised; null for a ref to be created.
    pub old: ObjectId,
    /// The value that the ref is to have; null for a ref to be deleted.
    pub new: ObjectId,
    /// The full name of the ref.
    pub name: BString,
}

/// A request: everything that precedes the pack.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The changes, in their order.
    pub commands: Vec<Command>,
    /// The features that are chosen, as words.
    pub features: String,
    /// The commits at which the history of this side is cut off.
    pub shallow: Vec<ObjectId>,
    /// Push options, if that feature is chosen.
    pub options: Option<Vec<BString>>,
    /// The signed certificate that takes the place of the commands.
    pub certificate: Option<BString>,
}

impl Request {
    /// The bytes of the request.
    ///
    /// # Errors
    /// A line is longer than a packet.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        for id in &self.shallow {
            pktline::write(&mut out, format!("shallow {id}").as_bytes())?;
        }
        match &self.certificate {
            Some(certificate) => self.encode_certificate(certificate.as_ref(), &mut out)?,
            None => self.encode_commands(&mut out)?,
        }
        pktline::write_flush(&mut out);
        if let Some(options) = &self.options {
            for option in options {
                pktline::write(&mut out, option)?;
            }
            pktline::write_flush(&mut out);
        }
        Ok(out)
    }

    fn encode_commands(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut features = Some(self.features.as_str());
        for command in &self.commands {
            let ids = format!("{} {} ", command.old, command.new);
            match features.take() {
                Some(features) => {
                    let parts = [
                        ids.as_bytes(),
                        command.name.as_ref(),
                        b"\0",
                        features.as_bytes(),
                    ];
                    pktline::write_parts(out, &parts)?;
                }
                None => pktline::write_parts(out, &[ids.as_bytes(), &command.name])?,
            }
        }
        Ok(())
    }

    fn encode_certificate(&self, certificate: &BStr, out: &mut Vec<u8>) -> Result<(), Error> {
        let parts: [&[u8]; 2] = [b"push-cert\0", self.features.as_bytes()];
        pktline::write_parts(out, &parts)?;
        for line in certificate.split_inclusive(|byte| *byte == b'\n') {
            pktline::write(out, line)?;
        }
        pktline::write(out, b"push-cert-end\n")
    }
}

/// Produces a pack: called with where to write it.
pub type Produce<'a> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'a>;

/// A connection to a repository to push to.
pub struct Pusher {
    packets: PacketReader<Box<dyn Connection>>,
    greeting: Greeting,
    interrupt: Interrupt,
    is_open: bool,
}

/// The answer of the other side to a request.
#[derive(Debug)]
pub struct Answer {
    /// Its report; `None` if it gives none, or none that could be read.
    pub report: Option<Report>,
    /// Why the pack could not be produced or sent.
    pub unsent: Option<io::Error>,
    /// Why the report could not be read.
    pub unread: Option<Error>,
}

impl Pusher {
    /// Connects to `address` and reads the greeting. Over HTTP, `settings` says what the user has
    /// set for a URL.
    ///
    /// # Errors
    /// The connection cannot be made, or what answers does not speak the protocol.
    pub fn connect(
        address: &Address,
        options: &Options,
        settings: Box<dyn http::Settings>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let region = pronto_io::region!("transport", "connect");
        let mut connection = transport::connect(address, Service::ReceivePack, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.redirected(&url);
        }
        let mut packets = PacketReader::new(connection);
        let greeting = read_greeting(&mut packets, interrupt)?;
        drop(region);
        trace_greeting(&greeting);
        Ok(Pusher {
            packets,
            greeting,
            interrupt: interrupt.clone(),
            is_open: true,
        })
    }

    /// The refs and features of the other side.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Sends `request` and the pack that `produce` makes, and reads the report if `reports` and the
    /// other side gives one. Messages of the other side go to `progress` while they arrive.
    ///
    /// # Errors
    /// The request cannot be sent.
    pub fn push(
        &mut self,
        request: &Request,
        produce: Option<Produce<'_>>,
        progress: &dyn Progress,
    ) -> Result<Answer, Error> {
        self.is_open = false;
        let words = crate::capabilities::Capabilities::from_words(request.features.as_bytes());
        let reading = Reading {
            is_banded: words.has("side-band-64k"),
            reports: words.has("report-status") || words.has("report-status-v2"),
        };
        let encoded = request.encode()?;
        if self.packets.source_mut().is_stateless() {
            return self.push_at_once(&encoded, produce, reading, progress);
        }
        self.packets.source_mut().send(&encoded)?;
        let Some(produce) = produce else {
            return Ok(self.read(reading, progress, None));
        };
        let Some(mut writer) = self.packets.source_mut().take_writer() else {
            return Err(Error::new(
                ErrorKind::Connection,
                "unable to write to remote",
            ));
        };
        // The other side may talk while the pack is on its way: both directions move at once.
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let produced = produce(&mut *writer).and_then(|()| writer.flush());
                drop(writer);
                produced
            });
            let mut answer = self.read(reading, progress, None);
            answer.unsent = joined(sending.join()).err();
            Ok(answer)
        })
    }

    /// Sends request and pack as the body of one HTTP request.
    fn push_at_once(
        &mut self,
        encoded: &[u8],
        produce: Option<Produce<'_>>,
        reading: Reading,
        progress: &dyn Progress,
    ) -> Result<Answer, Error> {
        let Some(produce) = produce else {
            self.packets.source_mut().send(encoded)?;
            return Ok(self.read(reading, progress, None));
        };
        let (pipe, mut writer) = io::pipe().map_err(|error| {
            Error::new(ErrorKind::Connection, "unable to create pipe").because(error)
        })?;
        std::thread::scope(|scope| {
            let producing = scope.spawn(move || {
                let produced = produce(&mut writer);
                drop(writer);
                produced
            });
            let mut body = encoded.chain(pipe);
            let sent = self.packets.source_mut().upload(&mut body);
            // A producer whose pack nobody reads ends with a broken pipe.
            drop(body);
            let unsent = joined(producing.join()).err();
            match (sent, unsent) {
                (Err(error), None) => Err(error),
                (Err(error), Some(unsent)) if unsent.kind() == io::ErrorKind::BrokenPipe => {
                    Err(error)
                }
                (_, unsent) => Ok(self.read(reading, progress, unsent)),
            }
        })
    }

    fn read(
        &mut self,
        reading: Reading,
        progress: &dyn Progress,
        unsent: Option<io::Error>,
    ) -> Answer {
        let mut answer = Answer {
            report: None,
            unsent,
            unread: None,
        };
        match self.read_report(reading, progress) {
            Ok(report) => answer.report = report,
            Err(error) => answer.unread = Some(error),
        }
        answer
    }

    fn read_report(
        &mut self,
        reading: Reading,
        progress: &dyn Progress,
    ) -> Result<Option<Report>, Error> {
        let hash = self.greeting.object_format;
        if !reading.is_banded {
            return match reading.reports {
                true => report::read(&mut self.packets, hash).map(Some),
                false => Ok(None),
            };
        }
        let bands = Demultiplexer::new(&mut self.packets, progress);
        let mut stream = Banded {
            bands: bands.interruptible(&self.interrupt),
            failure: None,
        };
        let report = match reading.reports {
            true => report::read(&mut PacketReader::new(&mut stream), hash).map(Some),
            false => Ok(None),
        };
        // Why the bands broke says more than that the report ended too early.
        if let Some(failure) = stream.failure.take() {
            return Err(failure);
        }
        let report = report?;
        // Hooks may talk after the report.
        stream.bands.drain()?;
        Ok(report)
    }

    /// Leaves without a request, and waits for the other side, so that all it prints is printed.
    pub fn abandon(mut self) {
        // It may be gone.
        let _ = self.packets.source_mut().close();
    }

    /// Ends the connection and waits for the other side, so that all it prints is printed.
    ///
    /// # Errors
    /// The program behind the connection reports that it failed.
    pub fn close(mut self) -> Result<(), Error> {
        let stateless = self.packets.source_mut().is_stateless();
        if self.is_open && !stateless {
            let mut out = Vec::new();
            pktline::write_flush(&mut out);
            // A side that is gone already does not miss it.
            let _ = self.packets.source_mut().send(&out);
        }
        self.packets.source_mut().close()
    }
}

/// The result of a thread; one that panicked has failed.
fn joined(ended: std::thread::Result<io::Result<()>>) -> io::Result<()> {
    ended.unwrap_or_else(|_| Err(io::Error::other("the pack could not be made")))
}

/// The form of an answer.
#[derive(Clone, Copy)]
struct Reading {
    is_banded: bool,
    reports: bool,
}

/// The data of band 1 as a stream.
struct Banded<'a> {
    bands: Demultiplexer<'a, Box<dyn Connection>>,
    failure: Option<Error>,
}

impl Read for Banded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bands.data().map(|data| {
            let count = data.len().min(buffer.len());
            buffer[..count].copy_from_slice(&data[..count]);
            count
        });
        match read {
            Ok(count) => {
                self.bands.advance(count);
                Ok(count)
            }
            Err(error) => {
                let shown = io::Error::other(error.to_string());
                self.failure = Some(error);
                Err(shown)
            }
        }
    }
}
