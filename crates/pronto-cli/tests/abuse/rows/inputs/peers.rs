//! Netsync frames: each kind and field at its bound, above it, far above it, and stalled, from a
//! stranger, from peers with read access, and from a peer with write access.

mod catalogue;

use std::collections::BTreeSet;
use std::path::PathBuf;

use pronto_netsync::frame::FrameType;
use pronto_netsync::message::{
    CompleteTips, SegmentKind, SegmentStart, TransferPlan, TransferRole, WantMessage,
};
use pronto_peer::{KeyPair, KnownPeer, KnownPeers, NetsyncAddress, Roles};

use super::{Amount, BASE_TIME, VERBOSE, Who, stays_below};
use crate::document::{Bound, bounds};
use crate::meter::{Cost, Meter};
use crate::peer::{End, IGNORED, Talk, UNKNOWN, answer, frame, hello, known};
use crate::rows::Table;
use crate::rows::access::netsync::{address, home, serve};
use crate::stage::{Stage, Verdict, require};
use catalogue::catalogue;

/// The state of a session at which an input is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// Nothing has been sent.
    Start,
    /// Both sides have sent their greetings.
    Greeted,
    /// The greeting was accepted, and refs are compared.
    Refs,
    /// The differing refs are known.
    Settled,
    /// The server knows the refs of the peer.
    Cut,
    /// Commits are compared.
    Commits,
    /// The peer wants and offers nothing.
    Idle,
    /// The server expects the objects that it wants.
    Wanted,
    /// The peer has announced the amount of its data.
    Planned,
    /// A segment with these numbers of objects and bytes has started.
    Segment(u64, u64),
}

impl Point {
    /// Returns whether only a peer with write permission can reach the state.
    fn needs_write(self) -> bool {
        matches!(self, Point::Wanted | Point::Planned | Point::Segment(..))
    }
}

/// The expected response to an input.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// A frame of this type, in a session that continues.
    Frame(FrameType),
    /// No response. The server refuses a following frame of an unknown type.
    Nothing,
    /// An error whose text contains these words.
    Refused(&'static str),
    /// The server closes the connection.
    Closed,
}

impl Expected {
    fn fits(&self, end: &End) -> bool {
        match (self, end) {
            (Expected::Frame(kind), End::Frame(found)) => *kind as u8 == *found,
            (Expected::Nothing, End::Refused(text)) => text.contains("unknown frame type 127"),
            (Expected::Refused(words), End::Refused(text)) => text.contains(words),
            (Expected::Closed, End::Closed) => true,
            _ => false,
        }
    }
}

/// The state of a session, for inputs that depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) repository: &'static str,
    /// The number of refs that the server has listed.
    pub(super) listed: u64,
    /// The names of these refs, sorted.
    pub(super) names: Vec<Vec<u8>>,
    pub(super) gives: bool,
}

impl Known {
    fn of(peer: Peer) -> Self {
        Known {
            repository: peer.who.repository(),
            gives: peer.pushes,
            ..Known::default()
        }
    }
}

/// A function that makes the frames of an input of a size.
type Make = Box<dyn Fn(&Known, usize) -> Vec<u8> + Send + Sync>;

/// A function that returns the state for an input of a size.
type PointOf = Box<dyn Fn(usize) -> Point + Send + Sync>;

/// An input of netsync.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) bound: &'static str,
    /// The bound, if it differs from that of the document.
    pub(super) size: Option<usize>,
    pub(super) point: PointOf,
    pub(super) far: usize,
    pub(super) at: Expected,
    pub(super) past: Expected,
    pub(super) make: Make,
}

/// The kinds of peers: with an unknown key, with read permission, with read permission and a
/// request to push, and with write permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    who: Who,
    pushes: bool,
}

const PEERS: &[Peer] = &[
    peer(Who::Stranger, false),
    peer(Who::Stranger, true),
    peer(Who::Reader, false),
    peer(Who::Reader, true),
    peer(Who::Writer, false),
    peer(Who::Writer, true),
];

const fn peer(who: Who, pushes: bool) -> Peer {
    Peer { who, pushes }
}

impl Peer {
    fn key(self) -> &'static str {
        self.who.user().unwrap_or("anonymous")
    }

    fn may(self) -> bool {
        !self.pushes || self.who == Who::Writer
    }

    fn role(self) -> TransferRole {
        match self.pushes {
            true => TransferRole::Both,
            false => TransferRole::Sink,
        }
    }
}

