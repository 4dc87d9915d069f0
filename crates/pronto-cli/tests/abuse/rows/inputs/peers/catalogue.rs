//! The inputs: for each kind of frame the fields that have a bound, and its own size.

use pronto_hash::{Kind, ObjectId};
use pronto_netsync::frame::{Channel, FrameType, MAX_BODY_BYTES, MAX_FRAME_BYTES};
use pronto_netsync::message::{
    Accept, Credit, Done, Globs, Hello, Plan, Publish, PublishedRef, Resume, Role, SegmentAck,
    SegmentEnd, Sent, Stored, Want,
};
use pronto_netsync::varint;

use super::{Expected, Input, Known, Point, cut, gift, segment, want};
use crate::pack::{self, Pack};
use crate::peer::{IGNORED, answer, entries, frame, hello, known};

const FRAME: &str = "frame of netsync";
const NAME: &str = "name or glob in netsync";
const SEGMENT: &str = "segment of netsync";
const PARENTS: &str = "parents of a commit in a segment";
const ALL_PARENTS: &str = "parents of all commits of a segment";

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
        past: Expected::Refused("is allowed"),
        make: Box::new(make),
    }
}

/// A frame of a fixed form with so many bytes more than it has.
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
        past: Expected::Refused("too many"),
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

fn greeting(state: &Known, change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let role = match state.gives {
        true => Role::Both,
        false => Role::Sink,
    };
    let mut hello = hello(state.repository, role);
    change(&mut hello);
    let mut body = Vec::new();
    hello.write(&mut body);
    known(FrameType::Hello, &body)
}

fn greetings() -> Vec<Input> {
    let globs = |count: usize| vec![b"refs/heads/*".to_vec(); count];
    let answered = |input: Input| Input {
        at: Expected::Frame(FrameType::RefRange),
        ..input
    };
    vec![
        answered(Input {
            past: Expected::Refused("a greeting of more than 16384 bytes"),
            ..input(
                "size",
                "greeting of netsync",
                Point::Start,
                |state, count| {
                    // Globs with two bytes for their lengths, and one with the rest.
                    let bare = greeting(state, |_| {}).len() - 6;
                    let room = count - bare;
                    let whole = room / 1002 - 1;
                    let rest = room - whole * 1002;
                    let lengths = [rest / 2 - 2, rest - rest / 2 - 2];
                    greeting(state, |hello| {
                        hello.globs.include = vec![vec![b'*'; 1000]; whole];
                        let more = lengths.map(|length| vec![b'*'; length]);
                        hello.globs.include.extend(more);
                    })
                },
            )
        }),
        answered(input(
            "versions",
            "versions in a greeting",
            Point::Start,
            |state, count| greeting(state, |hello| hello.versions = (1..=count as u64).collect()),
        )),
        Input {
            at: Expected::Refused("invalid name of a repository"),
            far: 15,
            ..input("repository", NAME, Point::Start, |state, count| {
                greeting(state, |hello| hello.repository = vec![b'x'; count])
            })
        },
        Input {
            at: Expected::Refused(""),
            past: Expected::Refused("invalid name of a repository"),
            far: 0,
            ..input(
                "name of a repository",
                "name of a repository",
                Point::Start,
                |state, count| {
                    let name = format!("open/{}", "x".repeat(count - 5));
                    greeting(state, |hello| hello.repository = name.into_bytes())
                },
            )
        },
        answered(input(
            "identity",
            "identity of a repository in a greeting",
            Point::Start,
            |state, count| greeting(state, |hello| hello.identity = vec![b'x'; count]),
        )),
        answered(input(
            "globs that include",
            "globs in a greeting, of each kind",
            Point::Start,
            move |state, count| greeting(state, |hello| hello.globs.include = globs(count)),
        )),
        answered(input(
            "globs that exclude",
            "globs in a greeting, of each kind",
            Point::Start,
            move |state, count| greeting(state, |hello| hello.globs.exclude = globs(count)),
        )),
        answered(Input {
            far: 15,
            ..input("glob", NAME, Point::Start, |state, count| {
                let globs = Globs {
                    include: vec![vec![b'*'; count]],
                    exclude: Vec::new(),
                };
                greeting(state, |hello| hello.globs = globs)
            })
        }),
    ]
}

