//! The table of netsync inputs: the bounded fields of each kind of frame, and the size of the
//! frame.

mod greetings;
mod segments;

use pronto_netsync::frame::{Channel, FrameType, MAX_BODY_BYTES, MAX_FRAME_BYTES};
use pronto_netsync::message::{
    Accept, Credit, Publish, PublishedRef, Resume, SegmentAck, StoreResult, TransferDone,
    WantMessage,
};
use pronto_netsync::varint;

use super::{Expected, Input, Known, Point, cut, gift, want};
use crate::peer::{IGNORED, answer, entries, frame, known};
use greetings::greetings;
use segments::segments;

const FRAME: &str = "frame of netsync";
const NAME: &str = "name or glob in netsync";

fn input(
    name: &'static str,
    bound: &'static str,
    point: Point,
    make: impl Fn(&Known, usize) -> Vec<u8> + Send + Sync + 'static,
) -> Input {
    Input {
        name,
        bound,
        size: None,
        point: Box::new(move |_| point),
        far: 4,
        at: Expected::Nothing,
        past: Expected::Refused("is larger than the limit"),
        make: Box::new(make),
    }
}

/// Creates the input for a frame of a fixed size, with additional bytes.
fn fixed(
    name: &'static str,
    kind: FrameType,
    point: Point,
    write: impl Fn(&mut Vec<u8>) + Send + Sync + 'static,
) -> Input {
    let mut body = Vec::new();
    write(&mut body);
    let length = body.len();
    Input {
        size: Some(length),
        far: MAX_BODY_BYTES / length.max(1),
        past: Expected::Refused("extra bytes at the end"),
        ..input(name, FRAME, point, move |_, count| {
            let mut body = Vec::new();
            write(&mut body);
            body.resize(count.max(length), 0);
            known(kind, &body)
        })
    }
}

/// Returns all inputs.
pub(super) fn catalogue() -> Vec<Input> {
    let mut all = greetings();
    all.extend(frames());
    all.extend(refs());
    all.extend(wishes());
    all.extend(ends());
    all.extend(segments());
    all
}

/// Returns the inputs of frames that are valid at any time.
fn frames() -> Vec<Input> {
    vec![
        Input {
            past: Expected::Refused("but 2 to 262144 are allowed"),
            far: 16_383,
            ..input("length", FRAME, Point::Greeted, |_, count| {
                let length = u32::try_from(count).unwrap_or(u32::MAX);
                let mut bytes = length.to_le_bytes().to_vec();
                bytes.extend([IGNORED, 0]);
                bytes.resize(count.min(MAX_FRAME_BYTES) + 4, 0);
                bytes
            })
        },
        Input {
            past: Expected::Refused("the peer sent more than 1 MiB in frames of unknown types"),
            ..input(
                "ignored frames",
                "frames of unknown types of a session",
                Point::Greeted,
                |_, count| {
                    let mut bytes = Vec::new();
                    let mut left = count;
                    while left > 0 {
                        // At least a header is left for the last one.
                        let length = match left {
                            0x1_0010.. => 0x1_0000,
                            left => left,
                        };
                        bytes.extend(frame(IGNORED, 0, &vec![0; length - 6]));
                        left -= length;
                    }
                    bytes
                },
            )
        },
        Input {
            at: Expected::Closed,
            far: 255,
            ..input(
                "error",
                "text of an error of a peer",
                Point::Greeted,
                |_, count| {
                    let mut body = Vec::new();
                    let code = 1;
                    varint::write(&mut body, code);
                    varint::write(&mut body, count as u64);
                    body.extend(vec![b'x'; count]);
                    known(FrameType::Error, &body)
                },
            )
        },
        fixed("accept", FrameType::Accept, Point::Greeted, |body| {
            Accept { version: 1 }.write(body);
        }),
        fixed("credit", FrameType::Credit, Point::Greeted, |body| {
            let (channel, bytes) = (Channel::Refs, 1 << 62);
            Credit { channel, bytes }.write(body);
        }),
        Input {
            size: Some(1),
            past: Expected::Refused("the credit of a channel overflows 64 bits"),
            ..input("credits", FRAME, Point::Greeted, |_, count| {
                let mut body = Vec::new();
                let (channel, bytes) = (Channel::Commits, (1 << 63) - (1 << 31));
                Credit { channel, bytes }.write(&mut body);
                known(FrameType::Credit, &body).repeat(count)
            })
        },
    ]
}

