//! The server of a fetch (`git upload-pack`), see `gitprotocol-pack(5)` and `gitprotocol-v2(5)`.
//!
//! The server reads from any `Read` and writes to any `Write`: [`answer`] serves a whole
//! conversation on a pipe, or one request of a stateless transport, for which [`advertise`] writes
//! the first response. The server starts no process, unless `uploadpack.packObjectsHook` is set.
//!
//! A full clone costs reading the refs once, and reading commits and trees once (or bitmaps). The
//! content of a single pack is sent from its memory map without a copy: 16 packets with one system
//! call.

mod bands;
mod cache;
mod common;
mod cut;
pub mod hidden;
mod hook;
mod packed;
mod promisors;
mod selections;
mod send;
mod settings;
mod shown;
mod uris;
mod v0;
mod v2;
mod wants;
mod wish;
mod writer;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::budget::RequestBudget;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::capabilities::AGENT;
use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;

use crate::enter::from_client;
use crate::support::{self, Operation};
use crate::{Environment, Error, ErrorKind, Repository, Result};
use pronto_config::safety;

pub use cache::{ListingCache, ListingKey, PackCache, SentPackKey};
use cut::ShallowCut;
pub use packed::{BundleSource, PackedBundle, may_have_packed_bundle, packed_bundle};
pub use pronto_odb::packing::PackCounts;
pub use selections::Selections;
use settings::Settings;
use shown::NamespaceView;
pub use v2::{MOST_PREFIX_BYTES, MOST_PREFIXES};
use writer::UnsentLines;

/// The limit for the size of one request.
const LARGEST_REQUEST_BYTES: usize = 256 << 20;

/// The memory of an argument beside its bytes.
const OVERHEAD_BYTES: usize = 64;

/// The limit for the number of object ids in one request.
pub const MOST_IDS: usize = 4 << 20;

/// The options for serving a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The protocol version that the client asks for (`GIT_PROTOCOL`).
    pub version: ProtocolVersion,
    /// Whether the transport is stateless (HTTP, `--stateless-rpc`): [`answer`] reads one request,
    /// and sends no advertisement before it.
    pub is_stateless: bool,
    /// Whether progress is discarded for a client without sideband, instead of being written to
    /// standard error.
    pub is_daemon: bool,
    /// The name and version of this server (capability `agent`).
    pub agent: BString,
    /// The id of this session, advertised with `transfer.advertiseSID`.
    pub session_id: Option<BString>,
    /// The cache of packs that equal requests share. Unset, each pack is created for one request.
    pub packs: Option<Arc<dyn PackCache>>,
    /// The selections of objects that equal requests share. Unset, each selection is made for one
    /// request.
    pub selections: Option<Arc<Selections>>,
    /// The cache of ref lists that equal requests share.
    pub listings: Option<Arc<dyn ListingCache>>,
    /// The path of the repository of which this one is a view; `None` if it is not a view. The refs
    /// of a view never change. The path of the view therefore identifies their state, and ref lists
    /// are found in the cache without reading the refs.
    pub view_of: Option<PathBuf>,
    /// The memory budget for the arguments of a request, charged before they are kept.
    pub budget: Option<Arc<RequestBudget>>,
    /// The source of bundles for clones, unless the configuration of the repository sets bundle
    /// URIs (`uploadpack.advertiseBundleURIs`).
    pub bundles: Option<Arc<dyn BundleSource>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: ProtocolVersion::V0,
            is_stateless: false,
            is_daemon: false,
            agent: AGENT.into(),
            session_id: None,
            packs: None,
            selections: None,
            listings: None,
            view_of: None,
            budget: None,
            bundles: None,
        }
    }
}

/// The streams of the connection.
///
/// The output must be `Send`, because a thread sends the pack, and unbuffered, because the client waits for
/// each answer. The lock of [`std::io::stdout`] is neither. A program that serves its standard input and
/// output copies the descriptors:
///
/// ```no_run
/// # use pronto_io::watch::Watch;
/// # use pronto_repository::{Environment, Repository};
/// # use pronto_transfer::upload_pack;
/// use std::fs::File;
/// use std::os::fd::AsFd;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let repository = Repository::open("project.git", &Environment::from_process()?)?;
/// let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
/// let mut output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
/// let streams = upload_pack::UploadStreams {
///     input: &mut input,
///     output: &mut output,
/// };
/// let options = upload_pack::Options::default();
/// upload_pack::answer(&repository, &options, streams, &Watch::none())?.into_result()?;
/// # Ok(())
/// # }
/// ```
pub struct UploadStreams<'a> {
    /// The input from the client, which is read in large pieces.
    pub input: &'a mut dyn Read,
    /// The output to the client, which is written in large pieces.
    pub output: &'a mut (dyn Write + Send),
}

/// The result of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum ConversationEnd {
    /// All requests were served.
    Served,
    /// The client requested an object that is not allowed, and received an error. The message is
    /// for the log of the server.
    Refused(BString),
    /// The pack could not be created, and the client received an error. Contains Git's message.
    Aborted(BString),
}