/// A function that returns whether a state belongs to a row.
type IsOfGroup = fn(Point) -> bool;

/// Adds the rows, one for each group of states.
pub(super) fn rows(table: &mut Table) {
    let reason = "a store is not served by netsync";
    let groups: &[(&str, IsOfGroup)] = &[
        ("netsync-greetings", |point| matches!(point, Point::Start)),
        ("netsync-refs", |point| {
            matches!(point, Point::Greeted | Point::Refs)
        }),
        ("netsync-wishes", |point| {
            matches!(
                point,
                Point::Settled | Point::Cut | Point::Commits | Point::Idle
            )
        }),
        ("netsync-segments", Point::needs_write),
    ];
    table.row_on_disk("netsync-memory", reason, memory);
    for (name, is_of_group) in groups {
        table.row_on_disk(name, reason, move |stage| judge(stage, *is_of_group));
    }
}

/// Uses up the memory of all sessions with idle sessions. The server must give the memory to other
/// sessions.
fn memory(stage: &mut Stage) -> Verdict {
    stage.alone();
    stage.set("[netsync]\nmemory_bytes = 134217728\nlisten = [\"127.0.0.1:0\"]");
    stage.limits("failures_per_minute = 100000");
    stage.most_mebibytes = 320;
    let site = Served::start(stage);
    let stranger = peer(Who::Stranger, false);
    let (mut holder, state) = site.reach(stranger, Point::Refs)?;
    require(state.is_ok(), || format!("{state:?}"))?;
    holder.send(&catalogue::differences(24 << 20));
    // Strangers of one network have a part of the places, so these wait.
    let wait = |_| {
        let mut body = Vec::new();
        hello(stranger.who.repository(), stranger.role()).write(&mut body);
        let mut talk = site.open(stranger);
        talk.send(&known(FrameType::Hello, &body));
        talk
    };
    let _waiting: Vec<Talk> = (0..8).map(wait).collect();
    let (_, state) = site.reach(peer(Who::Writer, true), Point::Wanted)?;
    require(state.is_ok(), || format!("a user has no room: {state:?}"))
}

/// Returns the names of the bounds that have inputs here.
pub(super) fn names() -> Vec<&'static str> {
    catalogue().iter().map(|input| input.bound).collect()
}

/// Requires that every kind of frame has an input.
pub(super) fn every_kind_has_an_input() -> Verdict {
    let (state, bounds) = (Known::default(), bounds());
    let firsts = catalogue().into_iter().filter_map(|input| {
        let bound = bounds.iter().find(|bound| bound.input == input.bound)?;
        let limit = input.size.unwrap_or(bound.count).min(1 << 16);
        (input.make)(&state, limit + 1).get(4).copied()
    });
    let firsts: Vec<u8> = firsts.collect();
    for kind in 1..IGNORED {
        let is_known = FrameType::from_byte(kind).is_some();
        let sent = firsts.contains(&kind);
        require(!is_known || sent, || {
            format!("no input begins with a frame of type {kind}")
        })?;
    }
    Ok(())
}

/// Runs the inputs of a group with one server, and checks the responses.
fn judge(stage: &mut Stage, is_of_group: fn(Point) -> bool) -> Verdict {
    stage.alone();
    stage.limits("stall_seconds = 2\nhead_seconds = 5\nfailures_per_minute = 100000");
    let bounds = bounds();
    let inputs: Vec<Input> = catalogue()
        .into_iter()
        .filter(|input| is_of_group((input.point)(1)))
        .collect();
    // A blob from a delta is made in a file, whose pages count as memory while they are mapped.
    stage.most_mebibytes = 256;
    let site = Served::start(stage);
    for input in &inputs {
        let bound = bounds.iter().find(|bound| bound.input == input.bound);
        let bound = bound.ok_or_else(|| format!("there is no bound '{}'", input.bound))?;
        for peer in PEERS.iter().copied() {
            exceed(&site, input, bound, peer)
                .map_err(|problem| format!("{}: {peer:?}: {problem}", input.name))?;
        }
    }
    stall(stage, &site, &inputs, &bounds)
}

/// A server, and the keys of its peers.
struct Served {
    process: u32,
    address: NetsyncAddress,
    trusted: KnownPeers,
    keys: PathBuf,
}

