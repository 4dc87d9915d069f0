//! The receiving side of a push (`gitprotocol-pack(5)`, "Pushing Data To a Server"): the ref
//! advertisement, the request and the status report, over bytes.

mod end;
mod report;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};

use crate::bounds::ByteAllowance;
use crate::certificate::Certificate;
use crate::error::{Error, hung_up, malformed};
use crate::pktline::{self, Packet};

pub use end::{PushEnd, PushParts};
pub use report::{CommandStatus, RefRewrite, write_report};

/// The default memory limit for the commands, shallow lines and the certificate of one push. It
/// suffices for a million commands.
pub const MOST_REQUEST_BYTES: usize = 256 << 20;

/// The memory limit for the push options of one push.
pub const MOST_OPTION_BYTES: usize = 4 << 20;

/// A requested update of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveCommand {
    /// The value that was advertised to the client; null to create the ref.
    pub old: ObjectId,
    /// The new value; null to delete the ref.
    pub new: ObjectId,
    /// The unchecked name of the ref.
    pub name: BString,
}

/// The capabilities that the client requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A status report (`report-status`).
    pub report: bool,
    /// A status report that can name other refs than the commands (`report-status-v2`).
    pub report_v2: bool,
    /// Messages, progress and the report in a side band (`side-band-64k`).
    pub sideband: bool,
    /// No progress messages (`quiet`).
    pub quiet: bool,
    /// An atomic push: all commands succeed, or none (`atomic`).
    pub atomic: bool,
    /// Push options after the commands (`push-options`).
    pub push_options: bool,
}

/// The request of a client, which precedes the pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The requested ref updates, in order.
    pub commands: Vec<ReceiveCommand>,
    /// The shallow commits of the client.
    pub shallow: Vec<ObjectId>,
    /// The requested capabilities.
    pub features: Features,
    /// The push certificate, if the push is signed. Its commands are those of the request.
    pub certificate: Option<Certificate>,
    /// The session id of the client.
    pub session_id: Option<BString>,
}

impl Request {
    /// Returns whether a pack follows, which is not the case if refs are only deleted.
    pub fn has_pack(&self) -> bool {
        self.commands.iter().any(|command| !command.new.is_null())
    }
}

/// The capabilities of the server that depend on its settings.
#[derive(Clone, Copy, Debug)]
pub struct ServerFeatures {
    /// The hash function of the repository.
    pub hash: Kind,
    /// Advertise `atomic` (`receive.advertiseAtomic`).
    pub atomic: bool,
    /// Advertise `push-options` (`receive.advertisePushOptions`).
    pub push_options: bool,
}

/// Parses a request packet by packet.
#[derive(Debug)]
pub struct RequestParser {
    offer: ServerFeatures,
    room: ByteAllowance,
    request: Request,
    /// The part of the certificate that was received.
    certificate: Option<BString>,
    is_in_certificate: bool,
}

impl RequestParser {
    /// Creates a parser for a server with the capabilities `offer`. The memory limit is
    /// [`MOST_REQUEST_BYTES`].
    pub fn new(offer: ServerFeatures) -> Self {
        RequestParser::with_room(offer, MOST_REQUEST_BYTES)
    }

    /// Does the same as [`new`](Self::new), with the memory limit `bytes`.
    pub fn with_room(offer: ServerFeatures, bytes: usize) -> Self {
        RequestParser {
            offer,
            room: ByteAllowance::new(bytes, "commands"),
            request: Request::default(),
            certificate: None,
            is_in_certificate: false,
        }
    }

    /// Takes one packet. Returns the request after its last packet.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the packet is malformed, or
    /// the request is too large.
    pub fn push(&mut self, packet: Packet<'_>) -> Result<Option<Request>, Error> {
        let payload = match packet {
            Packet::Data(payload) => payload,
            // Other special packets also end the request.
            _ => return self.complete().map(Some),
        };
        self.room
            .take(payload.len() + size_of::<ReceiveCommand>())?;
        if let Some(text) = self.certificate.as_mut().filter(|_| self.is_in_certificate) {
            match payload {
                b"push-cert-end\n" => self.is_in_certificate = false,
                _ => text.extend_from_slice(payload),
            }
            return Ok(None);
        }
        let line = packet.text().unwrap_or_default();
        if let Some(id) = line.strip_prefix(b"shallow ") {
            let id = self.id(id).ok_or_else(|| {
                let id = shown(id);
                malformed(format!("protocol error: expected shallow sha, got '{id}'"))
            })?;
            self.request.shallow.push(id);
            return Ok(None);
        }
        let line = match line.find_byte(0) {
            Some(end) => {
                self.choose(&line[end + 1..])?;
                &line[..end]
            }
            None => line,
        };
        if line == b"push-cert" {
            if self.certificate.is_some() {
                return Err(malformed("protocol error: got two push certificates"));
            }
            self.certificate = Some(BString::default());
            self.is_in_certificate = true;
            return Ok(None);
        }
        let command = self.command(line)?;
        self.request.commands.push(command);
        Ok(None)
    }

