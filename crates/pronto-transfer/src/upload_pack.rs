//! The server of a fetch: the other side of `gitprotocol-pack(5)` and `gitprotocol-v2(5)`.
//!
//! It takes bytes from any `Read` and gives bytes to any `Write`: [`answer`] serves a whole
//! conversation on a pipe, or one request of a stateless transport, for which [`advertise`] makes
//! the first response. No process is started, unless `uploadpack.packObjectsHook` names one.
//!
//! Costs of a full clone: refs are read once, commits and trees once (or bitmaps), and the content
//! of a single pack is sent from its map without a copy: 16 packets with one system call.

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
use pronto_io::budget::Budget;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::Version;
use pronto_wire::capabilities::AGENT;
use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;

use crate::enter::from_client;
use crate::support::{self, Operation};
use crate::{Environment, Error, ErrorKind, Repository, Result};
use pronto_config::safety;

pub use cache::{ListingCache, ListingKey, PackCache, PackKey};
use cut::Cut;
pub use packed::{BundleSource, PackedBundle, may_have_packed_bundle, packed_bundle};
pub use pronto_odb::packing::Counts;
pub use selections::Selections;
use settings::Settings;
use shown::View;
pub use v2::{MOST_PREFIX_BYTES, MOST_PREFIXES};
use writer::Lines;

/// The largest size of one request; a larger one is refused.
const LARGEST_REQUEST_BYTES: usize = 256 << 20;

/// The memory that an argument takes beside its bytes.
const OVERHEAD_BYTES: usize = 64;

/// More ids than these in one request are refused.
pub const MOST_IDS: usize = 4 << 20;

/// The form of a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The version of the protocol: see [`requested_version`].
    pub version: Version,
    /// Whether the transport is stateless (HTTP): [`answer`] reads one request, and nothing is
    /// advertised before it.
    pub is_stateless: bool,
    /// Whether a client without side band gets no progress on the error output.
    pub is_daemon: bool,
    /// The name of this server (`agent=`).
    pub agent: BString,
    /// The id of this session, advertised with `transfer.advertiseSID`.
    pub session_id: Option<BString>,
    /// The packs that equal requests share; each is made for one request without.
    pub packs: Option<Arc<dyn PackCache>>,
    /// The selections of objects that equal requests share; each is made for one request without.
    pub selections: Option<Arc<Selections>>,
    /// The lists of refs that equal requests share.
    pub listings: Option<Arc<dyn ListingCache>>,
    /// The path of the repository that this one is a view of; `None` if it is no view. The refs of a view never change,
    /// so that the path of the view identifies their state, and lists of refs are found without reading the refs.
    pub view_of: Option<PathBuf>,
    /// The memory that the arguments of a request may take, charged before they are kept.
    pub budget: Option<Arc<Budget>>,
    /// The bundles from which clones may start, unless the configuration of the repository says which
    /// (`uploadpack.advertiseBundleURIs`).
    pub bundles: Option<Arc<dyn BundleSource>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: Version::V0,
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

/// The bytes of both sides.
pub struct Streams<'a> {
    /// Is read in large pieces.
    pub input: &'a mut dyn Read,
    /// Need not be buffered.
    pub output: &'a mut (dyn Write + Send),
}

/// The end of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client has all it asked for.
    Served,
    /// The client wants something that it may not have, and was told so. The message is for the
    /// log of the server.
    Refused(BString),
    /// The pack could not be made, and the client was told so. The text is what Git prints.
    Aborted(BString),
}

/// One conversation.
struct Session<'a> {
    repository: &'a Repository,
    /// The same without grafts, which count in the negotiation only.
    stored: &'a Repository,
    options: &'a Options,
    settings: Settings,
    packets: PacketReader<&'a mut (dyn Read + 'a)>,
    /// The number of bytes of the current request that were read.
    request_bytes: usize,
    /// The names of the promisor remotes that the client can use.
    promisors: Vec<BString>,
    out: &'a mut (dyn Write + Send + 'a),
    interrupt: &'a Interrupt,
}

/// Returns the version that `GIT_PROTOCOL` requests: the highest known one.
pub fn requested_version(variable: Option<&[u8]>) -> Version {
    let keys = variable.unwrap_or_default().split_str(":");
    let versions = keys.filter_map(|key| match key {
        b"version=1" => Some(Version::V1),
        b"version=2" => Some(Version::V2),
        _ => None,
    });
    versions.max().unwrap_or(Version::V0)
}

/// Finds the repository that `path` stands for, like Git's servers: at the path, or with one of
/// the usual suffixes; never one above it. `~` and `~USER` stand for home directories.
///
/// # Errors
/// There is none, or it may not be used because it belongs to another user (`safe.directory`).
pub fn find(path: &Path, environment: &Environment) -> Result<Repository> {
    Search {
        is_strict: false,
        checks_owner: true,
    }
    .find(path, environment)
}

