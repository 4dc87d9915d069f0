//! Requests for archives: arguments as packets, a confirmation, and the archive in a side band
//! (`git-upload-archive(1)`).

use std::io::{Read, Write};

use bstr::{BString, ByteSlice};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;

use crate::address::Address;
use crate::error::{Error, ErrorKind, hung_up, malformed};
use crate::pktline::{self, Packet};
use crate::reader::PacketReader;
use crate::sanitize::sanitized;
use crate::sideband::Messages;
use crate::transport::{self, Connection, Options, Service, http};

/// The most arguments that a server takes, as in Git.
pub const MOST_ARGUMENTS: usize = 64;

/// The word before each argument.
const TOKEN: &[u8] = b"argument ";

/// Reads the arguments of a request. It is bounded by [`MOST_ARGUMENTS`] and the length of a packet.
///
/// # Errors
/// A packet is malformed or no argument, there are too many, or the stream ends.
pub fn read_arguments<R: Read>(packets: &mut PacketReader<R>) -> Result<Vec<BString>, Error> {
    let mut arguments = Vec::new();
    loop {
        let Some(Packet::Data(payload)) = packets.peek()? else {
            // Any packet without a content ends the list.
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
        // Git's arguments are strings that end at the first zero.
        let end = argument.find_byte(0).unwrap_or(argument.len());
        arguments.push(argument[..end].into());
        packets.next_packet()?;
    }
}

/// A connection to a repository whose archives can be fetched.
pub struct Client {
    packets: PacketReader<Box<dyn Connection>>,
    interrupt: Interrupt,
}

/// The end of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The archive is complete.
    Complete,
    /// The server broke off. The text says why, without control characters of the server.
    Failed(String),
}

impl Client {
    /// Connects to `address`. Over HTTP, `settings` says what the user has set for a URL.
    ///
    /// # Errors
    /// The connection cannot be made; over HTTP also if the server does not speak version 2.
    pub fn connect(
        address: &Address,
        options: &Options,
        settings: Box<dyn http::Settings>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let _region = pronto_io::region!("transport", "connect");
        let service = Service::UploadArchive;
        let mut connection = transport::connect(address, service, options, settings)?;
        if let Some(url) = connection.take_redirect() {
            progress.redirected(&url);
        }
        Ok(Client {
            packets: PacketReader::new(connection),
            interrupt: interrupt.clone(),
        })
    }

    /// Sends the arguments, and waits until the server confirms that it will answer.
    ///
    /// # Errors
    /// An argument is too long, the server refuses, or the connection breaks.
    pub fn request(&mut self, arguments: &[BString]) -> Result<(), Error> {
        let mut request = Vec::new();
        for argument in arguments {
            pktline::write_parts(&mut request, &[TOKEN, argument, b"\n"])?;
        }
        pktline::write_flush(&mut request);
        match self.packets.source_mut().send(&request) {
            // The server may have said why it does not read.
            Err(error) if *error.kind() == ErrorKind::Disconnected => {}
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

    /// Writes the archive to `output`. Messages of the server go to `progress`.
    ///
    /// # Errors
    /// The stream breaks or is malformed, `output` fails, or the operation is interrupted.
    pub fn receive(
        &mut self,
        output: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<Answer, Error> {
        let mut messages = Messages::new(progress);
        loop {
            let interrupted = |_| Error::new(ErrorKind::Interrupted, "interrupted");
            self.interrupt.check().map_err(interrupted)?;
            let packet = match self.packets.next_or_end() {
                Ok(Some(packet)) => packet,
                Ok(None) => {
                    messages.finish();
                    return Ok(Answer::Failed(DISCONNECTED.to_owned()));
                }
                Err(error) if error.kind() == hung_up().kind() => {
                    messages.finish();
                    return Ok(Answer::Failed(DISCONNECTED.to_owned()));
                }
                Err(error) => return Err(error),
            };
            match packet {
                Packet::Data([1, data @ ..]) => output.write_all(data).map_err(unwritable)?,
                Packet::Data([2, text @ ..]) => messages.push(text),
                Packet::Data([3, text @ ..]) => {
                    messages.finish();
                    return Ok(Answer::Failed(format!("remote: {}", sanitized(text))));
                }
                // As in Git, any packet without a content ends the answer.
                Packet::Flush | Packet::Delimiter | Packet::ResponseEnd => {
                    messages.finish();
                    output.flush().map_err(unwritable)?;
                    return Ok(Answer::Complete);
                }
                Packet::Data([]) => {
                    messages.finish();
                    let message = "archive: protocol error: missing sideband designator";
                    return Ok(Answer::Failed(message.to_owned()));
                }
                Packet::Data([band, ..]) => {
                    messages.finish();
                    let message = format!("archive: protocol error: bad band #{band}");
                    return Ok(Answer::Failed(message));
                }
            }
        }
    }

    /// Ends the connection and waits for the program behind it.
    ///
    /// # Errors
    /// The program reports that it failed.
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
