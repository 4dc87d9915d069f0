//! A netsync peer whose messages a test controls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{
    ObjectFormat, PublishedRef, Resume, SegmentKind, TransferPlan, TransferRole,
};
use pronto_netsync::repository::{
    OfferedRef, OutgoingSegment, RefMatcher, Request, SegmentContent, SyncRepository,
    TransferProgress,
};
use pronto_netsync::session::{Options, PeerPermissions, Report, SyncSession};
use pronto_netsync::{Error, ErrorKind};
use pronto_pack::entry::EntryHeader;
use pronto_pack::writer::Encoder;
use pronto_pack::writer::sink::{PackSink as _, PackStream};
use pronto_peer::{KeyPair, KnownPeers, NetsyncAddress, SessionWatch, TlsPeer, connect_tls, drive};

use crate::netsync_peers::{Server, World};

/// A time limit that only a hang reaches.
const LONG: Duration = Duration::from_secs(300);

/// A repository with arbitrary offers and segments, which discards received segments.
#[derive(Default)]
pub(crate) struct Puppet {
    pub(crate) offers: Vec<OfferedRef>,
    pub(crate) segments: VecDeque<OutgoingSegment>,
    /// Whether the repository wants everything that is offered.
    pub(crate) wants: bool,
    /// The commits that the repository claims to have.
    pub(crate) held: Vec<ObjectId>,
}

impl SyncRepository for Puppet {
    fn refs(
        &mut self,
        _: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error> {
        self.offers.iter().for_each(each);
        Ok(())
    }

    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        Ok(vec![!self.wants; offers.len()])
    }