    fn complete(&mut self) -> Result<Request, Error> {
        let mut request = std::mem::take(&mut self.request);
        let Some(text) = self.certificate.take().filter(|text| !text.is_empty()) else {
            return Ok(request);
        };
        if !request.commands.is_empty() {
            let message = "protocol error: got both push certificate and unsigned commands";
            return Err(malformed(message));
        }
        let certificate = Certificate::parse(text)?;
        for line in certificate.changes() {
            self.room.take(line.len() + size_of::<ReceiveCommand>())?;
            request.commands.push(self.command(line)?);
        }
        request.certificate = Some(certificate);
        Ok(request)
    }

    fn choose(&mut self, words: &[u8]) -> Result<(), Error> {
        let features = &mut self.request.features;
        let mut hash = Kind::Sha1;
        for word in words.fields() {
            match word {
                b"report-status" => features.report = true,
                b"report-status-v2" => features.report_v2 = true,
                b"side-band-64k" => features.sideband = true,
                b"quiet" => features.quiet = true,
                b"atomic" => features.atomic = self.offer.atomic,
                b"push-options" => features.push_options = self.offer.push_options,
                b"object-format=sha1" => hash = Kind::Sha1,
                b"object-format=sha256" => hash = Kind::Sha256,
                word => {
                    if let Some(id) = word.strip_prefix(b"session-id=") {
                        self.request.session_id = Some(id.into());
                    }
                    if let Some(name) = word.strip_prefix(b"object-format=") {
                        return Err(bad_format(&shown(name)));
                    }
                }
            }
        }
        match hash == self.offer.hash {
            true => Ok(()),
            false => Err(bad_format(&hash.to_string())),
        }
    }

    /// Parses a command `OLD NEW NAME`.
    fn command(&self, line: &[u8]) -> Result<ReceiveCommand, Error> {
        let mut parts = line.splitn_str(3, " ");
        let mut next = || parts.next().unwrap_or_default();
        let (old, new, name) = (self.id(next()), self.id(next()), next());
        match (old, new) {
            (Some(old), Some(new)) if line.find_iter(" ").nth(1).is_some() => Ok(ReceiveCommand {
                old,
                new,
                name: name.into(),
            }),
            _ => {
                let line = shown(line);
                let message = format!("protocol error: expected old/new/ref, got '{line}'");
                Err(malformed(message))
            }
        }
    }

    fn id(&self, hex: &[u8]) -> Option<ObjectId> {
        let id = pronto_hash::parse_hex(hex).ok()?;
        (id.kind() == self.offer.hash).then_some(id)
    }
}

fn bad_format(name: &str) -> Error {
    malformed(format!("error: unsupported object format '{name}'"))
}

/// Escapes `text` for a message, and shortens it.
fn shown(text: &[u8]) -> String {
    text[..text.len().min(200)].escape_ascii().to_string()
}

/// Parses push options packet by packet.
#[derive(Debug)]
pub struct OptionsParser {
    room: ByteAllowance,
    options: Vec<BString>,
}

impl Default for OptionsParser {
    fn default() -> Self {
        OptionsParser {
            room: ByteAllowance::new(MOST_OPTION_BYTES, "push options"),
            options: Vec::new(),
        }
    }
}

impl OptionsParser {
    /// Takes one packet. Returns the options after the last packet.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the options exceed
    /// [`MOST_OPTION_BYTES`].
    pub fn push(&mut self, packet: Packet<'_>) -> Result<Option<Vec<BString>>, Error> {
        let Some(option) = packet.text() else {
            return Ok(Some(std::mem::take(&mut self.options)));
        };
        self.room.take(option.len() + size_of::<BString>())?;
        self.options.push(option.into());
        Ok(None)
    }
}

/// Writes the ref advertisement of the server: refs, capabilities and shallow commits.
#[derive(Debug)]
pub struct Advertisement {
    features: Option<String>,
    hash: Kind,
    out: Vec<u8>,
}

impl Advertisement {
    /// Starts an advertisement. `features` are the capabilities, which follow the first ref.
    pub fn new(hash: Kind, features: String) -> Self {
        Advertisement {
            features: Some(features),
            hash,
            out: Vec::new(),
        }
    }

