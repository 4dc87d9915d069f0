//! The server of a fetch: the other side of `gitprotocol-pack(5)` and `gitprotocol-v2(5)`.
//!
//! It handles common clones and fetches. For other requests (shallow history, filters, namespaces,
//! hooks) [another server](relay) takes over within the conversation, from that request on.
//!
//! Costs of a full clone: refs are read once, commits and trees once (or bitmaps), and the content
//! of a single pack is sent from its map without a copy: 16 packets with one system call.

mod common;
pub mod hidden;
pub mod relay;
mod send;
mod v0;
mod v2;

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::Version;
use pronto_wire::pktline::{self, Packet};
use pronto_wire::reader::PacketReader;

use crate::refs::Broken;
use crate::refs::name::{Form, is_valid};
use crate::remote::connection::from_wire;
use crate::{Environment, Error, ErrorKind, Repository, Result};
use pronto_config::safety;

use hidden::Hidden;
pub use send::CORRUPTION;

/// The largest size of one request; a larger one is refused.
const LARGEST_REQUEST_BYTES: usize = 256 << 20;

/// The end of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The other side has all it asked for.
    Served,
    /// The client sent a request that is not supported, with these bytes, which were read and not
    /// answered.
    Unanswered(Vec<u8>),
}

/// A reference as the other side sees it.
#[derive(Clone, Debug)]
struct Shown {
    name: BString,
    /// `None` for a `HEAD` whose branch is not born.
    id: Option<ObjectId>,
    symbolic: Option<BString>,
    peeled: Option<ObjectId>,
}

/// One conversation.
struct Session<'a> {
    repository: &'a Repository,
    packets: PacketReader<&'a mut (dyn Read + 'a)>,
    out: &'a mut (dyn Write + Send + 'a),
    watch: &'a Watch<'a>,
    hidden: Hidden,
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

/// Finds the repository that `path` stands for, like `git upload-pack`: at the path, or with one of
/// the usual suffixes; never one above it.
///
/// # Errors
/// There is none, or it may not be used because it belongs to another user.
pub fn find(path: &Path, environment: &Environment) -> Result<Repository> {
    let mut environment = environment.clone();
    // What is stored is sent, and the path says which repository is meant.
    environment.set("GIT_NO_REPLACE_OBJECTS", "1");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        environment.remove(name);
    }
    let given = environment.absolute(path);
    let given = given.as_os_str().as_encoded_bytes();
    let given = given.trim_end_with(|byte| byte == '/');
    for ending in ["/.git", "", ".git/.git", ".git"] {
        let candidate = [given, ending.as_bytes()].concat();
        let Some(found) = Repository::resolve_git_dir(candidate.as_bstr(), &environment)? else {
            continue;
        };
        let file = crate::path::borrow(&candidate);
        let real = std::fs::canonicalize(&found);
        let git_dir = real.as_deref().unwrap_or(&found);
        let parts = safety::Found {
            git_file: file.is_file().then_some(file),
            work_tree: None,
            git_dir,
        };
        safety::check_owner(&parts, &environment)?;
        return Repository::open(git_dir, &environment);
    }
    let shown = crate::path::as_bytes(path);
    let message = format!("'{shown}' does not appear to be a git repository");
    Err(Error::new(ErrorKind::NotARepository, message))
}

/// Whether `repository` can be served natively: not if its history is shallow or changed by
/// replacements or grafts, objects are omitted on purpose (partial clone), a namespace is set, or a
/// setting requires git (`uploadpack.packObjectsHook`, `uploadpack.allowRefInWant`,
/// `transfer.advertiseSID`).
///
/// # Errors
/// The files that say so cannot be read.
pub fn can_serve(repository: &Repository) -> Result<bool> {
    let config = repository.config();
    Ok(repository.has_plain_history()?
        && !repository.objects()?.has_replacements()
        && repository.environment().get("GIT_NAMESPACE").is_none()
        && !config.contains("uploadpack.packobjectshook")
        && !repository.has_promisor()?
        && !config.bool_or("transfer.advertisesid", false)?
        && !config.bool_or("uploadpack.allowrefinwant", false)?)
}

/// Serves the client until its request is complete. `input` is read in large pieces, `output` need
/// not be buffered. Errors are sent to the client first.
///
/// # Errors
/// The other side violates the protocol or requests a missing object, an object cannot be read, the
/// connection breaks, or it was interrupted.
pub fn serve(
    repository: &Repository,
    input: &mut dyn Read,
    output: &mut (dyn Write + Send),
    version: Version,
    watch: &Watch<'_>,
) -> Result<Ended> {
    let mut session = Session {
        repository,
        packets: PacketReader::new(input),
        out: output,
        watch,
        hidden: Hidden::configured(repository.config()),
    };
    match version {
        Version::V2 => session.commands(),
        Version::V0 | Version::V1 => session.advertise_and_serve(version == Version::V1),
    }
}

