//! The program `git`, for pushes to repositories that need features which crate `pronto` lacks.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

use bstr::{BString, ByteSlice as _};

use super::{Request, Streams, broken};
use crate::{Error, ErrorKind, Result};

/// The size of the pieces in which output is copied.
const PIECE_BYTES: usize = 64 * 1024;

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
            // A replaced commit could have any parents.
            command.env("GIT_NO_REPLACE_OBJECTS", "1");
        }
        if let Some(bytes) = limits.pack_bytes {
            command.args(["-c", &format!("receive.maxInputSize={bytes}")]);
        }
        match limits.nonce {
            NonceRule::OfRequests => {}
            NonceRule::OfConnection { age_seconds } => {
                let slop = format!("receive.certNonceSlop={age_seconds}");
                command.args(["-c", &slop]);
            }
            NonceRule::None => {
                // No client can have a nonce of this seed.
                let seed = format!("receive.certNonceSeed={}", crate::token::generate()?);
                command.args(["-c", &seed]);
            }
        }
        command.args(["receive-pack", "--stateless-rpc"]);
        run(command, request, streams)
    }
}

/// The limits of a push beside the settings of the repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimits {
    /// The nonces that a certificate may have.
    pub(super) nonce: NonceRule,
    /// Whether refs may only be fast-forwarded.
    pub(super) forbids_force: bool,
    /// The size that the pack may have. `None` leaves `receive.maxInputSize` as it is.
    pub(super) pack_bytes: Option<u64>,
}

/// The nonces that the certificate of a push may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum NonceRule {
    /// Those of earlier requests, within `receive.certNonceSlop`: the push is a request of its own.
    OfRequests,
    /// That of the advertisement on the same connection, which the certificate has, and which is so old.
    OfConnection {
        /// The age, with the fraction of a second rounded up.
        age_seconds: u64,
    },
    /// None: the certificate does not have that of the advertisement on the same connection.
    None,
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

/// Passes an advertisement on, and finds the nonce in it.
pub(super) struct NonceFinder<'a> {
    inner: &'a mut (dyn Write + Send),
    /// The first packet, or its beginning.
    first: Vec<u8>,
}

/// The bytes of an advertisement that are searched for the nonce, which is in the first packet.
const SEARCHED_BYTES: usize = 64 * 1024;

impl<'a> NonceFinder<'a> {
    pub(super) fn new(inner: &'a mut (dyn Write + Send)) -> Self {
        NonceFinder {
            inner,
            first: Vec::new(),
        }
    }

    /// Returns the nonce, once the advertisement is written.
    pub(super) fn nonce(&self) -> Option<BString> {
        let features = self.first.lines().next()?;
        let (_, features) = features.split_once_str("\0")?;
        let mut features = features.fields();
        features
            .find_map(|feature| feature.strip_prefix(b"push-cert="))
            .map(BString::from)
    }
}

impl Write for NonceFinder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        let rest = SEARCHED_BYTES.saturating_sub(self.first.len());
        let searched = bytes.get(..written.min(rest)).unwrap_or_default();
        self.first.extend_from_slice(searched);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nonce_of_an_advertisement_is_found() {
        let found = |text: &[u8]| {
            let mut sink = Vec::new();
            let mut finder = NonceFinder::new(&mut sink);
            for piece in text.chunks(7) {
                finder.write_all(piece).expect("it is a vector");
            }
            finder.nonce()
        };
        let nonce = Some(BString::from("1-ab"));
        assert_eq!(
            found(b"00x0 refs/heads/a\0atomic push-cert=1-ab x\n00y"),
            nonce
        );
        assert_eq!(
            found(b"00x0 refs/heads/a\0atomic\n00y0 a\0push-cert=1-ab\n"),
            None
        );
        assert_eq!(found(b"00x0 push-cert=1-ab\n"), None);
    }
}