/// Frames that come at any time.
fn frames() -> Vec<Input> {
    vec![
        Input {
            past: Expected::Refused("where 2 to 262144 are allowed"),
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
            past: Expected::Refused("more than 1 MiB of frames of unknown types"),
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
            past: Expected::Refused("more credit than can be counted"),
            ..input("credits", FRAME, Point::Greeted, |_, count| {
                let mut body = Vec::new();
                let (channel, bytes) = (Channel::Commits, (1 << 63) - (1 << 31));
                Credit { channel, bytes }.write(&mut body);
                known(FrameType::Credit, &body).repeat(count)
            })
        },
    ]
}

/// A message with refs of this side, up to a key, and a question about the rest.
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

/// The name, value and overhead of a ref in memory, together a kibibyte.
const DIFFERENCE_BYTES: usize = 1024;

fn refs() -> Vec<Input> {
    let question = |_: &Known, count: usize| news(&[], true).repeat(count);
    vec![
        Input {
            at: Expected::Frame(FrameType::Want),
            past: Expected::Refused("bytes of differences"),
            ..input(
                "refs that differ",
                "refs of a peer that differ, in memory",
                Point::Refs,
                |_, count| differences(count),
            )
        },
        Input {
            past: Expected::Refused("a reconciliation of more than 64 messages"),
            far: 2,
            ..input(
                "messages about refs",
                "messages about refs, and about commits, of a session",
                Point::Refs,
                question,
            )
        },
        Input {
            past: Expected::Refused("a reconciliation of more than 64 messages"),
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
            at: Expected::Refused("an entry that is no ref"),
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

/// Messages with so many bytes of refs, as the server counts them.
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
            past: Expected::Refused("tips where"),
            ..input("cut", FRAME, Point::Settled, |state, count| {
                let count = state.listed as usize + count;
                let rest = Want {
                    tips: vec![false; state.listed as usize],
                    ..Want::default()
                };
                [cut(count), want(&rest)].concat()
            })
        },
        Input {
            size: Some(0),
            far: 0,
            past: Expected::Refused("tips where"),
            ..input("marks of a cut", FRAME, Point::Settled, |state, count| {
                // As many marks as a frame may have.
                let count = state.listed as usize + count * (8 * MAX_BODY_BYTES - 1000);
                let tips = vec![false; state.listed as usize];
                let rest = Want {
                    tips,
                    ..Want::default()
                };
                [cut(count), want(&rest)].concat()
            })
        },
        Input {
            size: Some(0),
            far: 0,
            past: Expected::Refused("tips where"),
            ..input("marks of wishes", FRAME, Point::Cut, |state, count| {
                want(&Want {
                    tips: vec![false; state.listed as usize + count],
                    ..Want::default()
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
                want(&Want {
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

/// The frames behind the transfer.
fn ends() -> Vec<Input> {
    vec![
        fixed("done", FrameType::Done, Point::Wanted, |body| {
            Done { is_durable: true }.write(body);
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
        stored: Stored::Refused,
        stored_as: stored_as.clone(),
    });
    let mut body = Vec::new();
    Publish {
        refs: refs.collect(),
    }
    .write(&mut body);
    known(FrameType::Publish, &body)
}

/// The end of a segment with this pack.
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

/// A segment with this pack, from its start to its end.
fn sent(pack: &[u8], objects: u64) -> Vec<u8> {
    let mut bytes = segment(objects, pack.len() as u64);
    for piece in pack.chunks(1 << 16) {
        bytes.extend(known(FrameType::Data, piece));
    }
    bytes.extend(end_of(pack));
    bytes
}

fn segments() -> Vec<Input> {
    let mut all = vec![
        fixed("plan", FrameType::Plan, Point::Wanted, |body| {
            Plan::default().write(body);
        }),
        Input {
            past: Expected::Refused("a segment of 1 objects and"),
            // More is more than a body of a push may have.
            far: 64,
            ..input("claim of bytes", SEGMENT, Point::Planned, |_, count| {
                segment(1, count as u64)
            })
        },
        Input {
            past: Expected::Refused("a segment of"),
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

/// A commit with so many parents.
fn commit(parents: usize, number: usize) -> Vec<u8> {
    let mut text = format!("tree {}\n", ObjectId::empty_tree(Kind::Sha1));
    let parent = format!("parent {}\n", "5a".repeat(20));
    text.push_str(&parent.repeat(parents));
    let who = "a <a@x> 1700000000 +0000";
    text.push_str(&format!("author {who}\ncommitter {who}\n\n{number}\n"));
    text.into_bytes()
}
