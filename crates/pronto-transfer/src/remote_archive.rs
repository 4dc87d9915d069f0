//! Archives that another machine makes: `git archive --remote`.
//!
//! Costs one connection, and no memory for the archive.

use std::io::Write;

use bstr::BString;
use pronto_io::watch::Watch;
use pronto_wire::archive::Answer;

use crate::config::Config;
use crate::environment::Environment;
use crate::remote::Remote;
use crate::remote::connection::{self, Settings, from_wire};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Result};

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The archive is complete.
    Complete,
    /// The server gave up. The text says why, as Git prints it, without control characters; it is empty if the
    /// server has said nothing.
    Failed(String),
}

/// A request for an archive.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The program that serves there in place of `git-upload-archive`.
    pub program: Option<&'a BString>,
    /// The arguments of `archive`.
    pub arguments: &'a [BString],
    /// The configuration.
    pub config: &'a Config,
    /// The environment. The path of a repository is relative to its current directory.
    pub environment: &'a Environment,
}

impl<'a> Call<'a> {
    /// Creates a request to the usual program.
    pub fn new(arguments: &'a [BString], config: &'a Config, environment: &'a Environment) -> Self {
        Call {
            program: None,
            arguments,
            config,
            environment,
        }
    }
}

/// Writes the archive that `remote` makes to `output`, on the calling thread. Needs no repository. Messages of the
/// server go to the progress of `watch`, without control characters.
///
/// # Errors
/// The remote cannot be reached or refuses, what it sends is malformed, or `output` fails.
/// [`ErrorKind::Unsupported`] for remotes that git reaches with a helper, and for bundles.
pub fn fetch_archive(
    remote: &Remote,
    call: &Call<'_>,
    output: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<Ended> {
    let (config, environment) = (call.config, call.environment);
    support::require_settings(Operation::Connect, config, environment)?;
    let url = remote.url()?;
    let mut settings = Settings::default().for_remote(remote, config)?;
    settings.upload_pack = call.program.cloned();
    if connection::is_bundle(url, environment) {
        let message = "an archive from a bundle";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut client = connection::connect_to_archive(url, &settings, config, environment, watch)?;
    client.request(call.arguments).map_err(from_wire)?;
    let answer = client.receive(output, watch.progress());
    let answer = answer.map_err(from_wire)?;
    // The program behind the connection prints all that it has to say before it ends.
    let closed = client.close();
    Ok(match (answer, closed) {
        (Answer::Failed(line), _) => Ended::Failed(line),
        (Answer::Complete, Ok(())) => Ended::Complete,
        _ => Ended::Failed(String::new()),
    })
}
