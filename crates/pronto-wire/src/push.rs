//! The sending side of a push (`gitprotocol-pack(5)`, "Pushing Data To a Server").

mod report;

use std::io::{self, Read, Write};

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Progress, ProgressMessage};

use crate::address::RemoteAddress;
use crate::advertisement::ServerGreeting;
use crate::client::{read_greeting, trace_greeting};
use crate::error::{Error, ErrorKind};
use crate::pktline;
use crate::reader::PacketReader;
use crate::sideband::Demultiplexer;
use crate::transport::{self, Connection, Options, Service, http};

pub use report::{Report, ReportParser, Reported, RewrittenRef};

/// A requested update of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushCommand {
    /// The advertised value; null to create the ref.
    pub old: ObjectId,
    /// The new value; null to delete the ref.
    pub new: ObjectId,
    /// The full name of the ref.
    pub name: BString,
}

/// The request of a push, which precedes the pack.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The ref updates, in order.
    pub commands: Vec<PushCommand>,
    /// The requested capabilities, separated by spaces.
    pub features: String,
    /// The shallow commits of the local repository.
    pub shallow: Vec<ObjectId>,
    /// The push options, if `push-options` is requested (`--push-option`).
    pub options: Option<Vec<BString>>,
    /// The signed push certificate, which replaces the commands (`--signed`).
    pub certificate: Option<BString>,
}

impl Request {
    /// Encodes the request.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if a line is longer than a packet.
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

/// A callback that writes a pack to the given writer.
pub type ProducePack<'a> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'a>;

/// A connection to a repository for a push.
pub struct Pusher {
    packets: PacketReader<Box<dyn Connection>>,
    greeting: ServerGreeting,
    interrupt: Interrupt,
    is_open: bool,
}

/// The response of the remote side to a push.
#[derive(Debug)]
pub struct PushAnswer {
    /// The status report; `None` if there is none or it could not be read.
    pub report: Option<Report>,
    /// The error because of which the pack could not be created or sent.
    pub unsent: Option<io::Error>,
    /// The error because of which the report could not be read.
    pub unread: Option<Error>,
}

impl Pusher {
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
        let mut connection = transport::connect(address, Service::ReceivePack, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.message(ProgressMessage::Redirected(&url));
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

    /// Returns the refs and capabilities of the remote side.
    pub fn greeting(&self) -> &ServerGreeting {
        &self.greeting
    }

    /// Sends `request` and the pack that `produce` writes, and reads the status report if one was
    /// requested (`report-status`). Messages of the remote side are passed to `progress` as they
    /// arrive.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] or [`ErrorKind::Disconnected`] if the request cannot be
    /// sent.
    pub fn push(
        &mut self,
        request: &Request,
        produce: Option<ProducePack<'_>>,
        progress: &dyn Progress,
    ) -> Result<PushAnswer, Error> {
        self.is_open = false;
        let words = crate::capabilities::Capabilities::from_words(request.features.as_bytes());
        let reading = AnswerForm {
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
        // The remote side may send messages during the upload, so that both directions are served at
        // the same time.
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
        produce: Option<ProducePack<'_>>,
        reading: AnswerForm,
        progress: &dyn Progress,
    ) -> Result<PushAnswer, Error> {
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
            // If the pack is not read completely, the producer ends with a broken pipe.
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
        reading: AnswerForm,
        progress: &dyn Progress,
        unsent: Option<io::Error>,
    ) -> PushAnswer {
        let mut answer = PushAnswer {
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
        reading: AnswerForm,
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
        // An error of the side band is more specific than an incomplete report.
        if let Some(failure) = stream.failure.take() {
            return Err(failure);
        }
        let report = report?;
        // Hooks may send messages after the report.
        stream.bands.drain()?;
        Ok(report)
    }

    /// Closes the connection without a request, and waits for its program, so that all output of the
    /// program is printed.
    pub fn abandon(mut self) {
        // The remote side may have closed the connection already.
        let _ = self.packets.source_mut().close();
    }

    /// Closes the connection and waits for its program, so that all output of the program is printed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] if the program failed.
    pub fn close(mut self) -> Result<(), Error> {
        let stateless = self.packets.source_mut().is_stateless();
        if self.is_open && !stateless {
            let mut out = Vec::new();
            pktline::write_flush(&mut out);
            // The failure is ignored if the remote side has closed the connection already.
            let _ = self.packets.source_mut().send(&out);
        }
        self.packets.source_mut().close()
    }
}

/// Returns the result of a thread. A panic counts as a failure.
fn joined(ended: std::thread::Result<io::Result<()>>) -> io::Result<()> {
    ended.unwrap_or_else(|_| Err(io::Error::other("cannot create the pack")))
}

/// The form of the response, according to the requested capabilities.
#[derive(Clone, Copy)]
struct AnswerForm {
    is_banded: bool,
    reports: bool,
}

/// The data of side band 1 as a stream.
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
