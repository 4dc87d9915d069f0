//! Continues a conversation through another server.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;

use super::unwritable;
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Result};

/// A server to be started: a program and its arguments.
#[derive(Clone, Debug)]
pub struct Server {
    /// The program (`git`).
    pub program: OsString,
    /// Its arguments (`upload-pack`, the path).
    pub arguments: Vec<OsString>,
    /// Variables that it sees changed.
    pub variables: Vec<(OsString, OsString)>,
}

/// Starts `server`, discards its greeting, because the other side has received one already, sends
/// it the [unanswered request](super::Ended::Unanswered), and forwards bytes in both directions
/// until it ends. `input` is the rest of the other side's bytes.
///
/// # Errors
/// It cannot be started, or the connection breaks.
pub fn go_on(
    server: &Server,
    unanswered: &[u8],
    mut input: impl Read + Send + 'static,
    output: &mut dyn Write,
) -> Result<ExitStatus> {
    let mut command = pronto_io::child::command(&server.program);
    command.args(&server.arguments);
    for (name, value) in &server.variables {
        command.env(name, value);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let name = Path::new(&server.program).display();
    let traced = pronto_io::child::started("upload-pack", &command);
    let spawned = command.spawn();
    let child = spawned.map_err(|error| {
        Error::new(ErrorKind::Transport, format!("cannot run {name}")).because(error)
    })?;
    let mut child = Ending(child);
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(Error::new(ErrorKind::Transport, "unable to create pipe"));
    };
    let mut packets = PacketReader::new(stdout);
    while packets.next_packet().map_err(from_wire)? != Packet::Flush {}
    stdin.write_all(unanswered).map_err(unwritable)?;
    // The thread ends with the process, because it cannot be woken while it waits for the other
    // side.
    std::thread::spawn(move || {
        // Both ends may go at any time; the server says what that means.
        let _ = std::io::copy(&mut input, &mut stdin);
    });
    let mut copied = true;
    while copied {
        let bytes = packets.raw().map_err(from_wire)?;
        let count = bytes.len();
        output
            .write_all(bytes)
            .and_then(|()| output.flush())
            .map_err(unwritable)?;
        packets.consume_raw(count);
        copied = count > 0;
    }
    let status = child.0.wait().map_err(|error| {
        Error::new(ErrorKind::Transport, format!("waitpid for {name} failed")).because(error)
    })?;
    traced.ended(child.0.id(), status);
    Ok(status)
}

/// A child that is not left behind.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