impl Session<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(unwritable)
    }

    /// Reports an error in its request to the other side.
    fn refuse<T>(&mut self, message: String) -> Result<T> {
        let mut out = Vec::new();
        let line = format!("ERR upload-pack: {message}");
        pktline::write(&mut out, line.as_bytes()).map_err(from_wire)?;
        self.write(&out)?;
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// The next packet as a line, `None` for what is none; and its bytes go to `raw`.
    fn line(&mut self, raw: &mut Vec<u8>) -> Result<Line> {
        if raw.len() > LARGEST_REQUEST_BYTES {
            let message = "the other side asks for too much at once";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let Some(packet) = self.packets.next_or_end().map_err(from_wire)? else {
            return Ok(Line::End);
        };
        Ok(match packet {
            Packet::Data(payload) => {
                pktline::write(raw, payload).map_err(from_wire)?;
                Line::Text(packet.text().unwrap_or_default().to_vec())
            }
            Packet::Flush => {
                pktline::write_flush(raw);
                Line::Flush
            }
            Packet::Delimiter => {
                pktline::write_delimiter(raw);
                Line::Delimiter
            }
            Packet::ResponseEnd => {
                let message = "protocol error: unexpected packet in a request";
                return Err(Error::new(ErrorKind::Transport, message));
            }
        })
    }

    /// All bytes that were read and not answered.
    fn unanswered(&mut self, mut raw: Vec<u8>) -> Result<Ended> {
        if self.packets.has_buffered() {
            let rest = self.packets.raw().map_err(from_wire)?;
            raw.extend_from_slice(rest);
        }
        Ok(Ended::Unanswered(raw))
    }

    /// The references that are shown, `HEAD` first, those below one of `prefixes` if there are any.
    fn shown(&self, prefixes: &[Vec<u8>], peel: bool) -> Result<Vec<Shown>> {
        let mut found = Vec::new();
        let is_wanted = |name: &[u8]| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        if is_wanted(b"HEAD") && !self.hidden.hides(b"HEAD".into()) {
            found.extend(self.head()?);
        }
        let refs = self.repository.refs();
        refs.for_each_or_broken("refs/", |reference| {
            let shown = match reference {
                Ok(reference) => Shown {
                    name: reference.name.to_owned(),
                    id: Some(reference.id),
                    symbolic: reference.symbolic.map(|name| name.clone().into_inner()),
                    peeled: reference.peeled,
                },
                // As in Git the other side learns that it is broken.
                Err(Broken::Contents(name))
                    if is_valid(name, Form::Full) && !refs.is_symbolic(name) =>
                {
                    Shown {
                        name: name.to_owned(),
                        id: Some(self.repository.object_hash().null()),
                        symbolic: None,
                        peeled: None,
                    }
                }
                Err(_) => return Ok(ControlFlow::Continue(())),
            };
            if is_wanted(&shown.name) && !self.hidden.hides(shown.name.as_bstr()) {
                found.push(shown);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if peel {
            let tags = found
                .iter_mut()
                .filter(|found| found.id.is_some_and(|id| !id.is_null()));
            for reference in tags {
                if let (Some(id), None) = (reference.id, reference.peeled) {
                    reference.peeled = self.repository.peel_tag(id)?;
                }
            }
        }
        Ok(found)
    }

    fn head(&self) -> Result<Option<Shown>> {
        let Some(head) = self.repository.refs().find("HEAD")? else {
            return Ok(None);
        };
        let symbolic = match &head.target {
            crate::refs::Target::Symbolic(name) => Some(name.clone().into_inner()),
            _ => None,
        };
        Ok(Some(Shown {
            name: "HEAD".into(),
            id: self.repository.refs().id_of("HEAD")?,
            symbolic,
            peeled: None,
        }))
    }

    /// Whether an object is here.
    fn present(&self, id: &ObjectId) -> Result<bool> {
        let store = self.repository.objects()?;
        store.contains(id).map_err(crate::objects::from_odb)
    }
}

enum Line {
    Text(Vec<u8>),
    Flush,
    Delimiter,
    End,
}

/// The id in a line like `want ID`; what follows it is left out.
fn id_in(rest: &[u8]) -> Result<ObjectId> {
    let hex = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
    ObjectId::from_hex(hex).map_err(|_| {
        let message = format!(
            "git upload-pack: protocol error, expected an id, got '{}'",
            rest.as_bstr()
        );
        Error::new(ErrorKind::Transport, message)
    })
}

#[cold]
fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Transport, "unable to write to the other side").because(error)
}