/// Returns a list of trusted peers with the key of the server.
fn trust(stage: &Stage, address: &NetsyncAddress) -> KnownPeers {
    let key = |who| home(&stage.site, who).join(".config/pronto/netsync/key");
    let server = KeyPair::read(&key("server")).expect("a key");
    let list = stage.site.path("peers/known_peers");
    let trusted = KnownPeers::change(&list, |known| {
        known.trust(KnownPeer {
            name: "desk".to_owned(),
            key: server.public(),
            roles: Roles::parse("read,write").expect("roles"),
            address: Some(format!("{}:{}", address.host, address.port)),
            globs: pronto_netsync::message::Globs::default(),
        })
    });
    trusted.expect("it is written");
    KnownPeers::read(&list).expect("as written")
}

impl Served {
    /// Starts a netsync server with the keys of its users.
    fn start(stage: &mut Stage) -> Self {
        serve(stage);
        let address = NetsyncAddress {
            host: "127.0.0.1".to_owned(),
            port: address(stage).port(),
            path: Vec::new(),
        };
        Served {
            process: stage.server().id(),
            trusted: trust(stage, &address),
            address,
            keys: home(&stage.site, ""),
        }
    }

    fn open(&self, peer: Peer) -> Talk {
        let path = self
            .keys
            .join(peer.key())
            .join(".config/pronto/netsync/key");
        let key = KeyPair::read(&path).expect("a key");
        Talk::open(&self.address, &key, &self.trusted)
    }

    /// Brings a session to a state. Returns the state, or the end of the session if it ends
    /// earlier.
    fn reach(&self, peer: Peer, point: Point) -> Result<(Talk, Result<Known, End>), String> {
        let mut talk = self.open(peer);
        let mut state = Known::of(peer);
        if point == Point::Start {
            return Ok((talk, Ok(state)));
        }
        match talk.greet(&hello(state.repository, peer.role()))? {
            Ok(names) => (state.listed, state.names) = (names.len() as u64, names),
            Err(end) => return Ok((talk, Err(end))),
        }
        if point == Point::Greeted {
            return Ok((talk, Ok(state)));
        }
        talk.accept();
        if point == Point::Refs {
            return Ok((talk, Ok(state)));
        }
        let lacks = matches!(point, Point::Settled | Point::Cut | Point::Commits);
        let gifts = match point.needs_write() || lacks {
            true => vec![gift("refs/heads/gift")],
            false => Vec::new(),
        };
        if let Err(end) = talk.settle(&answer(state.listed, lacks, &gifts))? {
            return Ok((talk, Err(end)));
        }
        if point == Point::Settled {
            return Ok((talk, Ok(state)));
        }
        let count = if lacks { state.listed as usize } else { 0 };
        talk.send(&cut(count));
        if point == Point::Cut {
            return Ok((talk, Ok(state)));
        }
        talk.send(&want(&WantMessage {
            tips: vec![lacks; count],
            budget_bytes: 1 << 40,
            ..WantMessage::default()
        }));
        let (end, _) = match point {
            Point::Commits => talk.until(FrameType::CommitRange)?,
            Point::Idle => talk.until(FrameType::Done)?,
            _ => (End::Frame(0), Vec::new()),
        };
        if !matches!(end, End::Frame(_)) {
            return Ok((talk, Err(end)));
        }
        if let Point::Planned | Point::Segment(..) = point {
            talk.send(&plan());
        }
        if let Point::Segment(objects, bytes) = point {
            talk.send(&segment(objects, bytes));
        }
        Ok((talk, Ok(state)))
    }
}

/// Returns a ref whose commit does not exist.
pub(super) fn gift(name: &str) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), vec![0x5a; 20])
}

/// Returns a message with `count` refs that the server lacks.
pub(super) fn cut(count: usize) -> Vec<u8> {
    let mut body = Vec::new();
    CompleteTips {
        tips: vec![false; count],
    }
    .write(&mut body);
    known(FrameType::Cut, &body)
}

pub(super) fn want(want: &WantMessage) -> Vec<u8> {
    let mut body = Vec::new();
    want.write(pronto_netsync::message::ObjectFormat::Sha1, &mut body);
    known(FrameType::Want, &body)
}

fn plan() -> Vec<u8> {
    let mut body = Vec::new();
    TransferPlan {
        commits: 1,
        ..TransferPlan::default()
    }
    .write(&mut body);
    known(FrameType::Plan, &body)
}

pub(super) fn segment(objects: u64, bytes: u64) -> Vec<u8> {
    let mut body = Vec::new();
    SegmentStart {
        id: 0,
        kind: SegmentKind::Pack,
        objects,
        bytes,
    }
    .write(&mut body);
    known(FrameType::Segment, &body)
}

