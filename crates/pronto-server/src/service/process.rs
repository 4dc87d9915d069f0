//! The program `git`, for pushes to repositories that need features that crate `pronto` lacks.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

use bstr::{BString, ByteSlice as _};

use super::{Request, RequestStreams, broken};
use crate::{Error, ErrorKind, Result};

/// The size in bytes of the pieces in which output is copied.
const PIECE_BYTES: usize = 64 * 1024;

/// The program `git`.
#[derive(Clone, Debug, Default)]
pub struct GitProgram {}

impl GitProgram {
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
        let streams = RequestStreams {
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
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let mut command = command(request);
        if limits.forbids_force {
            command.args(["-c", "receive.denyNonFastForwards=true"]);
            // A replacement of a commit could have any parents.
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
                // No client can have a nonce of this random seed.
                let seed = format!("receive.certNonceSeed={}", crate::token::generate()?);
                command.args(["-c", &seed]);
            }
        }
        command.args(["receive-pack", "--stateless-rpc"]);
        run(command, request, streams)
    }
}

/// The limits of a push, in addition to the settings of the repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimits {
    /// The nonces that a push certificate may have.
    pub(super) nonce: NonceRule,
    /// Whether refs may only be fast-forwarded.
    pub(super) forbids_force: bool,
    /// The size limit of the pack. With `None`, `receive.maxInputSize` applies unchanged.
    pub(super) pack_bytes: Option<u64>,
}

/// The nonces that the certificate of a push may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum NonceRule {
    /// The nonces of earlier requests, within `receive.certNonceSlop`. The push is a separate
    /// request.
    OfRequests,
    /// The nonce of the advertisement on the same connection, which the certificate contains.
    OfConnection {
        /// The age of the nonce in seconds, rounded up.
        age_seconds: u64,
    },
    /// No nonce: the certificate does not contain the nonce of the advertisement on the same
    /// connection.
    None,
}

/// Returns a command that gets only the environment of the repository.
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

/// Runs a command on the repository, connected to the streams of the client.
fn run(mut command: Command, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()> {
    command.arg(request.repository.git_dir());
    let RequestStreams { input, output } = streams;
    let child = command.spawn().map_err(|error| {
        Error::new(
            ErrorKind::Failed,
            "cannot run git for a request that is not implemented natively; install git on the \
             server",
        )
        .because(error)
    })?;
    let mut child = ChildGuard(child);
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
    let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
        return Err(Error::new(ErrorKind::Failed, "cannot create a pipe"));
    };
    let copied = std::thread::scope(|scope| {
        // The service decides about the end of its input, and may exit before that end.
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
            format!("git failed with {status}"),
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

/// A child process that is killed when its request ends.
struct ChildGuard(Child);

impl ChildGuard {
    fn stop(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.stop();
            let _ = self.0.wait();
        }
    }
}

/// A writer that forwards an advertisement, and finds the nonce in it.
pub(super) struct NonceFinder<'a> {
    inner: &'a mut (dyn Write + Send),
    /// The first packet, or its beginning.
    first: Vec<u8>,
}

/// The number of bytes of an advertisement that are searched for the nonce, which is in the first
/// packet.
const SEARCHED_BYTES: usize = 64 * 1024;

impl<'a> NonceFinder<'a> {
    pub(super) fn new(inner: &'a mut (dyn Write + Send)) -> Self {
        NonceFinder {
            inner,
            first: Vec::new(),
        }
    }

    /// Returns the nonce, after the advertisement is written.
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