    /// Adds a ref. The name `.have` stands for an object without a visible ref.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the name is longer than a
    /// packet.
    pub fn add(&mut self, id: &ObjectId, name: &BStr) -> Result<(), Error> {
        let hex = id.to_hex();
        let hex = hex.to_string();
        match self.features.take() {
            Some(features) => {
                let parts: [&[u8]; 6] = [
                    hex.as_bytes(),
                    b" ",
                    name,
                    b"\0",
                    features.as_bytes(),
                    b"\n",
                ];
                pktline::write_parts(&mut self.out, &parts)
            }
            None => pktline::write_parts(&mut self.out, &[hex.as_bytes(), b" ", name, b"\n"]),
        }
    }

    /// Ends the advertisement with the shallow commits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the capabilities are longer
    /// than a packet.
    pub fn finish(mut self, shallow: &[ObjectId]) -> Result<Vec<u8>, Error> {
        if self.features.is_some() {
            self.add(&self.hash.null(), "capabilities^{}".into())?;
        }
        for id in shallow {
            let line = format!("shallow {id}");
            pktline::write(&mut self.out, line.as_bytes())?;
        }
        pktline::write_flush(&mut self.out);
        Ok(self.out)
    }
}

/// Returns the error for a client that disconnects in the middle of its request.
pub fn left_early() -> Error {
    hung_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: ServerFeatures = ServerFeatures {
        hash: Kind::Sha1,
        atomic: true,
        push_options: false,
    };
    const ONE: &str = "1111111111111111111111111111111111111111";
    const NULL: &str = "0000000000000000000000000000000000000000";

    fn parse(lines: &[&str]) -> Result<Request, Error> {
        let mut parser = RequestParser::new(OFFER);
        for line in lines {
            assert!(parser.push(Packet::Data(line.as_bytes()))?.is_none());
        }
        Ok(parser.push(Packet::Flush)?.expect("a flush ends a request"))
    }

    #[test]
    fn commands_and_features_are_taken() {
        let first = format!(
            "{NULL} {ONE} refs/heads/a b\0 report-status atomic push-options session-id=x\n"
        );
        let shallow = format!("shallow {ONE}");
        let request = parse(&[&shallow, &first, &format!("{ONE} {NULL} refs/heads/c")]);
        let request = request.expect("well formed");
        assert_eq!(request.commands[0].name, "refs/heads/a b");
        assert_eq!(request.commands[1].name, "refs/heads/c");
        assert_eq!(request.shallow.len(), 1);
        assert_eq!(request.session_id, Some("x".into()));
        let features = request.features;
        assert!(features.report && features.atomic && !features.push_options);
        assert!(request.has_pack());
    }

    #[test]
    fn broken_lines_are_refused() {
        for line in ["", "x", NULL, "0 0 refs/heads/a", &format!("{NULL} {ONE}")] {
            parse(&[line]).expect_err(line);
        }
        let other = format!("{NULL} {ONE} refs/heads/a\0object-format=sha256");
        parse(&[&other]).expect_err("another hash function");
    }

    const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----\n";

    /// A certificate with this body, in packets.
    fn certificate(body: &str) -> Vec<String> {
        let mut lines = vec!["push-cert\0report-status\n".to_owned()];
        let text = format!("certificate version 0.1\n\n{body}");
        lines.extend(text.split_inclusive('\n').map(str::to_owned));
        lines.push("push-cert-end\n".to_owned());
        lines
    }

    fn parse_all(lines: &[String]) -> Result<Request, Error> {
        parse(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn a_certificate_holds_the_commands() {
        let line = format!("{NULL} {ONE} refs/heads/a\n");
        let request = parse_all(&certificate(&format!("{line}{SIGNATURE}")));
        let request = request.expect("well formed");
        assert_eq!(request.commands.len(), 1);
        assert!(request.features.report);
        let parsed = request.certificate.expect("it was sent");
        assert_eq!(parsed.signature(), SIGNATURE.as_bytes());
    }

    #[test]
    fn nothing_stands_beside_a_certificate() {
        let line = format!("{NULL} {ONE} refs/heads/a\n");
        let one = certificate(&format!("{line}{SIGNATURE}"));
        let beside = [one.clone(), vec![line.clone()]].concat();
        parse_all(&beside).expect_err("a command stands beside it");
        let twice = [one.clone(), one].concat();
        parse_all(&twice).expect_err("there are two");
        // Only the last line that begins a signature does.
        let hidden = certificate(&format!("{line}{SIGNATURE}{line}{SIGNATURE}"));
        parse_all(&hidden).expect_err("the first signature is no command");
        parse_all(&certificate(&format!("{line}\n"))).expect_err("the empty line is no command");
        let empty = ["push-cert\0\n".to_owned(), "push-cert-end\n".to_owned()];
        let request = parse_all(&empty).expect("well formed");
        assert!(request.certificate.is_none() && request.commands.is_empty());
    }
}