/// The state of one conversation.
struct UploadSession<'a> {
    repository: &'a Repository,
    /// The repository without grafts, which only affect the negotiation.
    stored: &'a Repository,
    options: &'a Options,
    settings: Settings,
    packets: PacketReader<&'a mut (dyn Read + 'a)>,
    /// The number of bytes of the current request that were read so far.
    request_bytes: usize,
    /// The names of the promisor remotes that the client has accepted.
    promisors: Vec<BString>,
    out: &'a mut (dyn Write + Send + 'a),
    interrupt: &'a Interrupt,
}

/// Returns the protocol version that `GIT_PROTOCOL` requests: the highest known version in it.
pub fn requested_version(variable: Option<&[u8]>) -> ProtocolVersion {
    let keys = variable.unwrap_or_default().split_str(":");
    let versions = keys.filter_map(|key| match key {
        b"version=1" => Some(ProtocolVersion::V1),
        b"version=2" => Some(ProtocolVersion::V2),
        _ => None,
    });
    versions.max().unwrap_or(ProtocolVersion::V0)
}

/// Opens the repository that `path` names, like Git's servers: at the path, or with one of the
/// usual suffixes, but never in a parent directory. `~` and `~USER` are expanded to home
/// directories.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if there is no repository, and with
/// [`ErrorKind::Unsafe`] if it belongs to another user (`safe.directory`).
pub fn find(path: &Path, environment: &Environment) -> Result<Repository> {
    PathRules {
        is_strict: false,
        checks_owner: true,
    }
    .find(path, environment)
}

/// Opens the repository at exactly `path` (`--strict`).
///
/// # Errors
/// The same as for [`find`].
pub fn find_strict(path: &Path, environment: &Environment) -> Result<Repository> {
    PathRules {
        is_strict: true,
        checks_owner: true,
    }
    .find(path, environment)
}

/// Opens the repository for `git upload-pack`: like [`find`], or at exactly `path` (`--strict`).
/// The repository may belong to any user, because a fetch runs no program that the repository
/// configures.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if there is no repository.
pub fn find_to_send(path: &Path, is_strict: bool, environment: &Environment) -> Result<Repository> {
    PathRules {
        is_strict,
        checks_owner: false,
    }
    .find(path, environment)
}

/// The rules by which a path is resolved.
struct PathRules {
    /// Whether only the exact path is tried.
    is_strict: bool,
    /// Whether a repository of another user is refused.
    checks_owner: bool,
}

impl PathRules {
    fn find(&self, path: &Path, environment: &Environment) -> Result<Repository> {
        let given = path.as_os_str().as_encoded_bytes();
        let found = match given.starts_with(b"~") && !self.is_strict {
            true => match crate::path::expand_user(given, environment.home()) {
                Some(expanded) => self.at(&expanded, environment)?,
                None => None,
            },
            false => self.at(path, environment)?,
        };
        found.ok_or_else(|| {
            let shown = crate::path::as_bytes(path);
            let message = format!("'{shown}' does not appear to be a git repository");
            Error::new(ErrorKind::NotARepository, message)
        })
    }

    fn at(&self, path: &Path, environment: &Environment) -> Result<Option<Repository>> {
        let mut environment = environment.clone();
        // Stored objects are sent without replacement, and only the path selects the repository.
        environment.set("GIT_NO_REPLACE_OBJECTS", "1");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
            environment.remove(name);
        }
        let path = path.as_os_str().as_encoded_bytes();
        let given = path.trim_end_with(|byte| byte == '/');
        let suffixes: &[&str] = match self.is_strict {
            true => &[""],
            false => &["/.git", "", ".git/.git", ".git"],
        };
        for suffix in suffixes {
            let mut candidate = [given, suffix.as_bytes()].concat();
            if candidate.is_empty() {
                // An empty path means the root directory, not the current one.
                candidate.extend(path.first());
            }
            let Some(found) = Repository::resolve_git_dir(candidate.as_bstr(), &environment)?
            else {
                continue;
            };
            let found = environment.absolute(&found);
            let file = environment.absolute(crate::path::borrow(&candidate));
            let real = std::fs::canonicalize(&found);
            let git_dir = real.as_deref().unwrap_or(&found);
            if self.checks_owner {
                let parts = safety::DiscoveredPaths {
                    git_file: file.is_file().then_some(&file),
                    work_tree: None,
                    git_dir,
                };
                safety::check_owner(&parts, &environment)?;
            }
            return Repository::open_served(git_dir, &environment).map(Some);
        }
        Ok(None)
    }
}

/// Writes the advertisement: the refs and capabilities of versions 0 and 1, or the capabilities of
/// version 2.
///
/// # Errors
/// Fails if refs or the configuration cannot be read, or `output` fails.
pub fn advertise(repository: &Repository, options: &Options, output: &mut dyn Write) -> Result<()> {
    support::require(repository, Operation::UploadPack)?;
    let settings = Settings::read(repository.config())?;
    let bytes = advertisement(repository, options, &settings)?;
    output
        .write_all(&bytes)
        .and_then(|()| output.flush())
        .map_err(unwritable)
}