/// Finds the repository at exactly `path` (`--strict`).
///
/// # Errors
/// As [`find`].
pub fn find_strict(path: &Path, environment: &Environment) -> Result<Repository> {
    Search {
        is_strict: true,
        checks_owner: true,
    }
    .find(path, environment)
}

/// Finds the repository for `git upload-pack`: as [`find`], or at exactly `path` (`--strict`). It may belong
/// to any user, because a fetch runs no program that the repository names.
///
/// # Errors
/// There is none.
pub fn find_to_send(path: &Path, is_strict: bool, environment: &Environment) -> Result<Repository> {
    Search {
        is_strict,
        checks_owner: false,
    }
    .find(path, environment)
}

/// The rules by which a path is resolved.
struct Search {
    /// The path is taken as it is.
    is_strict: bool,
    /// A repository of another user is refused.
    checks_owner: bool,
}

impl Search {
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
        // What is stored is sent, and the path says which repository is meant.
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
                // The root directory, not the current one.
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
                let parts = safety::Found {
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

/// Writes what the server offers: the refs of versions 0 and 1, or the capabilities of version 2.
///
/// # Errors
/// References or the configuration cannot be read, or `output` fails.
pub fn advertise(repository: &Repository, options: &Options, output: &mut dyn Write) -> Result<()> {
    support::require(Operation::UploadPack, repository)?;
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
        Version::V2 => v2::advertisement(repository, options, settings),
        Version::V0 | Version::V1 => v0::advertisement(repository, options, settings),
    }
}

/// Serves the client: [`advertises`](advertise), unless the transport is stateless, and answers its
/// requests. Errors are sent to the client first, where the protocol has a way.
///
/// # Errors
/// The client violates the protocol, an object cannot be read, the connection breaks, or the
/// operation was interrupted.
pub fn answer(
    repository: &Repository,
    options: &Options,
    streams: Streams<'_>,
    watch: &Watch<'_>,
) -> Result<Ended> {
    support::require(Operation::UploadPack, repository)?;
    let Streams { input, output } = streams;
    let version = match options.version {
        Version::V0 => "0",
        Version::V1 => "1",
        Version::V2 => "2",
    };
    pronto_io::data!("transfer", "negotiated-version", version);
    let mut session = Session {
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
        Version::V2 => session.commands(),
        Version::V0 | Version::V1 => session.one_fetch(),
    }
}

/// A packet from the client.
enum Input {
    Text(Vec<u8>),
    Flush,
    Delimiter,
    ResponseEnd,
    End,
}

impl Session<'_> {
    fn view(&self) -> View<'_> {
        View {
            repository: self.repository,
            hidden: &self.settings.hidden,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(unwritable)
    }

    /// Sends the lines, and forgets them.
    fn send_lines(&mut self, lines: &mut Lines) -> Result<()> {
        let bytes = std::mem::take(&mut lines.bytes);
        match bytes.is_empty() {
            true => Ok(()),
            false => self.write(&bytes),
        }
    }

    /// The next packet.
    fn input(&mut self) -> Result<Input> {
        let Some(packet) = self.packets.next_or_end().map_err(from_client)? else {
            return Ok(Input::End);
        };
        if let (Packet::Data(payload), Some(budget)) = (&packet, &self.options.budget) {
            let charged = budget.charge((payload.len() + OVERHEAD_BYTES) as u64);
            charged.map_err(crate::exhausted)?;
        }
        let input = match packet {
            Packet::Data(_) => Input::Text(packet.text().unwrap_or_default().to_vec()),
            Packet::Flush => Input::Flush,
            Packet::Delimiter => Input::Delimiter,
            Packet::ResponseEnd => Input::ResponseEnd,
        };
        if let Input::Text(text) = &input {
            self.request_bytes += text.len() + 4;
        }
        match self.request_bytes > LARGEST_REQUEST_BYTES {
            true => Err(too_much()),
            false => Ok(input),
        }
    }

    /// The history that a client gets for which it is `cut`; `None` if that is the whole.
    fn view_of(&self, cut: &Cut) -> Result<Option<Repository>> {
        if cut.commits.is_empty() {
            return Ok(None);
        }
        let own = self.repository.shallow_commits()?.iter().copied();
        let all = own.chain(cut.commits.iter().copied()).collect();
        self.stored.with_history_cut_at(all).map(Some)
    }

    /// Whether an object is here.
    fn is_present(&self, id: &ObjectId) -> Result<bool> {
        let store = self.repository.objects()?;
        store.contains(id).map_err(crate::objects::from_odb)
    }

    /// Records the id that the client gave its session, if the server told its own.
    fn record_client_session(&self, id: &[u8]) {
        if self.settings.session_id {
            let id = id.to_str_lossy();
            pronto_io::data!("transfer", "client-sid", &*id);
        }
    }
}

/// The client violates the protocol, or wants what it may not have.
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
    Error::new(ErrorKind::Refused, "the client asks for too much at once")
}

#[cold]
fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Transport, "unable to write to the other side").because(error)
}
