//! Requests for archives (`git-upload-archive(1)`): arguments as packets, an acknowledgement, and the
//! archive in a side band.

use std::io::{Read, Write};

use bstr::{BString, ByteSlice};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Progress, ProgressMessage};

use crate::address::RemoteAddress;
use crate::error::{Error, ErrorKind, hung_up, malformed};
use crate::pktline::{self, Packet};
use crate::reader::PacketReader;
use crate::sanitize::sanitized;
use crate::sideband::RemoteMessages;
use crate::transport::{self, Connection, Options, Service, http};

/// The maximum number of arguments that a server accepts, as in Git.
pub const MOST_ARGUMENTS: usize = 64;

/// The word before each argument.
const TOKEN: &[u8] = b"argument ";

/// Reads the arguments of a request. The number is limited by [`MOST_ARGUMENTS`], and the length of
/// each by that of a packet.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`] if a packet is malformed or there are too many arguments, or
/// [`ErrorKind::Disconnected`] if the stream ends early.
pub fn read_arguments<R: Read>(packets: &mut PacketReader<R>) -> Result<Vec<BString>, Error> {
    let mut arguments = Vec::new();
    loop {
        let Some(Packet::Data(payload)) = packets.peek()? else {
            // Any packet without a payload ends the list.
            return packets.next_packet().map(|_| arguments);
        };
        let line = payload.strip_suffix(b"\n").unwrap_or(payload);
        if line.is_empty() {
            packets.next_packet()?;
            return Ok(arguments);
        }
        if arguments.len() == MOST_ARGUMENTS {
            let message = format!("Too many options (>{})", MOST_ARGUMENTS - 1);
            return Err(malformed(message));
        }
        let argument = line.strip_prefix(TOKEN);
        let argument = argument.ok_or_else(|| malformed("'argument' token or flush expected"))?;
        // Git's arguments are strings that end at the first NUL.
        let end = argument.find_byte(0).unwrap_or(argument.len());
        arguments.push(argument[..end].into());
        packets.next_packet()?;
    }
}

/// A connection to a repository from which archives can be requested.
pub struct RemoteArchive {
    packets: PacketReader<Box<dyn Connection>>,
    interrupt: Interrupt,
}

/// The end of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveEnd {
    /// The archive is complete.
    Complete,
    /// The server failed. The text is its reason, without control characters.
    Failed(String),
}

impl RemoteArchive {
    /// Connects to `address`. Over HTTP, `settings` provides the user's settings for each URL.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] or another kind of [`transport::connect`] if the connection
    /// cannot be made; over HTTP also if the server does not support version 2.
    pub fn connect(
        address: &RemoteAddress,
        options: &Options,
        settings: Box<dyn http::Settings>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let _region = pronto_io::region!("transport", "connect");
        let service = Service::UploadArchive;
        let mut connection = transport::connect(address, service, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.message(ProgressMessage::Redirected(&url));
        }
        Ok(RemoteArchive {
            packets: PacketReader::new(connection),
            interrupt: interrupt.clone(),
        })
    }

    /// Sends the arguments, and waits for the acknowledgement of the server.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Remote`] if the server refuses, [`ErrorKind::Malformed`] if an argument
    /// is too long, or [`ErrorKind::Disconnected`] or [`ErrorKind::Connection`] if the connection
    /// breaks.
    pub fn request(&mut self, arguments: &[BString]) -> Result<(), Error> {
        let mut request = Vec::new();
        for argument in arguments {
            pktline::write_parts(&mut request, &[TOKEN, argument, b"\n"])?;
        }
        pktline::write_flush(&mut request);
        match self.packets.source_mut().send(&request) {
            // The server may have sent the reason before it stopped reading.
            Err(error) if error.kind() == ErrorKind::Disconnected => {}
            sent => sent?,
        }
        let packet = self.packets.next_packet()?;
        let Some(line) = packet.text() else {
            let message = "git archive: expected ACK/NAK, got a flush packet";
            return Err(malformed(message));
        };
        if let Some(reason) = line.strip_prefix(b"NACK ") {
            let message = format!("git archive: NACK {}", sanitized(reason));
            return Err(Error::new(ErrorKind::Remote, message));
        }
        if line != b"ACK" {
            return Err(malformed("git archive: protocol error"));
        }
        match self.packets.next_packet()? {
            Packet::Flush => Ok(()),
            _ => Err(malformed("git archive: expected a flush")),
        }
    }

