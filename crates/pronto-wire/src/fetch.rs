//! Requests for a pack: wants, haves, and the negotiation.
//!
//! [`v2::FetchV2`] and [`v0::FetchV0`] implement the protocol versions. Both are used in the
//! same way and access no socket: write a request, then pass the packets of the response one by one
//! until the [next](NextStep) step is returned.

use bstr::BString;
use pronto_hash::{Kind, ObjectId, oid};

use crate::advertisement::{parse_id, unexpected};
use crate::error::{Error, ErrorKind};

pub mod common;
pub mod v0;
pub mod v2;

/// The depth that stands for the complete history (`--unshallow`).
pub const INFINITE_DEPTH: u32 = 0x7fff_ffff;

/// The wants of a fetch, and its options.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The wanted objects, without duplicates. Must not be empty unless `wanted_refs` is used.
    pub wants: Vec<ObjectId>,
    /// Refs of the remote side whose current objects are wanted (`want-ref`). Requires a server that
    /// [accepts](crate::client::FetchClient::accepts_refs) them.
    pub wanted_refs: Vec<BString>,
    /// Local commits that are sent as haves before those of the negotiator (`--negotiation-include`).
    pub includes: Vec<ObjectId>,
    /// The shallow commits of the local repository.
    pub shallow: Vec<ObjectId>,
    /// The new shallow boundary, if the history is deepened or shortened.
    pub deepen: Deepen,
    /// The object filter, in the form in which it is sent (`--filter`).
    pub filter: Option<BString>,
    /// Send annotated tags that point to sent objects (`include-tag`).
    pub include_tag: bool,
    /// Accept deltas against objects that the receiver has (`thin-pack`).
    pub thin_pack: bool,
    /// Suppress progress messages of the remote side (`no-progress`).
    pub no_progress: bool,
    /// Options for the server (`--server-option`).
    pub server_options: Vec<BString>,
    /// Whether each step of a negotiation in version 0 or 1 is reported to the progress (`--verbose`).
    pub reports_steps: bool,
}

/// The new shallow boundary. By default the boundary is not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deepen {
    /// The maximum number of commits from each want (`--depth`), or from the current shallow commits if
    /// `relative`.
    pub depth: Option<u32>,
    /// Whether `depth` is relative to the current shallow boundary (`--deepen`).
    pub relative: bool,
    /// The oldest committer date, in seconds since 1970 (`--shallow-since`).
    pub since: Option<i64>,
    /// Refs of the remote side whose history is excluded (`--shallow-exclude`).
    pub not: Vec<BString>,
}

impl Deepen {
    /// Returns whether the boundary is not changed.
    pub fn is_none(&self) -> bool {
        self.depth.is_none() && self.since.is_none() && self.not.is_empty()
    }
}

/// The changes of the shallow boundary by a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShallowUpdate {
    /// Commits that become shallow: their parents will be missing.
    pub shallow: Vec<ObjectId>,
    /// Commits that are not shallow any more.
    pub unshallow: Vec<ObjectId>,
}

impl ShallowUpdate {
    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.shallow.is_empty() && self.unshallow.is_empty()
    }

    /// Takes a line `shallow ID` or `unshallow ID`. Returns `false` for other lines.
    fn push(&mut self, line: &[u8], format: Kind) -> Result<bool, Error> {
        if let Some(id) = line.strip_prefix(b"shallow ") {
            self.shallow.push(parse_id(id, format)?);
        } else if let Some(id) = line.strip_prefix(b"unshallow ") {
            self.unshallow.push(parse_id(id, format)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// A ref that was requested by name, and its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRef {
    /// The full name of the ref.
    pub name: BString,
    /// The object to which the ref points.
    pub id: ObjectId,
}

/// The information that the remote side sends before the pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchInfo {
    /// The changes of the shallow boundary.
    pub shallow: ShallowUpdate,
    /// The objects of the refs that were requested by name.
    pub wanted_refs: Vec<WantedRef>,
}

/// A negotiator, which selects the haves to offer (`fetch.negotiationAlgorithm`).
pub trait Negotiator {
    /// Returns the next have, or `None` if there are no more.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Local`] if a commit cannot be read.
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error>;

    /// Records that the remote side has `id`. Returns whether this was known before.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Local`] if a commit cannot be read.
    fn acknowledge(&mut self, id: &oid) -> Result<bool, Error>;
}

/// A negotiator without haves, for a clone (`fetch.negotiationAlgorithm=noop`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Negotiator for Nothing {
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error> {
        Ok(None)
    }

    fn acknowledge(&mut self, _id: &oid) -> Result<bool, Error> {
        Ok(true)
    }
}

/// The next step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Receive another packet.
    Receive,
    /// Write another request.
    Send,
    /// Receive the pack, which follows.
    Pack {
        /// Whether the pack is sent in a side band.
        sideband: bool,
    },
}

/// The number of haves without an acknowledgement, after the first common commit, at which the
/// negotiation is given up.
const MAX_IN_VAIN: usize = 256;
const FIRST_HAVES: usize = 16;

/// Returns the number of haves in the round after one of `count`, if each round is a separate request.
fn next_stateless(count: usize) -> usize {
    const LARGE: usize = 16_384;
    if count < LARGE {
        count * 2
    } else {
        count * 11 / 10
    }
}

/// Returns the number of haves in the round after one of `count`, if both sides write into pipes of
/// limited size.
fn next_stateful(count: usize) -> usize {
    const PIPE_SAFE: usize = 32;
    if count < PIPE_SAFE {
        count * 2
    } else {
        count + PIPE_SAFE
    }
}

/// One acknowledgement of haves.
enum Acknowledgment {
    /// No common commit in this round.
    Nak,
    /// The final acknowledgement in versions 0 and 1.
    Final(ObjectId),
    /// A common commit; further haves are expected.
    Common(ObjectId),
    /// The server has enough common commits to create the pack.
    Ready(Option<ObjectId>),
}

fn parse_acknowledgment(line: &[u8], format: Kind) -> Result<Acknowledgment, Error> {
    if line == b"NAK" {
        return Ok(Acknowledgment::Nak);
    }
    if line == b"ready" {
        return Ok(Acknowledgment::Ready(None));
    }
    let rest = line.strip_prefix(b"ACK ").ok_or_else(|| unexpected(line))?;
    let end = rest
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(rest.len());
    let id = parse_id(&rest[..end], format)?;
    match &rest[end..] {
        b"" => Ok(Acknowledgment::Final(id)),
        b" ready" => Ok(Acknowledgment::Ready(Some(id))),
        b" common" | b" continue" => Ok(Acknowledgment::Common(id)),
        _ => Err(unexpected(line)),
    }
}

fn unsupported(message: &str) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}
