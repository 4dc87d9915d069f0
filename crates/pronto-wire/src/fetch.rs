//! Requesting a pack: wants, haves, and the negotiation.
//!
//! [`v2::Conversation`] and [`v0::Conversation`] implement the protocol versions. Both are used in
//! the same way and access no socket: write a request, then pass in the packets of the response one
//! by one until the [next](Next) step is returned.

use bstr::BString;
use pronto_hash::{Kind, ObjectId, oid};

use crate::advertisement::{parse_id, unexpected};
use crate::error::{Error, ErrorKind};

pub mod common;
pub mod v0;
pub mod v2;

/// The depth that means the whole history (`--unshallow`).
pub const INFINITE_DEPTH: u32 = 0x7fff_ffff;

/// The objects to fetch, and the options of the fetch.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Objects that are wanted, each once; not empty unless refs are wanted.
    pub wants: Vec<ObjectId>,
    /// Refs of the other side whose objects are wanted, whatever they are by now; for a side that
    /// [accepts](crate::client::Client::accepts_refs) them.
    pub wanted_refs: Vec<BString>,
    /// Commits that are here, which are named before those of the negotiator.
    pub includes: Vec<ObjectId>,
    /// Commits at which the history here is cut off.
    pub shallow: Vec<ObjectId>,
    /// The new shallow boundary, if the history is to be cut.
    pub deepen: Deepen,
    /// Which objects to leave out (`blob:none`), as the other side understands it.
    pub filter: Option<BString>,
    /// Send tags that point at what is sent.
    pub include_tag: bool,
    /// Deltas may be against objects that are here already.
    pub thin_pack: bool,
    /// The other side shall not report its progress.
    pub no_progress: bool,
    /// Values for the other side's hooks (`--server-option`).
    pub server_options: Vec<BString>,
    /// Whether each step of a negotiation in version 0 or 1 is told to the progress.
    pub tells_steps: bool,
}

/// The new shallow boundary. By default the history is not cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deepen {
    /// The maximum number of commits from each want, or from the present shallow commits if
    /// `relative`.
    pub depth: Option<u32>,
    /// `depth` counts from the present cut.
    pub relative: bool,
    /// Nothing older than this, in seconds since the epoch.
    pub since: Option<i64>,
    /// Nothing that can be reached from these references of the other side.
    pub not: Vec<BString>,
}

impl Deepen {
    /// Whether nothing is to be cut.
    pub fn is_none(&self) -> bool {
        self.depth.is_none() && self.since.is_none() && self.not.is_empty()
    }
}

/// The changes of the shallow boundary by a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShallowUpdate {
    /// Commits whose parents will be missing.
    pub shallow: Vec<ObjectId>,
    /// Commits whose parents are no longer missing.
    pub unshallow: Vec<ObjectId>,
}

impl ShallowUpdate {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.shallow.is_empty() && self.unshallow.is_empty()
    }

    /// Takes `shallow ID` or `unshallow ID`; whether the line was one of them.
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

/// A ref that was wanted by its name, and the object that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRef {
    /// The full name.
    pub name: BString,
    /// The object.
    pub id: ObjectId,
}

/// The information of the other side that precedes a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// The changes of the shallow boundary.
    pub shallow: ShallowUpdate,
    /// The objects of the refs that were wanted by name.
    pub wanted_refs: Vec<WantedRef>,
}

/// Finds out what both sides have.
pub trait Negotiator {
    /// Returns the next local object that the other side may have, or `None` if there are no more.
    ///
    /// # Errors
    /// The search fails.
    fn next_have(&mut self) -> Result<Option<ObjectId>, Error>;

    /// Records that the other side has `id`. Returns whether that was known.
    ///
    /// # Errors
    /// It cannot be recorded.
    fn acknowledge(&mut self, id: &oid) -> Result<bool, Error>;
}

/// A negotiator without commits: for a clone.
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
pub enum Next {
    /// Another packet.
    Receive,
    /// To write another request.
    Send,
    /// Nothing more: the pack follows.
    Pack {
        /// Whether it comes in side bands.
        sideband: bool,
    },
}

/// The number of haves without an acknowledgement, after the first common commit, at which
/// negotiation ends.
const MAX_IN_VAIN: usize = 256;
const FIRST_HAVES: usize = 16;

/// Returns the number of haves in the round after one of `count`, if each round costs a request.
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

/// One answer to the haves.
enum Acknowledgment {
    /// Nothing common in this round.
    Nak,
    /// The last word in versions 0 and 1.
    Final(ObjectId),
    /// Common, and more haves are welcome.
    Common(ObjectId),
    /// Enough is known to make a pack.
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