    /// Writes the archive to `output`. Messages of the server are passed to `progress`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] or [`ErrorKind::Connection`] if the stream is malformed or
    /// breaks, [`ErrorKind::Local`] if `output` fails, or with [`ErrorKind::Interrupted`].
    pub fn receive(
        &mut self,
        output: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<ArchiveEnd, Error> {
        let mut messages = RemoteMessages::new(progress);
        loop {
            let interrupted = |_| Error::new(ErrorKind::Interrupted, "interrupted");
            self.interrupt.check().map_err(interrupted)?;
            let packet = match self.packets.next_or_end() {
                Ok(Some(packet)) => packet,
                Ok(None) => {
                    messages.finish();
                    return Ok(ArchiveEnd::Failed(DISCONNECTED.to_owned()));
                }
                Err(error) if error.kind() == hung_up().kind() => {
                    messages.finish();
                    return Ok(ArchiveEnd::Failed(DISCONNECTED.to_owned()));
                }
                Err(error) => return Err(error),
            };
            match packet {
                Packet::Data([1, data @ ..]) => output.write_all(data).map_err(unwritable)?,
                Packet::Data([2, text @ ..]) => messages.push(text),
                Packet::Data([3, text @ ..]) => {
                    messages.finish();
                    return Ok(ArchiveEnd::Failed(format!("remote: {}", sanitized(text))));
                }
                // As in Git, any packet without a payload ends the response.
                Packet::Flush | Packet::Delimiter | Packet::ResponseEnd => {
                    messages.finish();
                    output.flush().map_err(unwritable)?;
                    return Ok(ArchiveEnd::Complete);
                }
                Packet::Data([]) => {
                    messages.finish();
                    let message = "archive: protocol error: missing sideband designator";
                    return Ok(ArchiveEnd::Failed(message.to_owned()));
                }
                Packet::Data([band, ..]) => {
                    messages.finish();
                    let message = format!("archive: protocol error: bad band #{band}");
                    return Ok(ArchiveEnd::Failed(message));
                }
            }
        }
    }

    /// Closes the connection and waits for its program.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] if the program failed.
    pub fn close(mut self) -> Result<(), Error> {
        self.packets.source_mut().close()
    }
}

const DISCONNECTED: &str = "archive: unexpected disconnect while reading sideband packet";

fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Local, "cannot write the archive").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<BString>, String> {
        let arguments = read_arguments(&mut PacketReader::new(bytes));
        arguments.map_err(|error| error.to_string())
    }

    fn lines(lines: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            pktline::write(&mut out, line).expect("it is short");
        }
        out
    }

    #[test]
    fn arguments_end_at_a_packet_without_content() {
        let words: [&[u8]; 3] = [b"argument HEAD\n", b"argument a\0b", b"argument "];
        for end in [&b"0000"[..], b"0001", b"0004", b"0005\n"] {
            let bytes = [&lines(&words), end].concat();
            assert_eq!(read(&bytes), Ok(vec!["HEAD".into(), "a".into(), "".into()]));
        }
    }

    #[test]
    fn malformed_requests_are_refused() {
        let token = Err("'argument' token or flush expected".to_owned());
        assert_eq!(read(&lines(&[b"HEAD"])), token);
        assert_eq!(read(&lines(&[b"ERR no"])), token);
        let many = vec![&b"argument a"[..]; MOST_ARGUMENTS];
        let flushed = [lines(&many), b"0000".to_vec()].concat();
        assert_eq!(read(&flushed).map(|found| found.len()), Ok(MOST_ARGUMENTS));
        let more = [lines(&many), lines(&many)].concat();
        assert_eq!(read(&more), Err("Too many options (>63)".to_owned()));
        for cut in 0..flushed.len() {
            assert!(read(&flushed[..cut]).is_err(), "{cut}");
        }
    }
}
