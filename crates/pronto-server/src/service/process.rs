//! The program `git`, for pushes to repositories that need features which crate `pronto` lacks, and for
//! archives.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

use super::{Request, Streams, broken};
use crate::{Error, ErrorKind, Result};

/// The size of the pieces in which output is copied.
const PIECE_BYTES: usize = 64 * 1024;

/// The most arguments of a request for an archive: those that git takes, and some more, so that git reports what is too much.
const MOST_ARGUMENTS: usize = 80;

/// The longest packet.
const LONGEST_PACKET: usize = 65_520;

/// The program `git`.
#[derive(Clone, Debug, Default)]
pub struct Git {}

impl Git {
    /// Sends the advertisement of a service.
    pub(super) fn advertise(
        &self,
        request: &Request<'_>,
        service: &str,
        output: &mut (dyn Write + Send),
    ) -> Result<()> {
        let mut command = command(request);
        command.arg(service);
        command.args(["--stateless-rpc", "--http-backend-info-refs"]);
        let streams = Streams {
            input: &mut io::empty(),
            output,
        };
        run(command, request, streams)
    }

    /// Serves a request for an archive.
    pub(super) fn archive(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
        let mut command = command(request);
        command.arg("upload-archive");
        // Nothing follows, and a client that keeps its end open must not keep the slot.
        let Streams { input, output } = streams;
        let asked = read_packets(input)?;
        let streams = Streams {
            input: &mut asked.as_slice(),
            output,
        };
        // Git has told the client why it failed.
        run(command, request, streams).map_err(|error| error.map_kind(|_| ErrorKind::Malformed))
    }

    /// Answers a push.
    pub(super) fn receive(
        &self,
        request: &Request<'_>,
        limits: ReceiveLimits,
        streams: Streams<'_>,
    ) -> Result<()> {
        let mut command = command(request);
        if limits.forbids_force {
            command.args(["-c", "receive.denyNonFastForwards=true"]);
        }
        if let Some(bytes) = limits.pack_bytes {
            command.args(["-c", &format!("receive.maxInputSize={bytes}")]);
        }
        command.args(["receive-pack", "--stateless-rpc"]);
        run(command, request, streams)
    }
}

/// Reads packets up to a flush, or to the end of the input.
fn read_packets(input: &mut (impl Read + ?Sized)) -> Result<Vec<u8>> {
    let malformed = || Error::new(ErrorKind::Malformed, "the request is not made of packets");
    let mut packets = Vec::new();
    for _ in 0..MOST_ARGUMENTS {
        let at = packets.len();
        let read = input.take(4).read_to_end(&mut packets).map_err(broken)?;
        let digits = packets.get(at..).unwrap_or_default();
        let len = std::str::from_utf8(digits).ok();
        let len = len.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        match (read, len) {
            (0, _) | (4, Some(0)) => return Ok(packets),
            (4, Some(len)) if (4..=LONGEST_PACKET).contains(&len) => {
                let rest = (len - 4) as u64;
                let read = input.take(rest).read_to_end(&mut packets).map_err(broken)?;
                if read as u64 != rest {
                    return Err(malformed());
                }
            }
            _ => return Err(malformed()),
        }
    }
    let message = format!("the request has more than {MOST_ARGUMENTS} arguments");
    Err(Error::new(ErrorKind::Malformed, message))
}

/// The limits of a push beside the settings of the repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimits {
    /// Whether refs may only be fast-forwarded.
    pub(super) forbids_force: bool,
    /// The size that the pack may have.
    pub(super) pack_bytes: Option<u64>,
}

/// A command that sees the environment of the repository and no other.
fn command(request: &Request<'_>) -> Command {
    let mut command = pronto_io::child::command("git");
    for (name, value) in request.repository.environment().changes() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    match request.protocol {
        Some(protocol) => command.env("GIT_PROTOCOL", protocol),
        None => command.env_remove("GIT_PROTOCOL"),
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Runs a command on the repository, from and to the streams of the client.
fn run(mut command: Command, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
    command.arg(request.repository.git_dir());
    let Streams { input, output } = streams;
    let child = command.spawn().map_err(|error| {
        Error::new(
            ErrorKind::Failed,
            "cannot run git for a feature that pronto lacks",
        )
        .because(error)
    })?;
    let mut child = Ending(child);
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
    let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
        return Err(Error::new(ErrorKind::Failed, "cannot make a pipe"));
    };
    let copied = std::thread::scope(|scope| {
        // The service decides what the end of its input means, and may end before it.
        scope.spawn(move || {
            let _ = io::copy(input, &mut stdin);
        });
        let copied = copy(&mut stdout, output);
        if copied.is_err() {
            child.stop();
        }
        copied
    });
    copied.map_err(broken)?;
    let status = (child.0.wait())
        .map_err(|error| Error::new(ErrorKind::Failed, "cannot wait for git").because(error))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Failed,
            format!("git ended with {status}"),
        )),
    }
}

fn copy(from: &mut impl Read, to: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(buffer.get(..count).unwrap_or_default())?;
        to.flush()?;
    }
}

/// A child that does not outlive its request.
struct Ending(Child);

impl Ending {
    fn stop(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.stop();
            let _ = self.0.wait();
        }
    }
}