/// Returns a message with refs of this side up to a key, and with a request for the rest if `asks`.
fn news(refs: &[(Vec<u8>, Vec<u8>)], asks: bool) -> Vec<u8> {
    // A list up to a bound, or to the end.
    let mut body = vec![if asks { 2 } else { 6 }];
    if asks {
        let bound = b"refs/z";
        varint::write(&mut body, 0);
        varint::write(&mut body, bound.len() as u64);
        body.extend_from_slice(bound);
    }
    varint::write(&mut body, refs.len() as u64);
    entries(&mut body, refs);
    if asks {
        body.push(5);
        body.extend([0xee; 16]);
    }
    known(FrameType::RefRange, &body)
}

/// The size of a ref in memory: its name, value and overhead make one kibibyte.
const DIFFERENCE_BYTES: usize = 1024;

fn refs() -> Vec<Input> {
    let question = |_: &Known, count: usize| news(&[], true).repeat(count);
    vec![
        Input {
            at: Expected::Frame(FrameType::Want),
            past: Expected::Refused("the differences take more than"),
            ..input(
                "refs that differ",
                "refs of a peer that differ, in memory",
                Point::Refs,
                |_, count| differences(count),
            )
        },
        Input {
            past: Expected::Refused("the reconciliation takes more than 64 messages"),
            far: 2,
            ..input(
                "messages about refs",
                "messages about refs, and about commits, of a session",
                Point::Refs,
                question,
            )
        },
        Input {
            past: Expected::Refused("the reconciliation takes more than 64 messages"),
            far: 2,
            ..input(
                "messages about commits",
                "messages about refs, and about commits, of a session",
                Point::Commits,
                |_, count| {
                    let body = [&[5_u8][..], &[0xee; 16]].concat();
                    known(FrameType::CommitRange, &body).repeat(count)
                },
            )
        },
        Input {
            at: Expected::Frame(FrameType::Want),
            far: 200,
            ..input("name of a ref", NAME, Point::Refs, |state, count| {
                let name = format!("refs/heads/{}", "x".repeat(count - 11));
                let body = answer(state.listed, false, &[gift(&name)]);
                known(FrameType::RefRange, &body)
            })
        },
        Input {
            at: Expected::Refused("an entry is not a ref"),
            ..input(
                "ids",
                "ids of a ref of a peer",
                Point::Refs,
                |state, count| {
                    let refs = [(b"refs/heads/x".to_vec(), vec![1; count])];
                    known(FrameType::RefRange, &answer(state.listed, false, &refs))
                },
            )
        },
        Input {
            // The answer to the list is not followed by a question.
            at: Expected::Frame(FrameType::Want),
            past: Expected::Refused(""),
            size: Some(1),
            ..input("answers", FRAME, Point::Refs, |state, count| {
                let body = answer(state.listed, false, &[]);
                known(FrameType::RefRange, &body).repeat(count)
            })
        },
    ]
}

/// Returns messages with `count` bytes of refs, as the server counts them.
pub(super) fn differences(count: usize) -> Vec<u8> {
    // Beside name and value: two vectors.
    let name_bytes = DIFFERENCE_BYTES - 20 - 48;
    let number = count.div_ceil(DIFFERENCE_BYTES);
    let mut refs = Vec::new();
    for at in 0..number {
        let digits = format!("{at:08}");
        let pad = "x".repeat(name_bytes - 11 - digits.len());
        refs.push((
            format!("refs/heads/{pad}{digits}").into_bytes(),
            vec![0x5a; 20],
        ));
    }
    let mut bytes = Vec::new();
    let pieces: Vec<_> = refs.chunks(5000).collect();
    for (at, piece) in pieces.iter().enumerate() {
        bytes.extend(news(piece, at + 1 < pieces.len()));
    }
    bytes
}

