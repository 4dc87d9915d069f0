//! Netsync segments: their declared sizes, and their objects.

use pronto_hash::{Kind, ObjectId};
use pronto_netsync::frame::FrameType;
use pronto_netsync::message::{Resume, SegmentEnd, Sent, TransferPlan};

use super::super::segment;
use super::{Expected, FRAME, Input, Point, fixed, input};
use crate::pack::{self, Pack};
use crate::peer::known;

const SEGMENT: &str = "segment of netsync";
const PARENTS: &str = "parents of a commit in a segment";
const ALL_PARENTS: &str = "parents of all commits of a segment";

/// Returns the end of a segment with this pack.
fn end_of(pack: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    SegmentEnd {
        id: 0,
        checksum: pack[pack.len() - 20..].to_vec(),
        resume: Resume {
            objects: 1,
            mark: [7; 32],
        },
    }
    .write(&mut body);
    known(FrameType::SegmentEnd, &body)
}

/// Returns a whole segment with this pack.
fn sent(pack: &[u8], objects: u64) -> Vec<u8> {
    let mut bytes = segment(objects, pack.len() as u64);
    for piece in pack.chunks(1 << 16) {
        bytes.extend(known(FrameType::Data, piece));
    }
    bytes.extend(end_of(pack));
    bytes
}

/// Returns the inputs of segments.
pub(super) fn segments() -> Vec<Input> {
    let mut all = vec![
        fixed("plan", FrameType::Plan, Point::Wanted, |body| {
            TransferPlan::default().write(body);
        }),
        Input {
            past: Expected::Refused("a segment is too large: 1 objects and"),
            // More is more than a body of a push may have.
            far: 64,
            ..input("claim of bytes", SEGMENT, Point::Planned, |_, count| {
                segment(1, count as u64)
            })
        },
        Input {
            past: Expected::Refused("a segment is too large"),
            far: 1 << 20,
            ..input(
                "claim of objects",
                "objects of a segment",
                Point::Planned,
                |_, count| segment(count as u64, 100),
            )
        },
        fixed(
            "form of a segment",
            FrameType::Segment,
            Point::Planned,
            |body| {
                body.extend_from_slice(&segment(1, 100)[6..]);
            },
        ),
        Input {
            point: Box::new(|_| Point::Segment(1, 64 << 20)),
            past: Expected::Refused("bytes of a segment of 67108864"),
            far: 0,
            ..input("data", SEGMENT, Point::Start, |_, count| {
                let piece = vec![0x5a; 1 << 16];
                let mut bytes = known(FrameType::Data, &piece).repeat(count >> 16);
                if count % (1 << 16) > 0 {
                    bytes.extend(known(FrameType::Data, &piece[..count % (1 << 16)]));
                }
                bytes
            })
        },
        Input {
            size: Some(0),
            at: Expected::Refused("out of turn"),
            past: Expected::Refused("out of turn"),
            far: 0,
            ..input("end of a segment", FRAME, Point::Planned, |_, _| {
                end_of(&Pack::new().object(pack::BLOB, b"x").finish())
            })
        },
        Input {
            size: Some(0),
            past: Expected::Refused("segments where 0 were sent"),
            far: 0,
            ..input("number of segments", FRAME, Point::Planned, |_, count| {
                if count == 0 {
                    return Vec::new();
                }
                let mut body = Vec::new();
                let segments = count as u64;
                Sent { segments }.write(&mut body);
                known(FrameType::Sent, &body)
            })
        },
    ];
    all.extend(objects());
    all
}

fn objects() -> Vec<Input> {
    let acknowledged = |input: Input| Input {
        at: Expected::Frame(FrameType::SegmentAck),
        past: Expected::Refused(""),
        far: 2,
        ..input
    };
    vec![
        acknowledged(input(
            "large commit",
            "object of a segment, but for blobs alone, and delta",
            Point::Planned,
            |_, count| {
                let start = commit(0, 0);
                let pad = vec![b'x'; count.saturating_sub(start.len())];
                let content = [&start[..], &pad].concat();
                sent(&Pack::new().object(pack::COMMIT, &content).finish(), 1)
            },
        )),
        acknowledged(input(
            "large delta",
            "blob from a delta in a segment",
            Point::Planned,
            |_, count| {
                let base = vec![b'x'; 1 << 16];
                let (whole, rest) = (count >> 16, (count % (1 << 16)) as u32);
                // Copies of the whole base, whose size has three bytes, and of a part.
                let mut instructions = [0b1111_0000, 0, 0, 1].repeat(whole);
                if rest > 0 {
                    instructions.push(0b1111_0000);
                    instructions.extend_from_slice(&rest.to_le_bytes()[..3]);
                }
                let delta = pack::delta(1 << 16, count as u64, &instructions);
                let pack = Pack::new().object(pack::BLOB, &base);
                let distance = pack.position() - 12;
                sent(&pack.offset_delta(distance, &delta).finish(), 2)
            },
        )),
        acknowledged(input("parents", PARENTS, Point::Planned, |_, count| {
            sent(
                &Pack::new().object(pack::COMMIT, &commit(count, 0)).finish(),
                1,
            )
        })),
        // Making twice as much takes the test seconds.
        Input {
            far: 0,
            ..acknowledged(input(
                "all parents",
                ALL_PARENTS,
                Point::Planned,
                |_, count| {
                    let mut made = Pack::new();
                    let (mut left, mut number) = (count, 0);
                    while left > 0 {
                        let some = left.min(4096);
                        made = made.object(pack::COMMIT, &commit(some, number));
                        (left, number) = (left - some, number + 1);
                    }
                    sent(&made.finish(), number as u64)
                },
            ))
        },
    ]
}

/// Returns a commit with this number of parents.
fn commit(parents: usize, number: usize) -> Vec<u8> {
    let mut text = format!("tree {}\n", ObjectId::empty_tree(Kind::Sha1));
    let parent = format!("parent {}\n", "5a".repeat(20));
    text.push_str(&parent.repeat(parents));
    let who = "a <a@x> 1700000000 +0000";
    text.push_str(&format!("author {who}\ncommitter {who}\n\n{number}\n"));
    text.into_bytes()
}