fn advertisement(
    repository: &Repository,
    options: &Options,
    settings: &Settings,
) -> Result<Vec<u8>> {
    match options.version {
        ProtocolVersion::V2 => v2::advertisement(repository, options, settings),
        ProtocolVersion::V0 | ProtocolVersion::V1 => {
            v0::advertisement(repository, options, settings)
        }
    }
}

/// Serves the client: sends the [advertisement](advertise), unless the transport is stateless, and
/// answers the requests. Errors are sent to the client first, if the protocol permits that.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if the client violates the protocol or disconnects early, with
/// [`ErrorKind::Transport`] if the output fails, with [`ErrorKind::Interrupted`] if the operation
/// is interrupted, and with other kinds if an object cannot be read.
pub fn answer(
    repository: &Repository,
    options: &Options,
    streams: UploadStreams<'_>,
    watch: &Watch<'_>,
) -> Result<ConversationEnd> {
    support::require(repository, Operation::UploadPack)?;
    let UploadStreams { input, output } = streams;
    let version = match options.version {
        ProtocolVersion::V0 => "0",
        ProtocolVersion::V1 => "1",
        ProtocolVersion::V2 => "2",
    };
    pronto_io::data!("transfer", "negotiated-version", version);
    let mut session = UploadSession {
        repository,
        stored: repository,
        options,
        settings: Settings::read(repository.config())?,
        packets: PacketReader::new(input),
        request_bytes: 0,
        promisors: Vec::new(),
        out: output,
        interrupt: watch.interrupt(),
    };
    if !options.is_stateless {
        let greeting = advertisement(repository, options, &session.settings)?;
        session.write(&greeting)?;
    }
    match options.version {
        ProtocolVersion::V2 => session.commands(),
        ProtocolVersion::V0 | ProtocolVersion::V1 => session.one_fetch(),
    }
}

/// A packet from the client.
enum ClientPacket {
    Text(Vec<u8>),
    Flush,
    Delimiter,
    ResponseEnd,
    End,
}

impl UploadSession<'_> {
    fn view(&self) -> NamespaceView<'_> {
        NamespaceView {
            repository: self.repository,
            hidden: &self.settings.hidden,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(unwritable)
    }

    /// Sends the lines, and removes them from `lines`.
    fn send_lines(&mut self, lines: &mut UnsentLines) -> Result<()> {
        let bytes = std::mem::take(&mut lines.bytes);
        match bytes.is_empty() {
            true => Ok(()),
            false => self.write(&bytes),
        }
    }

    /// Reads the next packet.
    fn input(&mut self) -> Result<ClientPacket> {
        let Some(packet) = self.packets.next_or_end().map_err(from_client)? else {
            return Ok(ClientPacket::End);
        };
        if let (Packet::Data(payload), Some(budget)) = (&packet, &self.options.budget) {
            let charged = budget.charge((payload.len() + OVERHEAD_BYTES) as u64);
            charged.map_err(crate::exhausted)?;
        }
        let input = match packet {
            Packet::Data(_) => ClientPacket::Text(packet.text().unwrap_or_default().to_vec()),
            Packet::Flush => ClientPacket::Flush,
            Packet::Delimiter => ClientPacket::Delimiter,
            Packet::ResponseEnd => ClientPacket::ResponseEnd,
        };
        if let ClientPacket::Text(text) = &input {
            self.request_bytes += text.len() + 4;
        }
        match self.request_bytes > LARGEST_REQUEST_BYTES {
            true => Err(too_much()),
            false => Ok(input),
        }
    }

    /// Returns the repository with the history that is `cut` for the client; `None` if the client
    /// receives the complete history.
    fn view_of(&self, cut: &ShallowCut) -> Result<Option<Repository>> {
        if cut.commits.is_empty() {
            return Ok(None);
        }
        let own = self.repository.shallow_commits()?.iter().copied();
        let all = own.chain(cut.commits.iter().copied()).collect();
        self.stored.with_history_cut_at(all).map(Some)
    }

    /// Whether an object exists.
    fn is_present(&self, id: &ObjectId) -> Result<bool> {
        let store = self.repository.objects()?;
        store.contains(id).map_err(crate::objects::from_odb)
    }

    /// Records the session id of the client, if the server has sent its own
    /// (`transfer.advertiseSID`).
    fn record_client_session(&self, id: &[u8]) {
        if self.settings.session_id {
            let id = id.to_str_lossy();
            pronto_io::data!("transfer", "client-sid", &*id);
        }
    }
}

/// Returns the error for a client that violates the protocol, or requests an object that is not
/// allowed.
#[cold]
fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message.into())
}

#[cold]
fn hung_up() -> Error {
    broken("the remote end hung up unexpectedly")
}

#[cold]
fn too_much() -> Error {
    Error::new(ErrorKind::Refused, "the request of the client is too large")
}

#[cold]
fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Transport, "unable to write to the other side").because(error)
}