fn wishes() -> Vec<Input> {
    vec![
        Input {
            size: Some(0),
            far: 0,
            // The marks are those of the refs that differ.
            past: Expected::Refused("tips, but"),
            ..input("cut", FRAME, Point::Settled, |state, count| {
                let count = state.listed as usize + count;
                let rest = WantMessage {
                    tips: vec![false; state.listed as usize],
                    ..WantMessage::default()
                };
                [cut(count), want(&rest)].concat()
            })
        },
        Input {
            size: Some(0),
            far: 0,
            past: Expected::Refused("tips, but"),
            ..input("marks of a cut", FRAME, Point::Settled, |state, count| {
                // As many marks as a frame may have.
                let count = state.listed as usize + count * (8 * MAX_BODY_BYTES - 1000);
                let tips = vec![false; state.listed as usize];
                let rest = WantMessage {
                    tips,
                    ..WantMessage::default()
                };
                [cut(count), want(&rest)].concat()
            })
        },
        Input {
            size: Some(0),
            far: 0,
            past: Expected::Refused("tips, but"),
            ..input("marks of wishes", FRAME, Point::Cut, |state, count| {
                want(&WantMessage {
                    tips: vec![false; state.listed as usize + count],
                    ..WantMessage::default()
                })
            })
        },
        input(
            "commits that are held",
            "commits without a ref that a peer names",
            Point::Cut,
            |state, count| {
                let ids = (0..count).flat_map(|number| {
                    let mut id = vec![7; 20];
                    id[..8].copy_from_slice(&(number as u64).to_be_bytes());
                    id
                });
                want(&WantMessage {
                    tips: vec![true; state.listed as usize],
                    held: ids.collect(),
                    budget_bytes: 1,
                    resume: Some(Resume {
                        objects: u64::MAX,
                        mark: [1; 32],
                    }),
                })
            },
        ),
    ]
}

/// Returns the inputs of frames after the transfer.
fn ends() -> Vec<Input> {
    vec![
        fixed("done", FrameType::Done, Point::Wanted, |body| {
            TransferDone { is_durable: true }.write(body);
        }),
        Input {
            at: Expected::Refused("that was not offered"),
            far: 200,
            ..input("name of a result", NAME, Point::Idle, |_, count| {
                let name = format!("refs/heads/{}", "x".repeat(count - 11));
                results(&[(name.into_bytes(), Vec::new())])
            })
        },
        Input {
            far: 200,
            ..input("place of a result", NAME, Point::Idle, |state, count| {
                let place = format!("refs/heads/{}", "x".repeat(count - 11));
                let first = state.names.first().cloned().unwrap_or_default();
                results(&[(first, place.into_bytes())])
            })
        },
        Input {
            size: Some(1),
            // Each ref has one.
            past: Expected::Refused("that was not offered"),
            far: 0,
            ..input("results", FRAME, Point::Idle, |state, count| {
                let names = state.names.iter().take(1);
                let all: Vec<_> = names.map(|name| (name.clone(), Vec::new())).collect();
                results(&all).repeat(count)
            })
        },
        Input {
            size: Some(0),
            past: Expected::Refused("out of turn"),
            far: 0,
            ..input("confirmations", FRAME, Point::Idle, |_, count| {
                let mut body = Vec::new();
                SegmentAck { id: 0 }.write(&mut body);
                known(FrameType::SegmentAck, &body).repeat(count)
            })
        },
    ]
}

fn results(all: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let refs = all.iter().map(|(name, stored_as)| PublishedRef {
        name: name.clone(),
        stored: StoreResult::Refused,
        stored_as: stored_as.clone(),
    });
    let mut body = Vec::new();
    Publish {
        refs: refs.collect(),
    }
    .write(&mut body);
    known(FrameType::Publish, &body)
}