    fn commits(
        &mut self,
        _: &[ObjectId],
        _: &[ObjectId],
        _: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error> {
        Ok(())
    }

    fn prepare(&mut self, _: &[OfferedRef], eligible: &[bool]) -> Result<TransferProgress, Error> {
        Ok(TransferProgress {
            wanted: eligible.to_vec(),
            held: self.held.clone(),
            budget_bytes: 1 << 40,
            ..TransferProgress::default()
        })
    }

    fn begin_segment(&mut self, _: SegmentKind, _: u64, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn segment_data(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn end_segment(&mut self, _: &ObjectId, _: Resume) -> Result<(), Error> {
        Ok(())
    }

    fn publish(&mut self, _: &[OfferedRef], _: &[bool]) -> Result<Vec<PublishedRef>, Error> {
        Ok(Vec::new())
    }

    fn plan(&mut self, _: Request) -> Result<TransferPlan, Error> {
        Ok(TransferPlan::default())
    }

    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error> {
        Ok(self.segments.pop_front())
    }
}

/// A client with a key that the server knows.
#[derive(Clone)]
pub(crate) struct Attacker {
    key: Arc<KeyPair>,
    known: Arc<KnownPeers>,
    address: NetsyncAddress,
}

/// An idle session that stays open until the value is dropped.
pub(crate) struct Stalled {
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Stalled {
    fn drop(&mut self) {
        drop(self.release.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Attacker {
    pub(crate) fn new(world: &World, server: &Server, who: &str) -> Self {
        Self::at(world, &server.url(""), who)
    }

    /// Creates a client of the repository at `url`.
    pub(crate) fn at(world: &World, url: &str, who: &str) -> Self {
        let place = world.path(&format!("home-{who}/.config/pronto/netsync"));
        let address = NetsyncAddress::parse(url.into());
        Attacker {
            key: Arc::new(KeyPair::read(&place.join("key")).expect("a key")),
            known: Arc::new(KnownPeers::read(&place.join("known_peers")).expect("a list")),
            address: address.expect("an address").expect("an address"),
        }
    }

    pub(crate) fn meet(&self) -> TlsPeer {
        connect_tls(&self.address, &self.key, &self.known, Some("desk")).expect("it is known")
    }

    /// Runs a session with the server until it ends. `look` is called several times a second with a
    /// report, and may end the session.
    pub(crate) fn converse(
        &self,
        puppet: Puppet,
        role: TransferRole,
        look: &mut dyn FnMut(&Report, &Interrupt),
    ) -> (Result<(), Error>, Report) {
        let admission = PeerPermissions {
            repository: puppet,
            object_format: ObjectFormat::Sha1,
            role,
            limits: RefMatcher::default(),
        };
        let mut options = Options::default();
        options.nonce = [9; 32];
        options.allows_unrelated = true;
        options.repository.clone_from(&self.address.path);
        let mut session = SyncSession::initiate(options, admission).expect("a session");
        let (mut link, interrupt) = (self.meet().link, Interrupt::new());
        let mut watch = SessionWatch {
            report: &mut |report| look(report, &interrupt),
            interrupt: &interrupt,
            keep: &|_| Ok(()),
            patience: LONG,
            greeting_patience: LONG,
        };
        let result = drive(&mut session, &mut link, &mut watch);
        (result, session.report().clone())
    }

    /// Starts a session that wants everything, and stalls when `is_time` returns true. Returns
    /// after the session has stalled, or immediately unless `waits` is set.
    pub(crate) fn stall(
        &self,
        is_time: impl Fn(&Report) -> bool + Send + 'static,
        waits: bool,
    ) -> Stalled {
        let puppet = Puppet {
            wants: true,
            ..Puppet::default()
        };
        let (reached, has_reached) = channel();
        let (release, released) = channel::<()>();
        let attacker = self.clone();
        let thread = std::thread::spawn(move || {
            let mut look = |report: &Report, interrupt: &Interrupt| {
                let is_over = match is_time(report) {
                    true => {
                        let _ = reached.send(());
                        released.recv().is_err()
                    }
                    // The client connects without waiting until the server accepts.
                    false => matches!(released.try_recv(), Err(TryRecvError::Disconnected)),
                };
                if is_over {
                    interrupt.trigger();
                }
            };
            let _ = attacker.converse(puppet, TransferRole::Sink, &mut look);
        });
        if waits {
            has_reached.recv().expect("it gets so far");
        }
        Stalled {
            release: Some(release),
            thread: Some(thread),
        }
    }

    /// Offers `tip`, and sends a pack that claims to have `objects`. Returns the error of the
    /// server.
    pub(crate) fn attack(&self, tip: ObjectId, pack: (Vec<u8>, ObjectId), objects: u64) -> Error {
        self.attack_with(&[tip], pack, objects)
    }

    /// Does the same as [`attack`](Self::attack) with several branches.
    pub(crate) fn attack_with(
        &self,
        tips: &[ObjectId],
        (pack, checksum): (Vec<u8>, ObjectId),
        objects: u64,
    ) -> Error {
        let bytes = pack.len() as u64;
        let content = SegmentContent::Memory(Arc::new(pack));
        let segment = segment(content, (objects, bytes), checksum);
        let (result, _) = self.converse(gifts(tips, segment), TransferRole::Source, &mut |_, _| {});
        let error = result.expect_err("it is refused");
        assert_ne!(error.kind(), ErrorKind::Closed, "{error}");
        error
    }
}

/// Creates a puppet that offers branches and sends one segment.
pub(crate) fn gifts(tips: &[ObjectId], segment: OutgoingSegment) -> Puppet {
    let offer = |(at, tip): (usize, &ObjectId)| OfferedRef {
        name: format!("refs/heads/gift{at}").into_bytes(),
        id: *tip,
        peeled: None,
    };
    Puppet {
        offers: tips.iter().enumerate().map(offer).collect(),
        segments: VecDeque::from([segment]),
        ..Puppet::default()
    }
}

/// Creates a segment that claims these numbers of objects and bytes.
pub(crate) fn segment(
    content: SegmentContent,
    (objects, bytes): (u64, u64),
    checksum: ObjectId,
) -> OutgoingSegment {
    OutgoingSegment {
        kind: SegmentKind::Pack,
        objects,
        bytes,
        checksum,
        resume: Resume {
            objects,
            mark: [7; 32],
        },
        content,
    }
}

/// A stream that returns `first` and then stalls until the test ends.
pub(crate) struct Stalling {
    pub(crate) first: std::io::Cursor<Vec<u8>>,
    pub(crate) reached: Sender<()>,
    pub(crate) released: Receiver<()>,
}

impl std::io::Read for Stalling {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.first.read(buffer)? {
            0 => {
                let _ = self.reached.send(());
                let _ = self.released.recv();
                Err(std::io::ErrorKind::UnexpectedEof.into())
            }
            count => Ok(count),
        }
    }
}

/// Builds a pack of these entries with its checksum.
pub(crate) fn pack(entries: &[(EntryHeader, &[u8])]) -> (Vec<u8>, ObjectId) {
    let mut bytes = Vec::new();
    let count = u32::try_from(entries.len()).expect("a few");
    let mut stream = PackStream::begin(&mut bytes, Kind::Sha1, count).expect("a pack");
    let mut encoder = Encoder::new(6);
    let mut at = 12;
    for (header, content) in entries {
        let entry = encoder.encode(*header, content);
        let id = ObjectId::null(Kind::Sha1);
        stream.note(&id, at, entry.crc()).expect("it is noted");
        stream.put(entry.bytes()).expect("it is written");
        at += entry.bytes().len() as u64;
    }
    let streamed = stream.finish().expect("it ends");
    (bytes, streamed.checksum)
}

/// Encodes an entry that is not a delta.
pub(crate) fn whole(kind: ObjectKind, content: &[u8]) -> (EntryHeader, &[u8]) {
    (EntryHeader::Object(kind), content)
}

pub(crate) fn id_of(kind: ObjectKind, content: &[u8]) -> ObjectId {
    let header = gix_object::encode::loose_header(kind, content.len() as u64);
    pronto_hash::digest(Kind::Sha1, &[&header, content]).expect("an id")
}
