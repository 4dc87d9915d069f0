//! Fuzzes a whole session with a malicious peer. The frames have valid headers, so that the fuzzer
//! reaches the code behind them. The repository accepts everything.

use pronto_hash::{Kind, ObjectId};
use pronto_netsync::Error;
use pronto_netsync::message::{
    Accept, Globs, Hello, ObjectFormat, PublishedRef, Resume, SegmentKind, TransferPlan,
    TransferRole,
};
use pronto_netsync::repository::{
    OfferedRef, OutgoingSegment, RefMatcher, Request, SyncRepository, TransferProgress,
};
use pronto_netsync::session::{Options, PeerPermissions, SyncSession};

/// A repository that accepts everything, and has two branches.
struct Anything {
    complete: u8,
}

fn id(byte: u8) -> ObjectId {
    let mut id = ObjectId::null(Kind::Sha1);
    id.as_mut_slice()[0] = byte;
    id
}

impl SyncRepository for Anything {
    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error> {
        for (byte, name) in [(1, b"refs/heads/a"), (2, b"refs/heads/b")] {
            if matches(name) {
                each(&OfferedRef {
                    name: name.to_vec(),
                    id: id(byte),
                    peeled: None,
                });
            }
        }
        Ok(())
    }

    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        let bit = |at: usize| self.complete >> (at % 8) & 1 == 1;
        Ok((0..offers.len()).map(bit).collect())
    }

    fn commits(
        &mut self,
        tips: &[ObjectId],
        _: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error> {
        for (at, tip) in tips.iter().enumerate() {
            each(at as u64, tip);
        }
        Ok(())
    }

    fn prepare(&mut self, _: &[OfferedRef], eligible: &[bool]) -> Result<TransferProgress, Error> {
        Ok(TransferProgress {
            wanted: eligible.to_vec(),
            budget_bytes: 1 << 20,
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

    fn publish(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>, Error> {
        assert_eq!(offers.len(), arrived.len());
        assert!(offers.is_sorted_by(|one, other| one.name < other.name));
        Ok(Vec::new())
    }

    fn plan(&mut self, request: Request) -> Result<TransferPlan, Error> {
        assert!(
            request
                .tips
                .iter()
                .all(|tip| *tip == id(1) || *tip == id(2))
        );
        Ok(TransferPlan::default())
    }

    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error> {
        Ok(None)
    }
}

/// Returns the channel to which a frame type belongs.
fn channel(kind: u8) -> u8 {
    match kind {
        6 | 15 => 1,
        8 => 2,
        9 | 11..=13 => 3,
        _ => 0,
    }
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32 + 2).to_le_bytes().to_vec();
    frame.extend([kind, channel(kind)]);
    frame.extend_from_slice(body);
    frame
}

pub(crate) fn run(data: &[u8]) {
    let Some((&[first, complete], mut rest)) = data.split_first_chunk() else {
        return;
    };
    let mut options = Options::default();
    options.nonce = [1; 32];
    options.allows_unrelated = first & 2 != 0;
    options.is_dry_run = first & 4 != 0;
    let admit = move |_: &Hello| {
        Ok(PeerPermissions {
            repository: Anything { complete },
            object_format: ObjectFormat::Sha1,
            role: TransferRole::Both,
            limits: RefMatcher::default(),
        })
    };
    let mut session = SyncSession::respond(options, Box::new(admit));
    let mut said = Vec::new();
    if first & 1 == 0 {
        let mut body = Vec::new();
        let hello = Hello {
            versions: vec![1],
            object_format: ObjectFormat::Sha1,
            role: TransferRole::Both,
            capabilities: 2,
            repository: Vec::new(),
            identity: Vec::new(),
            globs: Globs::default(),
            window_bytes: 1 << 20,
            nonce: [2; 32],
        };
        hello.write(&mut body);
        said.push(frame(1, &body));
        let mut body = Vec::new();
        Accept { version: 1 }.write(&mut body);
        said.push(frame(2, &body));
    }
    while let Some((&[kind, len], after)) = rest.split_first_chunk() {
        let (body, after) = after.split_at(after.len().min(usize::from(len)));
        said.push(frame(kind, body));
        rest = after;
    }
    let mut out = Vec::new();
    for frame in said {
        let mut left = &frame[..];
        while !left.is_empty() {
            let count = session.accept(left);
            left = &left[count..];
            if session.advance().is_err() {
                return;
            }
            while session.wants_output() {
                out.clear();
                session.write_to(&mut out).expect("memory takes all");
                assert!(out.len() <= 8 << 20);
                if session.advance().is_err() {
                    return;
                }
            }
            if count == 0 || session.is_finished() {
                return;
            }
        }
    }
}