/// Sends one input in all sizes as a peer. Refused inputs are the first ones.
fn exceed(site: &Served, input: &Input, bound: &Bound, peer: Peer) -> Verdict {
    let limit = input.size.unwrap_or(bound.count);
    let needs_write = (input.point)(limit).needs_write();
    if needs_write && !peer.pushes {
        return Ok(());
    }
    for amount in [Amount::Far, Amount::Past, Amount::At] {
        let Some(count) = amount.of(limit, input.far) else {
            continue;
        };
        let meter = Meter::begin(site.process);
        let done = send(site, input, (amount, count), peer);
        let cost = meter.cost();
        if std::env::var_os(VERBOSE).is_some() {
            let Cost { bytes, time } = cost;
            let kib = bytes >> 10;
            println!(
                "== {}: {amount:?} {peer:?}: {kib} KiB, {time:?}",
                input.name
            );
        }
        done.map_err(|problem| format!("{amount:?}: {problem}"))?;
        stays_below(cost, bound).map_err(|problem| format!("{amount:?}: {problem}"))?;
    }
    Ok(())
}

/// Sends one input, and checks the response.
fn send(site: &Served, input: &Input, (amount, count): (Amount, usize), peer: Peer) -> Verdict {
    let denied = Expected::Refused("");
    let point = (input.point)(count);
    // A large input is made before the session that sends it, which must not stall.
    let content = match point {
        Point::Start => (input.make)(&Known::of(peer), count),
        _ => match site.reach(peer, Point::Greeted)? {
            (_, Ok(state)) => (input.make)(&state, count),
            (_, Err(_)) => Vec::new(),
        },
    };
    let (mut talk, state) = site.reach(peer, point)?;
    if let Err(end) = state {
        let is_denied = !peer.may() && denied.fits(&end);
        return require(is_denied, || format!("{end:?} before"));
    }
    let expected = match amount {
        Amount::At => &input.at,
        _ => &input.past,
    };
    talk.send(&content);
    if !matches!(expected, Expected::Closed) {
        // Refused at the latest.
        talk.send(&frame(UNKNOWN, 0, b""));
    }
    let awaited = match expected {
        Expected::Frame(kind) => *kind,
        _ => FrameType::Error,
    };
    let (end, _) = talk.until(awaited)?;
    let is_denied = !peer.may() && denied.fits(&end);
    require(expected.fits(&end) || is_denied, || {
        format!("{end:?}, not {expected:?}")
    })
}

/// Sends the first half of each input, and requires that the server closes the sessions.
fn stall(stage: &mut Stage, site: &Served, inputs: &[Input], bounds: &[Bound]) -> Verdict {
    let meter = Meter::begin(site.process);
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let peers = [peer(Who::Stranger, false), peer(Who::Writer, true)];
    for input in inputs {
        let bound = bounds.iter().find(|bound| bound.input == input.bound);
        let limit = input.size.or(bound.map(|bound| bound.count)).unwrap_or(1);
        // Large ones are tried with less.
        let limit = limit.min(1 << 16);
        let point = (input.point)(limit);
        for peer in peers {
            if point.needs_write() && !peer.pushes {
                continue;
            }
            // A user has few sessions at once, and one that gives.
            if all.len() >= 4 || point.needs_write() {
                end_all(&mut all)?;
            }
            let (mut talk, state) = site.reach(peer, point)?;
            let state = state.map_err(|end| format!("{}: {peer:?}: {end:?}", input.name))?;
            let bytes = (input.make)(&state, limit);
            // Segments begin alike; a short one and a long one are enough.
            let is_new = seen.insert((
                format!("{point:?}"),
                bytes.get(4).copied(),
                bytes.len() > 1000,
            ));
            if !is_new && point.needs_write() {
                drop(talk);
                continue;
            }
            talk.send(&bytes[..bytes.len() / 2]);
            all.push(talk);
        }
    }
    let count = inputs.len();
    end_all(&mut all)?;
    stage.measures("requests_under_way", |count| count == 0)?;
    let Cost { time, .. } = meter.cost();
    let longest = BASE_TIME * (1 + count as u32);
    require(time <= longest, || format!("stalled peers take {time:?}"))
}

fn end_all(all: &mut Vec<Talk>) -> Verdict {
    for mut talk in all.drain(..) {
        talk.ends()?;
    }
    Ok(())
}
