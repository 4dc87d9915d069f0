//! Fetches archives from a server: `git archive --remote`.
//!
//! Costs one connection, and no memory for the archive.

use std::io::Write;

use bstr::BString;
use pronto_io::watch::Watch;
use pronto_wire::archive::ArchiveEnd;

use crate::config::Config;
use crate::environment::Environment;
use crate::remote::Remote;
use crate::remote::connection::{self, Settings, from_wire};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Result};

/// The result of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum RemoteArchiveEnd {
    /// The archive is complete.
    Complete,
    /// The server failed. Contains the reason, as Git prints it, without control characters; empty
    /// if the server sent no reason.
    Failed(String),
}

/// A request for an archive.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ArchiveRequest<'a> {
    /// The program on the remote side instead of `git-upload-archive` (`--exec`).
    pub program: Option<&'a BString>,
    /// The arguments of `git archive` to send.
    pub arguments: &'a [BString],
    /// The configuration.
    pub config: &'a Config,
    /// The environment. The path of a repository is relative to its current directory.
    pub environment: &'a Environment,
}

impl<'a> ArchiveRequest<'a> {
    /// Creates a request to `git-upload-archive`.
    pub fn new(arguments: &'a [BString], config: &'a Config, environment: &'a Environment) -> Self {
        ArchiveRequest {
            program: None,
            arguments,
            config,
            environment,
        }
    }
}

/// Writes the archive of `remote` to `output`, on the calling thread. Needs no local repository.
/// Messages of the server are sent to the progress of `watch`, without control characters.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] for remotes that git reaches with a remote helper, and for
/// bundles; with `ErrorKind::Transport` if the remote cannot be reached, refuses or violates the
/// protocol; and with `ErrorKind::Io` if `output` fails.
pub fn fetch_archive(
    remote: &Remote,
    call: &ArchiveRequest<'_>,
    output: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<RemoteArchiveEnd> {
    let (config, environment) = (call.config, call.environment);
    support::require_settings(Operation::Connect, config, environment)?;
    let url = remote.url()?;
    let mut settings = Settings::default().for_remote(remote, config)?;
    settings.upload_pack = call.program.cloned();
    if connection::is_bundle(url, environment) {
        let message = "an archive from a bundle is not implemented natively";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut client = connection::connect_to_archive(url, &settings, config, environment, watch)?;
    client.request(call.arguments).map_err(from_wire)?;
    let answer = client.receive(output, watch.progress());
    let answer = answer.map_err(from_wire)?;
    // The program of the connection prints all its messages before it ends.
    let closed = client.close();
    Ok(match (answer, closed) {
        (ArchiveEnd::Failed(line), _) => RemoteArchiveEnd::Failed(line),
        (ArchiveEnd::Complete, Ok(())) => RemoteArchiveEnd::Complete,
        _ => RemoteArchiveEnd::Failed(String::new()),
    })
}
